package stdio

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/leftover"
	"github.com/reprise-rl/reprise/model/draw"
)

// TestMain is also the program of the stand-in server: its arguments say so, since its
// environment variables do not reach it.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		if err := standin.Serve(os.Stdin, os.Stdout, os.Args[2], os.Args[3]); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// open opens a pool of stand-ins with a fault.
func open(t *testing.T, fault string, c Config) *Pool {
	t.Helper()
	c.Command = []string{os.Args[0], "serve", fault, filepath.Join(t.TempDir(), "marker")}
	p, err := Open(c)
	require.NoError(t, err)
	t.Cleanup(p.Close)
	return p
}

// begin asks for the beginning of an episode.
func begin(instance uint64) []foreign.Asked { return []foreign.Asked{{Instance: instance}} }

// playOne plays the first turn of the episode whose number is 3.
func playOne(s *foreign.Server) ([]foreign.Answer, error) {
	first, err := s.Play(context.Background(), begin(2))
	if err != nil {
		return nil, err
	}
	return s.Play(context.Background(), []foreign.Asked{{Instance: 2, Chain: first[0].Chain, Next: []string{"4"}}})
}

func TestPlay(t *testing.T) {
	for _, fault := range []string{standin.None, standin.Busy, standin.Exit} {
		p := open(t, fault, Config{})
		s, err := foreign.Connect(context.Background(), "guess", nil, p.Call)
		require.NoError(t, err, fault)
		require.Equal(t, 5, s.Description.MaxActions)
		answers, err := playOne(s)
		require.NoError(t, err, fault)
		require.Equal(t, "Lower.", answers[0].Observation)
		require.Equal(t, -0.1, answers[0].Steps[0].Reward)
	}
}

// A server that does wrong is refused with the kind of its wrong, and the next request
// meets a new process.
func TestFaultsAreRefusedByKind(t *testing.T) {
	for fault, kind := range map[string]error{
		standin.Hang: foreign.ErrTimeout, standin.Flood: foreign.ErrFlood, standin.Noise: foreign.ErrAnswer,
		standin.Quit: foreign.ErrExited, standin.Reply: foreign.ErrOther, standin.Episode: foreign.ErrOther,
		standin.Lie: foreign.ErrChain, standin.Upgrade: foreign.ErrVersion, standin.Raise: foreign.ErrBroken,
	} {
		t.Run(fault, func(t *testing.T) {
			leftover.Check(t) // a process that did wrong is killed, not only forgotten
			timeout := 20 * time.Second
			if fault == standin.Hang {
				timeout = time.Second
			}
			p := open(t, fault, Config{Timeout: timeout})
			s, err := foreign.Connect(context.Background(), "guess", nil, p.Call)
			require.NoError(t, err)
			_, err = playOne(s)
			require.ErrorIs(t, err, kind)
			require.ErrorContains(t, err, map[string]string{
				standin.Hang: "EnvPlay: no reply after 1s", standin.Quit: "while it was asked EnvPlay: it ended with exit status 1; it wrote nothing to standard error",
			}[fault])
			_, err = foreign.Connect(context.Background(), "guess", nil, p.Call)
			require.NoError(t, err, "the pool continues")
		})
	}
}

// An environment's own error is an answer about its episode alone, never a reward.
func TestBrokenEpisodes(t *testing.T) {
	p := open(t, standin.Broken, Config{})
	s, err := foreign.Connect(context.Background(), "guess", nil, p.Call)
	require.NoError(t, err)
	answers, err := s.Play(context.Background(), append(begin(2), begin(4)...))
	require.NoError(t, err)
	require.NoError(t, answers[0].Err)
	require.ErrorIs(t, answers[1].Err, foreign.ErrBroken)
	require.ErrorContains(t, answers[1].Err, "division by zero")
	require.Empty(t, answers[1].Steps)
}

