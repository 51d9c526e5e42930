package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/completions"
)

// This test is an agent of its own: with the first argument it does what the second says.
const serve = "serve-agent"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == serve {
		behave(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

func behave(how string) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var e start
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			os.Exit(3)
		}
		switch how {
		case "ends":
			fmt.Fprintln(os.Stderr, "no more")
			os.Exit(4)
		case "babbles":
			fmt.Println("Loading…")
		case "mistakes":
			fmt.Println(`{"episode":"another","reward":1}`)
		case "sleeps":
		case "pays":
			fmt.Printf(`{"episode":%q,"reward":%s}`+"\n", e.Episode, e.Task.Instance)
		}
	}
}

func own(t *testing.T, how string) Program {
	program, err := os.Executable()
	require.NoError(t, err)
	return Program{Name: how, Command: []string{program, serve, how}}
}

func question(name string, episodes ...Episode) Question {
	return Question{
		Agent: name, Rollout: "one", Limits: completions.Limits{Temperature: 1, MaxTokens: 8}, Episodes: episodes,
		Admit: func(completions.Call) *completions.Refusal { return nil },
		Wait:  5 * time.Second, Gather: 5 * time.Second, Silence: time.Minute,
	}
}

func task(instance int) Task {
	return Task{Instance: strconv.Itoa(instance), Chance: "1", Split: Training, Options: json.RawMessage(`{"most":3}`)}
}

// What an agent does wrong ends the question after three tries, with what it wrote; another question begins anew.
func TestAgentsThatFail(t *testing.T) {
	for how, want := range map[string]string{
		"ends":     "tried 3 times: agent ends: the agent is gone: it ended with exit status 4; it last wrote to standard error: no more",
		"babbles":  `tried 3 times: agent babbles: answer of an agent: it wrote "Loading…", want a JSON object with reward or error`,
		"mistakes": `it answered about episode "another", which it does not play`,
	} {
		p := New([]Program{own(t, how)})
		for range 2 {
			_, err := p.Play(t.Context(), question(how, Episode{Name: "a", Task: task(1)}, Episode{Name: "b", Task: task(1)}))
			require.ErrorContains(t, err, want)
		}
		p.Close()
	}
	p := New([]Program{{Name: "none", Command: []string{"/nowhere/agent"}}, {Name: "far", URL: "http://127.0.0.1:1/?key=secret"}})
	defer p.Close()
	_, err := p.Play(t.Context(), question("none", Episode{Name: "a", Task: task(1)}))
	require.Error(t, err)
	_, err = p.Play(t.Context(), question("far", Episode{Name: "a", Task: task(1)}))
	require.ErrorIs(t, err, ErrDied)
	require.NotContains(t, err.Error(), "secret")
	_, err = p.Play(t.Context(), question("other", Episode{Name: "a", Task: task(1)}))
	require.ErrorIs(t, err, ErrUnknown)
}

// An agent that does nothing for too long has broken its episode, and the question itself ends when it said.
func TestAgentsThatAreSilent(t *testing.T) {
	p := New([]Program{own(t, "sleeps")})
	defer p.Close()
	q := question("sleeps", Episode{Name: "a", Task: task(1)})
	q.Wait = 10 * time.Millisecond
	got, err := p.Play(t.Context(), q)
	require.NoError(t, err)
	require.Empty(t, got)
	q.Wait, q.Silence = 5*time.Second, 50*time.Millisecond
	for begin := time.Now(); len(got.Ends) == 0 && time.Since(begin) < 10*time.Second; {
		q.Wait = 100 * time.Millisecond
		got, err = p.Play(t.Context(), q)
		require.NoError(t, err)
	}
	require.Contains(t, got.Ends[0].Error, "neither called nor ended")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err = p.Play(ctx, question("sleeps", Episode{Name: "b", Task: task(1)}))
	require.ErrorIs(t, err, context.Canceled)
}

// Ends come as long as they are asked about, and one agent plays one rollout after the other.
func TestEndsOfEpisodes(t *testing.T) {
	p := New([]Program{own(t, "pays")})
	defer p.Close()
	for _, rollout := range []string{"one", "two"} {
		q := question("pays", Episode{Name: "a", Task: task(1)}, Episode{Name: "b", Task: task(2)})
		q.Rollout = rollout
		for range 2 {
			got, err := p.Play(t.Context(), q)
			require.NoError(t, err)
			require.Equal(t, []End{{Episode: "a", Result: Result{Reward: 1}}, {Episode: "b", Result: Result{Reward: 2}}}, got.Ends)
		}
	}
}

// The agent of docs/agents.md plays; what it is told after its end repeats its calls, which have their answers.
func TestPythonAgent(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: there is no python3; agents of Go have run")
	}
	program := Program{Name: "guesser", Command: []string{python, "../../docs/own/agent.py"}}
	var rounds [][]string
	for range 2 {
		p := New([]Program{program})
		episodes := []Episode{{Name: "0", Task: task(1)}, {Name: "1", Task: task(1)}, {Name: "2", Task: task(5)}}
		for i := range episodes {
			episodes[i].Answers = map[string]completions.Completion{}
		}
		var said []string
		for len(episodes) > 0 {
			got, err := p.Play(t.Context(), question("guesser", episodes...))
			require.NoError(t, err)
			for _, c := range got.Calls {
				i := slices.IndexFunc(episodes, func(e Episode) bool { return e.Name == c.Episode })
				text := strconv.Itoa(len(episodes[i].Answers) + 1)
				episodes[i].Answers[c.Address] = completions.Completion{Text: text, Calls: []completions.ToolCall{}, Finish: completions.FinishStop}
				said = append(said, c.Episode+" "+c.Address)
				if len(rounds) == 1 { // the agent ends after each answer
					p.Leave()
				}
			}
			for _, e := range got.Ends {
				i := slices.IndexFunc(episodes, func(o Episode) bool { return o.Name == e.Episode })
				require.Equal(t, slices.Sorted(maps.Keys(episodes[i].Answers)), e.Calls)
				require.Empty(t, e.Error)
				require.Contains(t, e.Metrics, "guesses")
				said = append(said, fmt.Sprint(e.Episode, " ended ", e.Reward))
				episodes = slices.Delete(episodes, i, i+1)
			}
		}
		slices.Sort(said)
		rounds = append(rounds, said)
		p.Close()
	}
	require.Equal(t, rounds[0], rounds[1])
	require.True(t, slices.ContainsFunc(rounds[0], func(s string) bool { return strings.HasSuffix(s, "ended 1") }))
}
