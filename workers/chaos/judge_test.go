package chaos

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/envs/judge"
	"github.com/reprise-rl/reprise/infra/store"
)

// judgeSpec has each turn of a walk on a lake judged.
const judgeSpec = `{
	"seed": 1, "iterations": 2,
	"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 96, "heads": 2, "kv_heads": 1},
		"warm_start": {"steps": 40, "rows": 9, "learning_rate": 0.01}},
	"environment": {"name": "frozenlake", "options": {"size": 3}},
	"rewards": [%s],
	"rollout": {"groups": 4, "group_size": 4, "turns": 2, "max_new_tokens": 8, "think": false},
	"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 2}, "evaluation": {"every": 0}
}`

// modelJudge is the reward of a language model by turn.
const modelJudge = `{"name": "judge", "weight": 0.5, "options": {"judge": "grader", "model": "m", "level": "turn"}}`

const judgeKey = "chaos-judge-key"

// grading is a server of a language model that says yes or no by the question's digest. It is the witness of a run: it knows
// how often each question came, and whether one came that had an answer in the bucket.
type grading struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]int // by the question's digest
	again []string       // questions that came though they had an answer
	wrong []string
	// answers is how many requests are answered before all others are held until the channel is closed; 0 holds none.
	answers int
	held    chan struct{}
}

// graded begins the server of a lane, whose workers it is named to.
func graded(t *testing.T, l *lane) *grading {
	t.Helper()
	g := &grading{asked: map[string]int{}, held: make(chan struct{})}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var q judge.Request
		if err == nil {
			err = json.Unmarshal(body, &q)
		}
		digest, bad := run.DigestOf(map[string]any{"judge": "grader", "request": q})
		recorded := err == nil && bad == nil && answered(t, l)[digest]
		g.mu.Lock()
		if err != nil || bad != nil || r.Header.Get("Authorization") != "Bearer "+judgeKey {
			g.wrong = append(g.wrong, fmt.Sprint(err, bad, string(body)))
		}
		if recorded {
			g.again = append(g.again, digest)
		}
		g.asked[digest]++
		hold := g.answers > 0 && len(g.asked) > g.answers
		g.mu.Unlock()
		if hold {
			select {
			case <-g.held:
			case <-r.Context().Done():
				return
			}
		}
		says := map[bool]string{true: "yes", false: "no"}[sha256.Sum256([]byte(q.Messages[0].Content))[0]%2 == 0]
		fmt.Fprintf(w, `{"model": "grader-1", "choices": [{"message": {"content": "score: %s"}}]}`, says)
	}))
	t.Cleanup(g.Close)
	l.flags = append(l.flags, "--judge", "grader="+g.URL+"/v1", "--judge-variable", "grader=CHAOS_JUDGE_KEY")
	return g
}

// answered are the digests of the questions that have an answer in the lane's bucket.
func answered(t *testing.T, l *lane) map[string]bool {
	out := map[string]bool{}
	for o, err := range l.store.List(t.Context(), store.RunsDir) {
		if err != nil {
			return nil // the test ends
		}
		if _, name, found := strings.Cut(o.Key, ".answer."); found {
			out[strings.TrimSuffix(name, ".json")] = true
		}
	}
	return out
}

// witness has a server's log fit the bucket: each question has an answer, and none came that had one.
func (g *grading) witness(t *testing.T, l *lane) (asked map[string]int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Empty(t, g.wrong)
	require.Empty(t, g.again, "no question is asked that has an answer")
	require.NotEmpty(t, g.asked)
	have := answered(t, l)
	for digest := range g.asked {
		require.True(t, have[digest], "the question %s has an answer in the end", digest)
	}
	return g.asked
}

// TestChaosJudge kills the workers of a run that a language model judges, by turn, in each phase of Judge, and in the middle
// of its questions: the bytes are the same, and no question is asked that has an answer. The key is nowhere.
func TestChaosJudge(t *testing.T) {
	beside(t)
	with := workerOptions{env: []string{"CHAOS_JUDGE_KEY=" + judgeKey}}
	spec := fmt.Appendf(nil, judgeSpec, modelJudge)
	begin := func() (*lane, *grading) {
		l := newLane(t, sharedStack(t)).ofMethods()
		return l, graded(t, l)
	}
	undisturbed, g := begin()
	p := undisturbed.worker(with)
	undisturbed.start(foreignRun, spec)
	undisturbed.completes(foreignRun)
	p.kill()
	want, asked := reach(t, undisturbed.store, foreignRun), g.witness(t, undisturbed)
	for _, n := range asked {
		require.Equal(t, 1, n, "undisturbed, each question is asked once")
	}

	l, g := begin()
	stop := l.keepWith(with, "Judge/begin/1", "Judge/inside/1", "Judge/written/1", "Judge/begin/2")
	l.start(foreignRun, spec)
	l.completes(foreignRun)
	stop()
	l.isAs(foreignRun, want)
	g.witness(t, l)

	// In the middle: some questions have an answer, and the others are under way.
	const before = 4
	l, g = begin()
	g.answers = before
	p = l.worker(with)
	l.start(foreignRun, spec)
	eventually(t, patience, "some questions have an answer, and others are under way", func() error {
		g.mu.Lock()
		n := len(g.asked)
		g.mu.Unlock()
		if have := len(answered(t, l)); have < before || n <= before {
			return fmt.Errorf("%d of %d questions have an answer", have, n)
		}
		return nil
	})
	p.kill()
	close(g.held)
	first := answered(t, l)
	p = l.worker(with)
	l.completes(foreignRun)
	l.isAs(foreignRun, want)
	twice := 0
	for digest, n := range g.witness(t, l) {
		if first[digest] {
			require.Equal(t, 1, n, "what had an answer is not asked again")
		} else if n > 1 {
			twice++
		}
	}
	require.Len(t, first, before)
	require.Positive(t, twice, "what was under way is asked again")
	p.kill()
	for _, p := range l.processes {
		require.NotContains(t, p.text(), judgeKey)
	}
	for o, err := range l.store.List(t.Context(), "") {
		require.NoError(t, err)
		b, _, err := store.ReadFixed(t.Context(), l.store, o.Key, 1<<30)
		require.NoError(t, err)
		require.False(t, bytes.Contains(b, []byte(judgeKey)), o.Key)
	}
}

