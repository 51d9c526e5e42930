package program

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/dev/devtest"
	"github.com/reprise-rl/reprise/workers/envturn/envserver"
)

// standinScript is a program that serves the stand-in with a fault: this test's own program.
func standinScript(t *testing.T, fault string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "serve.sh")
	text := "#!/bin/sh\nexec '" + os.Args[0] + "' serve-standin " + fault + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

func TestEnvCheck(t *testing.T) {
	out, _, err := runEnv(t, "", "check", "guess", "--env-process", "guess="+standinScript(t, standin.None))
	require.NoError(t, err, out)
	require.Contains(t, out, `ok      describe (version "guess-1")`)
	require.Contains(t, out, "ok      instances differ")
	require.Regexp(t, `ok      two requests at the same time \(a turn of 128 episodes takes [0-9.]+ ms, the median of [0-9]+\)`, out)
	require.NotContains(t, out, "FAILED")

	out, _, err = runEnv(t, "", "check", "guess", "--json", "--env-process", "other=x", "--env-process", "guess="+standinScript(t, standin.Wide))
	require.EqualError(t, err, `environment "guess": 1 of 14 parts of the check failed`)
	require.Contains(t, out, `{"part":"no observation is wider than widest","problem":"the observation \"`)
	require.Contains(t, out, `{"part":"instances differ"}`)

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"check"}, "NAME is missing"},
		{[]string{"check", "guess"}, `add --env-process guess=COMMAND, or --env-temporal guess`},
		{[]string{"check", "guess", "--env-temporal", "guess", "--address", "nowhere"}, "not host:port"},
		{[]string{"check", "guess", "--env-process", "guess"}, "want NAME=COMMAND"},
		{[]string{"check", "guess", "--env-process", "guess=./nothing.py"}, "chmod +x"},
		{[]string{"check", "guess", "--options", "{", "--env-process", "guess=" + standinScript(t, standin.None)}, "options are not JSON"},
		{[]string{"check", "guess", "--instances", "0", "--env-process", "guess=" + standinScript(t, standin.None)}, "want 1 to 64"},
		{[]string{"check", "guess", "--env-openenv", "guess"}, "want NAME=URL"},
		{[]string{"check", "guess", "--env-openenv", "guess=http://host"}, "ws://127.0.0.1:8000/ws"},
	} {
		_, _, err := runEnv(t, "", c.args...)
		require.ErrorContains(t, err, c.want, "%q", c.args)
	}
}

// Tokens are those of the run that the check is for: of its model, and within its spec's limits.
func TestEnvCheckForARun(t *testing.T) {
	process := "guess=" + standinScript(t, standin.None)
	folder := t.TempDir()
	for name, b := range starter.Second.Files() {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), b, 0o644))
	}
	out, _, err := runEnv(t, "", "check", "guess", "--env-process", process, "--model", "folder:"+folder)
	require.ErrorContains(t, err, "1 of 14 parts", "widest fits the starter's first tokenizer, and not its second")
	require.Contains(t, out, "11 tokens of folder:"+folder+" are allowed, the widest met has 12")
	require.Contains(t, out, `the observation "Found." has 12 tokens, the widest of the description 11: add it to widest`)

	specs := map[string]string{"": `{"max_new_tokens":8}`, "its answer has 8 tokens, rollout.max_new_tokens is 7": `{"max_new_tokens":7}`,
		"turn 1 needs a context of 128 tokens, and a run has room for 112": `{"turns":2,"prompt_tokens":[112,224]}`}
	for want, rollout := range specs {
		file := filepath.Join(t.TempDir(), "spec.json")
		require.NoError(t, os.WriteFile(file, []byte(`{"environment":{"name":"foreign","options":{"name":"guess"}},"rollout":`+rollout+`}`), 0o644))
		out, _, err := runEnv(t, "", "check", "guess", "--env-process", process, "--spec", file)
		if want == "" {
			require.NoError(t, err, out)
			continue
		}
		require.EqualError(t, err, `environment "guess": 1 of 15 parts of the check failed`, out)
		require.Contains(t, out, want)
	}

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--model", "folder:/nope"}, "tokenizer of folder:/nope: open model folder"},
		{[]string{"--model", "folder:" + t.TempDir()}, "it has no tokenizer.json"},
		{[]string{"--model", "model:0123456789ab"}, "a stored model is not read here"},
		{[]string{"--model", "qwen"}, `a hub name is written "hf:NAME"`},
		{[]string{"--model", "starter", "--spec", "x"}, "leave --model out"},
		{[]string{"--spec", "/nope.json"}, "no such file"},
	} {
		_, _, err := runEnv(t, "", append([]string{"check", "guess", "--env-process", process}, c.args...)...)
		require.ErrorContains(t, err, c.want, "%q", c.args)
	}
}

