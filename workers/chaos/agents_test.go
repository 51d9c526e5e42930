package chaos

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/agent"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// serveAgent is the argument with which this program is an agent: a fault of the stand-in's and the marker file follow.
const serveAgent = "serve-agent"

// playAgent plays episodes of three calls, two of which come at the same time. With the fault Stuck its first process stays
// in the middle of the first episode that gets there, and leaves its number in the marker file.
func playAgent(fault, marker string) error {
	var writing sync.Mutex
	var episodes sync.WaitGroup
	defer episodes.Wait()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var e struct {
			Episode string     `json:"episode"`
			URL     string     `json:"base_url"`
			Key     string     `json:"api_key"`
			Task    agent.Task `json:"task"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return err
		}
		episodes.Go(func() {
			task := said{"user", "task " + e.Task.Instance[:2]}
			first := complete(e.URL, e.Key, task)
			if _, err := os.Stat(marker); fault == standin.Stuck && os.IsNotExist(err) {
				_ = os.WriteFile(marker, []byte(strconv.Itoa(os.Getpid())), 0o600)
				select {}
			}
			parts := make([]said, 2)
			var both sync.WaitGroup
			for i := range parts {
				both.Go(func() { parts[i] = complete(e.URL, e.Key, task, first, said{"user", fmt.Sprint("part ", i)}) })
			}
			both.Wait()
			writing.Lock()
			defer writing.Unlock()
			fmt.Printf(`{"episode": %q, "reward": %v, "success": true}`+"\n", e.Episode, float64((len(parts[0].Content)+len(parts[1].Content))%5))
		})
	}
	return lines.Err()
}

type said struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// complete asks until the policy has answered: a worker that is killed breaks connections off.
func complete(url, key string, history ...said) said {
	body, _ := json.Marshal(map[string]any{"model": "policy", "messages": history})
	request, _ := http.NewRequest(http.MethodPost, url+"/chat/completions", bytes.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		os.Exit(1)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	var out struct {
		Choices []struct{ Message said }
	}
	if json.Unmarshal(text, &out) != nil || len(out.Choices) != 1 {
		fmt.Fprintln(os.Stderr, string(text))
		os.Exit(1)
	}
	return out.Choices[0].Message
}

const agentsSpec = `{
	"seed": 1, "iterations": 2,
	"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 96, "heads": 2, "kv_heads": 1}, "warm_start": {"steps": 0}},
	"environment": {"name": "agent"},
	"rollout": {"groups": 2, "group_size": 4, "turns": 3, "max_new_tokens": 8, "agent": "tester", "prompt_tokens": [64, 160, 160]},
	"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 2}, "evaluation": {"every": 0}
}`

// TestChaosAgents kills the workers of a run that an agent plays, in each phase of the steps that take its calls and
// answer them, and the agent in the middle of an episode: the bytes are the same, and no call is sampled twice.
func TestChaosAgents(t *testing.T) {
	beside(t)
	dir := t.TempDir()
	made := func(fault string) *lane {
		l := newLane(t, sharedStack(t)).ofMethods()
		l.flags = append(l.flags, "--agent", fmt.Sprintf("tester=%s %s %s %s", os.Args[0], serveAgent, fault, filepath.Join(dir, "marker")))
		return l
	}
	once := func(l *lane) {
		seen := map[string]bool{}
		for o, err := range l.store.List(t.Context(), store.RunDir(foreignRun)+"/") {
			require.NoError(t, err)
			if !strings.Contains(o.Key, ".taken.") {
				continue
			}
			body, _, err := l.store.Open(t.Context(), o.Key, 0)
			require.NoError(t, err)
			b, err := io.ReadAll(body)
			require.NoError(t, err)
			require.NoError(t, body.Close())
			rows, err := tables.Decode[run.RequestRow](b)
			require.NoError(t, err)
			for _, r := range rows {
				key := fmt.Sprint(o.Key[:strings.LastIndex(o.Key, "/")], r.Row, r.Address, r.Ended)
				require.False(t, seen[key], "taken twice: %s", key)
				seen[key] = true
			}
		}
		require.NotEmpty(t, seen)
	}
	undisturbed := made(standin.None)
	p := undisturbed.worker(workerOptions{})
	undisturbed.start(foreignRun, []byte(agentsSpec))
	undisturbed.completes(foreignRun)
	p.kill()
	want := reach(t, undisturbed.store, foreignRun)

	l := made(standin.None)
	stop := l.keep("TakeCalls/begin/2", "TakeCalls/inside/2", "TakeCalls/written/2", "Generate/inside/2", "Generate/written/1", "Arrange/written/1", "Select/begin/1")
	l.start(foreignRun, []byte(agentsSpec))
	l.completes(foreignRun)
	stop()
	l.verifies(foreignRun)
	same(t, want, reach(t, l.store, foreignRun))
	once(l)

	l = made(standin.Stuck)
	disturb(t, l, []byte(agentsSpec), []string{"TakeCalls/begin/3"}, filepath.Join(dir, "marker"), func() {})
	same(t, want, reach(t, l.store, foreignRun))
	once(l)
}
