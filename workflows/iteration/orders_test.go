package iteration

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
)

// outcome is what an iteration came to.
type outcome struct {
	State  string // as a run carries it
	Commit activities.CommitInput
	Head   *activities.Head
	Steps  []string // sorted
}

// driver runs an iteration in an order of its own.
type driver struct {
	t  *testing.T
	sc *scenario
	it *Iteration
	// pick says which of n things happens next: start one of the idle calls, or hand in
	// the result of one of the running.
	pick func(n int) int
	// overlap: calls run at once. Else each ends before the next begins.
	overlap bool
	// carried says whether the state is written down and read again after a call.
	carried func(c Call) bool

	running map[string]string // keys of calls, with their inputs as they were
	took    activities.Telemetry
	out     outcome
}

// run runs the iteration to its commit.
func (d *driver) run() outcome {
	d.it, d.running = New(d.sc.start, d.sc.state()), map[string]string{}
	for n := 0; !d.it.Done(); n++ {
		require.Less(d.t, n, 1000, "the iteration does not end")
		require.Nil(d.t, d.it.Committed(0))
		d.move(d.ready())
	}
	require.Empty(d.t, d.running, "steps run while the iteration is done")
	calls, err := d.it.Ready()
	require.NoError(d.t, err)
	require.Empty(d.t, calls)
	var recorded activities.Telemetry
	for _, took := range d.it.Timings {
		recorded = recorded.Plus(took)
	}
	require.Equal(d.t, d.took, recorded, "what all steps took but the commit")
	slices.Sort(d.out.Steps)
	d.out.State, d.out.Head = encoded(d.it.State), d.it.Committed(1)
	return d.out
}

// move begins a call that may run, or ends a running one.
func (d *driver) move(calls []Call) {
	var idle, running []Call
	for _, c := range calls {
		if input, ok := d.running[c.Key]; ok {
			require.Equal(d.t, input, encoded(c.Input), "%s: the input changed while the step ran", c.Key)
			running = append(running, c)
		} else {
			idle = append(idle, c)
		}
	}
	require.Len(d.t, running, len(d.running), "a call that was given before is given again until its result is applied")
	choices := len(idle)
	if d.overlap {
		choices += len(running)
	} else if len(running) > 0 {
		d.end(running[0])
		return
	}
	if i := d.pick(choices); i < len(idle) {
		d.running[idle[i].Key] = encoded(idle[i].Input)
	} else {
		d.end(running[i-len(idle)])
	}
}

// end hands in the result of a running call.
func (d *driver) end(c Call) {
	delete(d.running, c.Key)
	if c.Name != steps.Detect.Name {
		d.out.Steps = append(d.out.Steps, c.Key+" "+encoded(c.Input))
	}
	if c.Name == steps.Commit.Name {
		d.out.Commit = c.Input.(activities.CommitInput)
	}
	result := d.sc.result(c)
	if took := reflect.ValueOf(result).Elem().FieldByName("Telemetry"); took.IsValid() && c.Name != steps.Commit.Name {
		d.took = d.took.Plus(took.Interface().(activities.Telemetry))
	}
	if selected, ok := result.(*activities.SelectResult); ok && selected.Credited != nil {
		d.took = d.took.Plus(selected.Credited.Telemetry)
	}
	d.it.Apply(c, result)
	if c.Name == steps.Commit.Name || !d.carried(c) {
		return // a run carries no iteration that is committed
	}
	b, err := json.Marshal(d.it.State)
	require.NoError(d.t, err)
	var back State
	require.NoError(d.t, json.Unmarshal(b, &back))
	require.Equal(d.t, string(b), encoded(back), "everything comes back")
	d.it = New(d.sc.start, &back)
}

// ready asks twice for the calls that may run: the answers are the same, and the state
// stays as it is.
func (d *driver) ready() []Call {
	before := encoded(d.it.State)
	calls, err := d.it.Ready()
	require.NoError(d.t, err)
	again, err := d.it.Ready()
	require.NoError(d.t, err)
	require.Equal(d.t, described(calls), described(again))
	require.Equal(d.t, before, encoded(d.it.State), "Ready changes nothing")
	keys := map[string]bool{}
	for _, c := range calls {
		require.False(d.t, keys[c.Key], "two calls have the key %s", c.Key)
		keys[c.Key] = true
	}
	return calls
}