// serveJudge is the argument with which this program is a judge over standard input and output: a fault of the stand-in's,
// the marker file and the folder in which each process writes down what it is asked follow.
const serveJudge = "serve-judge"

func judgeProcess(fault, marker, folder string) error {
	log, err := os.CreateTemp(folder, "judge-*")
	if err != nil {
		return err
	}
	defer log.Close()
	return standin.Serve(io.TeeReader(os.Stdin, log), os.Stdout, fault, marker)
}

// TestChaosTurnJudge kills the workers of a run that a program judges, by turn, in each phase of Judge, and the program in the
// middle of a call: the bytes are the same, and no call is made again that has an answer.
func TestChaosTurnJudge(t *testing.T) {
	beside(t)
	spec := fmt.Appendf(nil, judgeSpec, `{"name": "foreign", "weight": 0.5, "options": {"name": "guess", "level": "turn", "episodes": 4, "timeout_seconds": 20}}`)
	dir := t.TempDir()
	lane := func(fault, name string) (l *lane, calls func() []string) {
		folder := filepath.Join(dir, name)
		require.NoError(t, os.Mkdir(folder, 0o700))
		l = newLane(t, sharedStack(t)).ofMethods()
		l.flags = append(l.flags, "--env-process", fmt.Sprintf("guess=%s %s %s %s %s", os.Args[0], serveJudge, fault, filepath.Join(dir, "marker"), folder))
		return l, func() (lines []string) {
			logs, err := filepath.Glob(filepath.Join(folder, "*"))
			require.NoError(t, err)
			for _, log := range logs {
				b, err := os.ReadFile(log)
				require.NoError(t, err)
				for line := range strings.Lines(string(b)) {
					if !strings.HasSuffix(line, "\n") {
						continue // the process was killed while it read the line
					}
					var asked struct{ Input json.RawMessage } // without the number of the request
					require.NoError(t, json.Unmarshal([]byte(line), &asked))
					require.NotEmpty(t, asked.Input)
					lines = append(lines, string(asked.Input))
				}
			}
			slices.Sort(lines)
			return lines
		}
	}
	undisturbed, made := lane(standin.None, "undisturbed")
	p := undisturbed.worker(workerOptions{})
	undisturbed.start(foreignRun, spec)
	undisturbed.completes(foreignRun)
	p.kill()
	want, calls := reach(t, undisturbed.store, foreignRun), made()
	require.Len(t, calls, 8, "16 episodes an iteration, four in a call")
	require.Contains(t, calls[0], `"level":"turn"`)

	l, made := lane(standin.None, "between")
	stop := l.keep("Judge/begin/1", "Judge/written/1", "Judge/begin/2")
	l.start(foreignRun, spec)
	l.completes(foreignRun)
	stop()
	l.isAs(foreignRun, want)
	require.Equal(t, calls, made())

	l, made = lane(standin.Stuck, "inside")
	disturb(t, l, spec, nil, filepath.Join(dir, "marker"), func() {})
	same(t, want, reach(t, l.store, foreignRun))
	again := made()
	require.Greater(t, len(again), len(calls), "the call in which the judge was killed was made again")
	require.Subset(t, again, calls)
}

// TestChaosOwnJudge kills the workers of a run that its own engine judges in each phase of Judge and Grade, before and after
// the questions are made: the bytes are the same, also on another number of devices, and a replay computes them again.
func TestChaosOwnJudge(t *testing.T) {
	beside(t)
	spec := fmt.Appendf(nil, judgeSpec, `{"name": "judge", "weight": 0.5, "options": {"judge": "run", "level": "turn", "prompt": "{reply} {form}", "prompt_tokens": 256,
		"max_tokens": 4, "failed_share": 1}}`)
	undisturbed := newLane(t, sharedStack(t)).ofMethods()
	p := undisturbed.worker(workerOptions{})
	undisturbed.start(chaosRun, spec)
	undisturbed.completes(chaosRun)
	p.kill()
	want := reach(t, undisturbed.store, chaosRun)
	graded := 0
	for key := range want {
		if strings.Contains(key, "/grades-1.") {
			graded++
		}
	}
	require.Equal(t, 2, graded, "each iteration has answers")

	l := newLane(t, sharedStack(t)).ofMethods()
	l.devices = []int{1, 2}
	stop := l.keep("Judge/inside/1", "Judge/written/1", "Grade/begin/1", "Grade/inside/1", "Grade/written/1", "Judge/begin/1")
	l.start(chaosRun, spec)
	l.completes(chaosRun)
	stop()
	l.isAs(chaosRun, want)
	l.flags = nil // those of a worker
	if flags := xlaFlags(); flags != "" {
		l.flags = []string{"--xla-flags", flags}
	}
	l.replays(1)
}
