package device

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/judge"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// judged are the language models with which runs of tests begin.
var judged = map[string]host.ModelJudge{"grader": absent{}}

// grader is a server that judges: what it says is decided by the question. It counts the requests it got.
type grader struct {
	mu    sync.Mutex
	says  func(judge.Request) string // "" breaks the connection
	asked map[string]int
}

func (g *grader) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	var q judge.Request
	if err = errors.Join(err, json.Unmarshal(b, &q)); err != nil || r.Header.Get("Authorization") != "Bearer grader-key" {
		http.Error(w, fmt.Sprint("another request: ", err), http.StatusTeapot)
		return
	}
	g.mu.Lock()
	g.asked[string(b)]++
	says := g.says
	g.mu.Unlock()
	reply, code := says(q), http.StatusOK
	if reply == "refuse" {
		code = http.StatusBadRequest
	}
	content, _ := json.Marshal(reply)
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"model": "grader-7b", "choices": [{"message": {"content": %s}}]}`, content)
}

// counts is how many requests there were, and how many of them were asked more than once.
func (g *grader) counts() (all, again int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.asked {
		all += n
		if n > 1 {
			again++
		}
	}
	return all, again
}

// set changes what is said and forgets what was asked.
func (g *grader) set(says func(judge.Request) string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.says, g.asked = says, map[string]int{}
}

// A language model judges the turns of episodes: an answer is recorded before it is used, and a question that has one is
// not asked again, also where the step is lost in the middle.
func TestModelJudge(t *testing.T) {
	ctx := t.Context()
	g := &grader{}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	client, err := judge.Open(judge.Server{Name: "grader", URL: server.URL + "/v1", Key: "grader-key"})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	w := newToJudge(t,
		`rewards=[{"name":"judge","weight":0.5,"options":{"judge":"grader","model":"m","level":"turn","components":"right 1, kind 2","unreadable":0.25,`+
			`"criteria":{"right":"does it go right?","kind":"is it kind?"},"failed_share":0.2,"prompt":"{conversation}\nTURN {turn}: {reply}\n{form}","temperature":0.5}}]`)
	ask := w.ask
	by := func() (*host.Host, store.Store) {
		over := store.NewOverlay(w.store)
		return &host.Host{Store: over, Judges: map[string]host.ModelJudge{"grader": client}}, over
	}
	reads := func(q judge.Request) string {
		text := q.Messages[0].Content
		right := strings.Contains(text[strings.Index(text, "TURN "):], ": Right")
		return fmt.Sprintf("I think so.\nright: %s\nkind: yes", map[bool]string{true: "yes", false: "no"}[right])
	}
	g.set(reads)
	h, s := by()
	got, err := h.Judge(ctx, ask)
	require.NoError(t, err)
	all, again := g.counts()
	require.Positive(t, all)
	require.Less(t, all, 16, "equal questions of a round are asked once")
	require.Zero(t, again)
	rows, err := tables.Get[run.VerdictRow](ctx, s, got.Table)
	require.NoError(t, err)
	require.Len(t, rows, 8)
	for i, r := range rows {
		right := map[bool]float64{true: 1}[strings.HasPrefix(w.wrote[i], "Right")]
		require.Equal(t, []float64{right, right, 1, 1}, r.Values)
		require.Equal(t, "grader-7b", r.Model)
		require.Len(t, r.Prompt, 64)
		require.JSONEq(t, `["read", "read"]`, r.Verdict)
		require.Contains(t, r.Raw, "I think so.")
	}
	out := w.selects(h, got.Table)
	require.Equal(t, canon.Float(0), out.Metrics["judge/unreadable"])
	require.Equal(t, canon.Float(0), out.Metrics["judge/again"])
	require.Equal(t, canon.Float(0.5), out.Metrics["verdicts/right/mean"])
	require.Equal(t, canon.Float(0), out.Metrics["verdicts/failed"])

	t.Run("the recorded answers count", func(t *testing.T) {
		g.set(func(judge.Request) string { return "right: no\nkind: no" })
		require.NoError(t, s.Delete(ctx, got.Table.Key), "as if the worker had ended before it stored the table")
		same, err := h.Judge(ctx, ask)
		require.NoError(t, err)
		require.Equal(t, got.Table, same.Table)
		n, _ := g.counts()
		require.Zero(t, n)
	})
	t.Run("drift", func(t *testing.T) {
		m := &store.Manifest{Turns: w.judged(got.Table)}
		g.set(reads)
		drifts, compared, err := h.Drifts(ctx, w.Run, m)
		require.NoError(t, err)
		require.Empty(t, drifts)
		require.Equal(t, 8, compared)
		g.set(func(q judge.Request) string { return strings.Replace(reads(q), "kind: yes", "kind: no", 1) })
		drifts, _, err = h.Drifts(ctx, w.Run, m)
		require.NoError(t, err)
		require.Len(t, drifts, 8)
		require.Equal(t, "turn 2, group 0, member 0: verdict of judge grader: values: recorded [1,1,1,1], now [1,1,0,0]", drifts[0].String())
		drifts, compared, err = (&host.Host{Store: s}).Drifts(ctx, w.Run, m)
		require.NoError(t, err)
		require.Empty(t, drifts)
		require.Zero(t, compared, "a judge that is not named is not asked")
	})
	t.Run("killed in the middle", func(t *testing.T) {
		h, s := by()
		ended, stop := context.WithCancel(ctx)
		g.set(func(q judge.Request) string {
			if n, _ := g.counts(); n == 3 {
				stop()
			}
			return reads(q)
		})
		_, err := h.Judge(ended, ask)
		require.ErrorIs(t, err, context.Canceled)
		recorded := map[string]bool{}
		for o, err := range s.List(ctx, store.RunsDir) {
			require.NoError(t, err)
			if strings.Contains(o.Key, "verdicts.answer.") {
				recorded[o.Key] = true
			}
		}
		g.set(reads)
		same, err := h.Judge(ctx, ask)
		require.NoError(t, err)
		require.Equal(t, got.Table.Content, same.Table.Content)
		rest, twice := g.counts() // a question of the attempt that was killed may arrive only now
		require.Equal(t, all, rest-twice+len(recorded), "what has an answer is not asked again")
	})
	t.Run("an answer that cannot be read", func(t *testing.T) {
		h, s := by()
		var mu sync.Mutex
		temperatures := map[int][]float64{} // by the number of messages
		g.set(func(q judge.Request) string {
			mu.Lock()
			temperatures[len(q.Messages)] = append(temperatures[len(q.Messages)], q.Temperature)
			mu.Unlock()
			text := q.Messages[0].Content
			if strings.Contains(text, "TURN 2: Left") || strings.Contains(text, "TURN 1: Left") && len(q.Messages) == 1 {
				return "Maybe."
			}
			return reads(q)
		})
		got, err := h.Judge(ctx, ask)
		require.NoError(t, err)
		rows, err := tables.Get[run.VerdictRow](ctx, s, got.Table)
		require.NoError(t, err)
		for i, r := range rows {
			if strings.HasPrefix(w.wrote[i], "Left") {
				require.JSONEq(t, `["read again", "unreadable"]`, r.Verdict)
				require.Equal(t, []float64{0, 0.25, 1, 0.25}, r.Values)
			}
		}
		out := w.selects(h, got.Table)
		require.Equal(t, canon.Float(4./16), out.Metrics["judge/unreadable"])
		require.Equal(t, canon.Float(4./16), out.Metrics["judge/again"])
		require.NotEmpty(t, temperatures[3])
		for n, of := range temperatures {
			for _, temperature := range of {
				require.Equal(t, map[int]float64{1: 0.5, 3: 0}[n], temperature, "the second question is asked at temperature 0")
			}
		}
	})
	t.Run("refused", func(t *testing.T) {
		h, _ := by()
		g.set(func(q judge.Request) string {
			if strings.Contains(q.Messages[0].Content, "TURN 1: Left") {
				return "refuse"
			}
			return reads(q)
		})
		_, err := h.Judge(ctx, ask)
		require.ErrorIs(t, err, activities.ErrEnvironment)
		require.ErrorContains(t, err, "the judge gave no verdict about 4 of 8 episodes, and its option failed_share is 0.2")
		require.ErrorContains(t, err, "400 Bad Request")
	})
	t.Run("not there", func(t *testing.T) {
		h := &host.Host{Store: store.NewOverlay(w.store)}
		_, err := h.Judge(ctx, ask)
		require.ErrorIs(t, err, activities.ErrNotServed)
		_, err = h.Resolve(ctx, activities.ResolveInput{Run: "other", Spec: tinySpec(t, `rewards=[{"name":"judge","options":{"judge":"grader","model":"m"}}]`)})
		require.ErrorIs(t, err, activities.ErrNotServed)
		require.ErrorContains(t, err, "reward judge: ")
		require.ErrorContains(t, err, "--judge grader=URL")
		h.Judges = judged
		_, err = h.Judge(ctx, ask)
		require.ErrorIs(t, err, activities.ErrEnvironment)
		require.ErrorContains(t, err, "the judge's server is not there")
	})
}

// Where the run's own engine judges, the host makes the questions, and verdicts of what a device answers.
func TestOwnJudge(t *testing.T) {
	ctx := t.Context()
	w := newToJudge(t, "limits.generate_rows=4", "rollout.pass_rows=4",
		`rewards=[{"name":"judge","weight":0.5,"options":{"judge":"run","scale":"0 to 4","level":"turn","failed_share":0.5,"unreadable":0.5}}]`)
	require.Equal(t, 16, w.Plan.Questions)
	s := store.NewOverlay(w.store)
	h := &host.Host{Store: s}
	in := w.ask
	asked, err := h.Judge(ctx, in)
	require.NoError(t, err)
	require.Empty(t, asked.Table.Key)
	last := &in.Turns[1]
	last.Questions = asked.Questions
	seen := 0
	for piece, ref := range asked.Questions {
		questions, err := tables.Get[run.QuestionRow](ctx, s, ref)
		require.NoError(t, err)
		require.LessOrEqual(t, len(questions), 4)
		var rows []run.GradeRow
		for _, q := range questions {
			require.Contains(t, q.Text, "has this turn brought the agent nearer")
			require.NotContains(t, q.Text, w.tok.Decode([]int32{w.end}), "no question has the token that ends a turn")
			row := run.GradeRow{Question: q.Question, Reply: "Well.\nscore: 3"}
			switch seen++; seen {
			case 1:
				row.Reply, row.Refused = "", "it has 9 tokens"
			case 3:
				row.Reply = "score: 5"
			}
			rows = append(rows, row)
		}
		ref, err := tables.Put(ctx, s, "runs/graded", fmt.Sprint("grades-", piece), rows)
		require.NoError(t, err)
		last.Grades = append(last.Grades, ref)
	}
	require.Greater(t, seen, 2)
	got, err := h.Judge(ctx, in)
	require.NoError(t, err)
	require.Nil(t, got.Questions)
	verdicts, err := tables.Get[run.VerdictRow](ctx, s, got.Table)
	require.NoError(t, err)
	values := map[string]int{}
	for _, v := range verdicts {
		values[fmt.Sprint(v.Values, v.Verdict, v.Failed != "")]++
		if v.Failed == "" {
			require.Equal(t, "run first", v.Model)
		}
	}
	require.Equal(t, map[string]int{`[0.5 0.75]["unreadable","read"]false`: 4, `[]true`: 4}, values, "the likeliest tokens are not asked for again")
	out := w.selects(h, got.Table)
	require.Positive(t, float64(out.Metrics["judge/unreadable"]))
	require.Positive(t, float64(out.Metrics["verdicts/failed"]))

	// An answer that is missing is damage.
	last.Grades = last.Grades[:len(last.Grades)-1]
	_, err = h.Judge(ctx, in)
	require.ErrorIs(t, err, store.ErrInvalid)
}

// absent is a server that is not there.
type absent struct{}

func (absent) Ask(context.Context, judge.Request, time.Duration) (judge.Answer, error) {
	return judge.Answer{}, judge.ErrExited
}