// described is all of the calls but the functions.
func described(calls []Call) (out []string) {
	for _, c := range calls {
		out = append(out, encoded([]any{c.Routing, c.Key, c.Input, c.Summary, c.Phase, c.Completes}))
	}
	return out
}

func never(Call) bool { return false }

// afterEach carries the state after each call. That the detectors have looked is not
// in the state if there are none: they look again, for ever if it were carried
// each time.
func (sc *scenario) afterEach(c Call) bool {
	return c.Name != steps.Detect.Name || sc.start.Plan.Collapse.OnDetection != ""
}

// The state, the manifest and what the next iteration begins with depend on the results
// alone: not on which call begins first, how many run at once, in which order their
// results come, or where the state is written down and read again.
func TestAnyOrder(t *testing.T) {
	const scenarios, orders = 120, 2
	seen := map[string]int{}
	for seed := range uint64(scenarios) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			sc := random(r)
			first := func(int) int { return 0 }
			want := (&driver{t: t, sc: sc, pick: first, carried: never}).run()
			for _, s := range want.Steps {
				seen[s[:3]]++
			}
			if want.Commit.Detected != nil {
				seen[string(want.Commit.Detected.Decision.Action)]++
			}
			require.Equal(t, want, (&driver{t: t, sc: sc, pick: first, carried: sc.afterEach}).run(), "carried after each call")
			for range orders {
				require.Equal(t, want, (&driver{t: t, sc: sc, pick: r.IntN, overlap: true, carried: never}).run(), "several at once")
				sometimes := func(Call) bool { return r.IntN(2) == 0 }
				require.Equal(t, want, (&driver{t: t, sc: sc, pick: r.IntN, overlap: true, carried: sometimes}).run(), "several at once, carried")
			}
		})
	}
	for _, kind := range []string{"Gen", "Joi", "Ask", "Ste", "Jud", "Sel", "Sco", "Dia", "Cre", "Upd", "Sna", "Mea", "Com", "stop", "rollback", "warn"} {
		require.Greater(t, seen[kind], 2, "scenarios have enough of %s", kind)
	}
}

// If rows are scored before they are selected, their credit comes with the selection; a host
// worker of an earlier release leaves it to a step of its own. Both come to the same.
func TestCreditWithSelection(t *testing.T) {
	credits := func(sc *scenario) (outcome, int) {
		out := (&driver{t: t, sc: sc, pick: func(int) int { return 0 }, carried: sc.afterEach}).run()
		all := len(out.Steps)
		out.Steps = slices.DeleteFunc(out.Steps, func(s string) bool { return strings.HasPrefix(s, "Credit ") })
		return out, all - len(out.Steps)
	}
	credited := 0
	for seed := range uint64(200) {
		sc := random(rand.New(rand.NewPCG(seed, 2)))
		if sc.start.Head != nil && sc.start.Head.NextRollout != nil {
			continue // it was made under settings of its own
		}
		sc.turns, sc.settings.Selection.Metric, sc.earlier, sc.start.Plan.ScoredBySampler = nil, "exact_entropy", false, false
		one, steps := credits(sc)
		sc.earlier = true
		two, more := credits(sc)
		require.Equal(t, two, one, "scenario %d", seed)
		if sc.shared == nil {
			require.Zero(t, steps, "scenario %d", seed)
			credited += more
		} else {
			require.Equal(t, more, steps, "it selects nothing itself")
		}
	}
	require.Greater(t, credited, 50, "scenarios have enough of it")
}