// A server that is killed between or during requests is started again: same answers.
func TestKilledServer(t *testing.T) {
	p := open(t, standin.None, Config{Processes: 2})
	s, err := foreign.Connect(context.Background(), "guess", nil, p.Call)
	require.NoError(t, err)
	want, err := playOne(s)
	require.NoError(t, err)

	stop := make(chan struct{})
	var killer sync.WaitGroup
	killer.Add(1)
	kills := 0
	go func() {
		defer killer.Done()
		for {
			select {
			case <-stop:
				return
			case free := <-p.slots: // between its requests
				if free.process != nil {
					_ = syscall.Kill(free.process.Command.Process.Pid, syscall.SIGKILL)
					kills++
				}
				p.slots <- free
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	for range 40 {
		got, err := playOne(s)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	close(stop)
	killer.Wait()
	require.Positive(t, kills)
}

// A server that is killed in the middle of a request is started again, and the request gets
// the answer that an undisturbed server gives.
func TestKilledInARequest(t *testing.T) {
	undisturbed, err := foreign.Connect(context.Background(), "guess", nil, open(t, standin.None, Config{}).Call)
	require.NoError(t, err)
	want, err := undisturbed.Play(context.Background(), begin(2))
	require.NoError(t, err)

	p := open(t, standin.Stuck, Config{})
	s, err := foreign.Connect(context.Background(), "guess", nil, p.Call)
	require.NoError(t, err)
	killed := make(chan error, 1)
	go func() {
		for {
			pid, err := os.ReadFile(p.config.Command[3])
			if number, bad := strconv.Atoi(string(pid)); err == nil && bad == nil {
				killed <- syscall.Kill(number, syscall.SIGKILL)
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	got, err := s.Play(context.Background(), begin(2))
	require.NoError(t, err)
	require.NoError(t, <-killed)
	require.Equal(t, want, got)
}

// A process that a signal ends says which.
func TestCrash(t *testing.T) {
	p, err := Open(Config{Command: []string{"/bin/sh", "-c", "read line; kill -SEGV $$"}})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	_, err = foreign.Connect(context.Background(), "guess", nil, p.Call)
	require.ErrorIs(t, err, foreign.ErrExited)
	require.ErrorContains(t, err, "it ended with exit status 139 (segmentation fault)")
	p, err = Open(Config{Command: []string{t.TempDir()}})
	require.Error(t, err, "a folder is no program")
	require.Nil(t, p)
}

// Credentials of this process do not reach the environment's.
func TestSecretsStayHere(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "do-not-tell")
	t.Setenv("LANG", "en_US.UTF-8")
	p := open(t, standin.Secrets, Config{HashSeed: "7"})
	s, err := foreign.Connect(context.Background(), "guess", nil, p.Call)
	require.NoError(t, err)
	require.NotContains(t, s.Description.Instructions, "do-not-tell")
	require.Contains(t, s.Description.Instructions, "LANG=en_US.UTF-8")
	require.Contains(t, s.Description.Instructions, "PYTHONHASHSEED=7")
	for line := range strings.SplitSeq(s.Description.Instructions, "\n") {
		name, _, _ := strings.Cut(line, "=")
		require.Contains(t, append([]string{"PYTHONHASHSEED"}, inherited...), name)
	}
}

func TestCommands(t *testing.T) {
	name, command, err := Named("guess=python3 -u guess.py")
	require.NoError(t, err)
	require.Equal(t, "guess", name)
	require.Equal(t, []string{"python3", "-u", "guess.py"}, command)
	for _, value := range []string{"", "guess", "guess=", "=x", "guess= "} {
		_, _, err := Named(value)
		require.ErrorContains(t, err, "NAME=COMMAND", value)
	}
	_, err = Open(Config{Command: []string{"./no-such-program"}})
	require.ErrorContains(t, err, "chmod +x")
}

// checkOptions are of a check with the starter's tokenizer that times nothing.
func checkOptions(t *testing.T, instances int) foreign.CheckOptions {
	t.Helper()
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	return foreign.CheckOptions{Instances: instances, Tokenizer: tok, Model: "starter"}
}

// check runs the check of two processes.
func check(t *testing.T, first, second *Pool) map[string]string {
	t.Helper()
	return checkWith(t, first, second, "")
}

// checkWith runs the check with an environment's options.
func checkWith(t *testing.T, first, second *Pool, options string) map[string]string {
	t.Helper()
	var servers []*foreign.Server
	for _, p := range []*Pool{first, second} {
		s, err := foreign.Connect(context.Background(), "guess", []byte(options), p.Call)
		require.NoError(t, err)
		servers = append(servers, s)
	}
	findings, err := foreign.Check(context.Background(), servers[0], servers[1], checkOptions(t, 16))
	require.NoError(t, err)
	problems := map[string]string{}
	for _, f := range findings {
		if f.Problem != "" {
			problems[f.Part] = f.Problem
		}
	}
	return problems
}

// Each planted fault is found by the part of the check that is there for it.
func TestCheckFindsWhatIsPlanted(t *testing.T) {
	for fault, found := range map[string][2]string{
		standin.Random:     {"play", "drift"},
		standin.Order:      {"play", "drift"},
		standin.Deaf:       {"instances differ", "every instance"},
		standin.Wide:       {"no observation is wider than widest", "Try another number"},
		standin.Permissive: {"illegal and empty actions are counted and change nothing", "was executed"},
		standin.Broken:     {"play", "division by zero"},
		standin.Lie:        {"play", foreign.ErrChain.Error()},
	} {
		problems := check(t, open(t, fault, Config{}), open(t, fault, Config{}))
		text := problems[found[0]]
		if found[1] == "drift" {
			found[1] = foreign.ErrDrift.Error()
		}
		require.Contains(t, text, found[1], "%s: %v", fault, problems)
	}
	require.Empty(t, check(t, open(t, standin.None, Config{}), open(t, standin.None, Config{})))
}

// The examples of docs/own, with the package and without it, pass the check and survive kills.
func TestPythonExamples(t *testing.T) {
	for _, file := range []string{"guess.py", "bare.py"} {
		t.Run(file, func(t *testing.T) { pythonExample(t, file) })
	}
}

func pythonExample(t *testing.T, file string) {
	python(t)
	python := func(seed string) *Pool {
		p, err := Open(Config{Command: []string{"../../../docs/own/" + file}, HashSeed: seed})
		require.NoError(t, err)
		t.Cleanup(p.Close)
		return p
	}
	first, second := python("1"), python("2")
	require.Empty(t, check(t, first, second))

	s, err := foreign.Connect(context.Background(), "guess", []byte(`{"most":20}`), first.Call)
	require.NoError(t, err)
	require.Len(t, s.Description.Actions, 20)
	instance := foreign.Number(draw.Address{Purpose: draw.Instance})
	asked := begin(instance)
	for turn := 0; ; turn++ {
		free := <-first.slots
		require.NoError(t, syscall.Kill(free.process.Command.Process.Pid, syscall.SIGKILL))
		first.slots <- free
		answers, err := s.Play(context.Background(), asked)
		require.NoError(t, err)
		if turn == 3 || answers[0].Done {
			break
		}
		next := foreign.Asked{Instance: instance, Chain: answers[0].Chain, Played: asked[0].Played, Next: []string{"1"}}
		for _, step := range answers[0].Steps {
			next.Played = append(next.Played, step.Action)
		}
		asked = []foreign.Asked{next}
	}
	broken, err := s.Play(context.Background(), []foreign.Asked{{Instance: instance, Chain: "x", Played: []string{"not a number"}}})
	require.NoError(t, err)
	require.ErrorIs(t, broken[0].Err, foreign.ErrBroken)
}

func TestClose(t *testing.T) {
	p := open(t, standin.Hang, Config{})
	s, err := foreign.Connect(context.Background(), "guess", nil, p.Call)
	require.NoError(t, err)
	failed := make(chan error, 1)
	go func() {
		_, err := s.Play(context.Background(), begin(1))
		failed <- err
	}()
	time.Sleep(50 * time.Millisecond)
	p.Close()
	p.Close()
	require.True(t, errors.Is(<-failed, foreign.ErrTimeout))
}

// A reply with a number that is not finite is told from other output, and the key is named.
func TestNumbersThatAreNotFinite(t *testing.T) {
	for line, want := range map[string]string{
		`{"id": 3, "output": {"steps": [{"reward": NaN, "done": false}]}}`:       `"reward" is NaN, want a finite number`,
		`{"id": 3, "output": {"steps": [{"reward": -Infinity, "done": false}]}}`: `"reward" is -Infinity, want a finite number`,
		`{"id":3,"output":{"scores":[[1, 2], [0.5, nan]]}}`:                      `"scores" is nan, want a finite number`,
		`{"id": 3, "output": {"observation": "NaN", "rewards": }}`:               "want a reply; other output belongs on standard error",
		`loss: nan`: "want a reply; other output belongs on standard error",
	} {
		_, err := (&process{last: 3}).read([]byte(line))
		require.ErrorIs(t, err, foreign.ErrAnswer, line)
		require.ErrorContains(t, err, want, line)
	}
}