// A judge is checked by what a run asks it: the components of its flags or its spec, over made-up or given episodes.
func TestEnvCheckJudge(t *testing.T) {
	process := "judge=" + standinScript(t, standin.None)
	out, _, err := runEnv(t, "", "check", "--judge", "judge", "--env-process", process, "--components", "correct 0.7, polite 0.3")
	require.NoError(t, err, out)
	require.Contains(t, out, "ok      component polite (-0.2 to 1, mean 0.1875)")

	out, _, err = runEnv(t, "", "check", "--judge", "judge", "--env-process", process, "--level", "turn")
	require.NoError(t, err, out)
	require.Contains(t, out, "ok      component score (-0.1 to 1, mean 0.15 of 10 turns)")

	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	episodes := file("episodes.jsonl", `{"environment":"guess","instructions":"Find it.","turns":[{"observation":"Guess.","reply":"1","actions":["1"],"reward":1}],"observation":"Found.","reward":0.5,"success":true}`+"\n")
	run := file("spec.json", `{"environment":{"name":"bandit"},"rewards":[{"name":"foreign","options":{"name":"judge","components":"kind 1"}}]}`)
	out, _, err = runEnv(t, "", "check", "--judge", "judge", "--env-process", process, "--episodes", episodes, "--spec", run, "--json")
	require.NoError(t, err, out)
	require.Contains(t, out, `{"part":"component kind","note":"0.5 to 0.5, mean 0.5"}`)

	turns := file("turns.json", `{"environment":{"name":"bandit"},"rewards":[{"name":"foreign","options":{"name":"judge","components":"kind 1","level":"turn"}}]}`)
	out, _, err = runEnv(t, "", "check", "--judge", "judge", "--env-process", process, "--episodes", episodes, "--spec", turns, "--json")
	require.NoError(t, err, out)
	require.Contains(t, out, `{"part":"component kind","note":"1 to 1, mean 1 of 1 turns"}`)

	out, _, err = runEnv(t, "", "check", "--judge", "judge", "--env-process", "judge="+standinScript(t, standin.Lie))
	require.EqualError(t, err, `judge "judge": 1 of 1 parts of the check failed`)
	require.Contains(t, out, "episodes[0].components.score: found nothing")

	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--components", "score"}, "components: found \"score\""},
		{[]string{"--level", "step"}, "level: found \"step\""},
		{[]string{"--options", "{"}, "--options: they are not JSON"},
		{[]string{"--model", "starter"}, "--model is for an environment"},
		{[]string{"--spec", file("other.json", `{"environment":{"name":"bandit"}}`)}, `no reward foreign whose option name is "judge"`},
		{[]string{"--episodes", "/nope"}, "--episodes: open /nope"},
		{[]string{"--episodes", file("bad", "\n{\"turn\":1}")}, `line 2: json: unknown field "turn"`},
		{[]string{"--episodes", file("none", "")}, "has no episode"},
		{[]string{"--episodes", file("few", "{}")}, "an episode has turns"},
	} {
		_, _, err := runEnv(t, "", append([]string{"check", "--judge", "judge", "--env-process", process}, c.args...)...)
		require.ErrorContains(t, err, c.want, "%q", c.args)
	}
	_, _, err = runEnv(t, "", "check", "judge", "--env-process", process, "--components", "score 1")
	require.ErrorContains(t, err, "--components is for a judge: add --judge")
	asJudge := filepath.Join(dir, "judge.sh")
	require.NoError(t, os.WriteFile(asJudge, []byte("#!/bin/sh\nread -r line\necho \"KeyError: 'episodes'\" >&2\nexit 1\n"), 0o755))
	_, _, err = runEnv(t, "", "check", "judge", "--env-process", "judge="+asJudge)
	require.ErrorContains(t, err, "(a judge is checked with --judge)")
}

// A check that waits says so: for what, and how long an answer may take.
func TestEnvCheckSaysThatItWaits(t *testing.T) {
	var out syncWriter
	p := &progress{out: &out, may: time.Minute, done: make(chan struct{}), since: time.Now().Add(-time.Hour)}
	watched := make(chan struct{})
	go func() { defer close(watched); p.watch(time.Millisecond) }()
	require.Eventually(t, func() bool {
		return strings.Contains(out.String(), "waiting for the description 1h0m0s; each answer may take 1m0s (--timeout)\n")
	}, 10*time.Second, time.Millisecond)
	p.after("play")
	require.Eventually(t, func() bool { return strings.Contains(out.String(), `waiting for what follows "play" 0s`) }, 10*time.Second, time.Millisecond)
	p.stop()
	<-watched
}

// syncWriter is a buffer that several goroutines use.
type syncWriter struct {
	lock sync.Mutex
	b    strings.Builder
}

func (w *syncWriter) Write(p []byte) (int, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.b.Write(p)
}

func (w *syncWriter) String() string {
	w.lock.Lock()
	defer w.lock.Unlock()
	return w.b.String()
}

// Workers of Temporal's are checked without any other worker of this program.
func TestEnvCheckOverTemporal(t *testing.T) {
	s, err := dev.Start(t.Context(), dev.Options{Ephemeral: true})
	devtest.Needs(t, err)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	c, err := client.Dial(client.Options{HostPort: s.TemporalAddress(), Namespace: s.Namespace()})
	require.NoError(t, err)
	defer c.Close()
	w, err := envserver.Start(c, "guess", standin.Wide, "")
	require.NoError(t, err)
	defer w.Stop()
	out, _, err := runEnv(t, "", "check", "guess", "--env-temporal", "guess", "--address", s.TemporalAddress(), "--instances", "2")
	require.EqualError(t, err, `environment "guess": 1 of 14 parts of the check failed`)
	require.Contains(t, out, `ok      describe (version "guess-1")`)
	require.Contains(t, out, "FAILED  no observation is wider than widest")

	_, _, err = runEnv(t, "", "check", "other", "--env-temporal", "other", "--address", s.TemporalAddress(), "--timeout", "1s")
	require.ErrorContains(t, err, "no worker of queue reprise-env.other took EnvDescribe within 1s")
}