// Where the sampler scores, no step does: Select gives the scores, and the advantages.
func TestScoredBySampler(t *testing.T) {
	for _, algorithm := range []string{"", "state_baseline"} {
		sc := everything()
		sc.start.Plan.ScoredBySampler, sc.settings = true, settings(algorithm)
		sc.settings.Selection.Metric = "exact_entropy"
		var seen []string
		it := New(sc.start, sc.state())
		in, err := it.ToCommit(func(c Call) (any, error) {
			seen = append(seen, c.Name)
			return sc.result(c), nil
		})
		require.NoError(t, err)
		require.NotContains(t, seen, steps.Score.Name)
		require.NotContains(t, seen, steps.Credit.Name, "the selection has computed the advantages")
		require.NotNil(t, in.Scores)
		require.NotNil(t, in.Batch)
		require.Contains(t, in.Metrics, "actor/entropy")
		require.Nil(t, it.Selected.Scored, "it is carried once")
	}
}

// Steps that wait for nothing but each other's inputs do run at once.
func TestSeveralAtOnce(t *testing.T) {
	most := map[string]bool{}
	d := &driver{t: t, sc: everything(), overlap: true, carried: never}
	d.pick = func(n int) int {
		calls := d.ready()
		names := ""
		for _, c := range calls {
			names += c.Name + " "
		}
		most[names] = true
		if len(d.running) < len(calls) {
			return 0 // begin all that may run
		}
		return n - 1
	}
	d.run()
	require.Contains(t, most, "Generate Generate ", "the baseline and the rollout")
	require.Contains(t, most, "Generate Score Diagnose ", "the baseline, the scores and the diagnosis")
	require.Contains(t, most, "Snapshot Generate ", "the snapshot and the evaluation")
}

// A step in pieces is called once for each, with those before it in their order. What
// follows takes the last one's table alone, and nothing of the pieces is left.
func TestPieces(t *testing.T) {
	sc := everything()
	sc.pieces = 3
	pieces, calls := map[string][]store.Ref{}, map[string]int{}
	var generated store.Ref
	it := New(sc.start, sc.state())
	_, err := it.ToCommit(func(c Call) (any, error) {
		calls[c.Name]++
		result := sc.result(c)
		took := func(got []store.Ref, table store.Ref) {
			require.Equal(t, pieces[c.Name], got)
			require.Equal(t, len(got) > 0, strings.Contains(c.Key+c.Summary, "piece"))
			pieces[c.Name] = append(pieces[c.Name][:len(got):len(got)], table)
			if len(pieces[c.Name]) == sc.pieces {
				pieces[c.Name] = nil
			}
		}
		switch in := c.Input.(type) {
		case activities.GenerateInput:
			generated = result.(*activities.GenerateResult).Table
			took(in.Pieces, generated)
		case activities.StepInput:
			require.Equal(t, generated, in.Generate)
		case activities.ScoreInput:
			took(in.Pieces, result.(*activities.ScoreResult).Scores)
		case activities.DiagnoseInput:
			if out := result.(*activities.DiagnoseResult); out.Piece != nil {
				took(in.Pieces, *out.Piece)
			} else {
				took(in.Pieces, store.Ref{})
			}
		}
		return result, nil
	})
	require.NoError(t, err)
	require.Equal(t, 3*calls["Step"], calls["Generate"])
	require.Equal(t, []int{3, 3, 3, 3}, []int{calls["Score"], calls["Diagnose"], calls["Update"], calls["Snapshot"]})
	require.Nil(t, it.Updating)
	require.NotNil(t, it.Updated)
	require.Nil(t, it.Storing)
	require.NotNil(t, it.State.Snapshot)
	require.Empty(t, it.Rollout.Pieces)
	require.Empty(t, it.Scoring)
	require.Empty(t, it.Diagnosing)
}

// An Evaluate's iteration measures its suites and does nothing else.
func TestEvaluationAlone(t *testing.T) {
	sc := everything()
	sc.start.Apart = "evaluate-1"
	it := NewEvaluation(sc.start, sc.state())
	for !it.Done() {
		calls, err := it.Ready()
		require.NoError(t, err)
		require.Len(t, calls, 1)
		if in, ok := calls[0].Input.(activities.MeasureInput); ok {
			require.Equal(t, "evaluate-1", in.Rollout.Evaluation.Apart)
		}
		it.Apply(calls[0], sc.result(calls[0]))
	}
	require.Len(t, it.Evaluations, 2)
	require.Equal(t, "near", it.Evaluated(0).Suite)
	require.Nil(t, it.Selected)
}
