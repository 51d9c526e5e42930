package device

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/iteration"
)

// watched does the next iteration, and commits it. Around each step a test may look and meddle.
func (r *testRun) watched(t *testing.T, around func(name string, do func() any) any) activities.CommitInput {
	t.Helper()
	of := r.iteration()
	start := of.start(r.Device.Engine.Info())
	bound := append(r.Host.Steps(), r.Device.Steps()...)
	in, err := iteration.New(start, of.state(start.Head)).ToCommit(func(c iteration.Call) (any, error) {
		i := slices.IndexFunc(bound, func(b steps.Binding) bool { return b.Name == c.Name })
		return around(c.Name, func() any {
			got, err := bound[i].Call(t.Context(), c.Input)
			require.NoError(t, err, c.Name)
			return got
		}), nil
	})
	require.NoError(t, err)
	r.commit(t, in)
	return in
}

// exactRuns are runs whose rows are scored by the sampler, and runs in which something else needs a score.
var exactRuns = map[string]struct {
	edits    []string
	sampler  bool // scores
	weighted bool // by its weights against the sampler
}{
	"plain":     {sampler: true},
	"bfloat16":  {edits: []string{`policy.compute_dtype="bfloat16"`}, sampler: true},
	"adapters":  {edits: []string{`policy.lora={"rank":2,"alpha":4,"targets":["q_proj","down_proj"]}`}, sampler: true},
	"turns":     {edits: []string{`environment.name="sokoban"`, "rollout.turns=3"}, sampler: true},
	"shared":    {edits: []string{"freshness.online=2"}, sampler: true},
	"weights":   {edits: []string{`update.mismatch={"regime":"decoupled","weight":"token"}`}, sampler: true, weighted: true},
	"reference": {edits: []string{`update.kl_in="loss"`, "update.kl_coefficient=0.1"}},
	"critic":    {edits: []string{`credit.algorithm="gae"`}},
	"squares":   {edits: []string{`credit.algorithm="optimal_token_baseline"`}},
}

// Where the run is exact, what the sampler gives is what the training program computes; no row is scored unless something else needs its score.
func TestScoredBySampler(t *testing.T) {
	for name, of := range exactRuns {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := begun(t, "exact", tinySpec(t, append(of.edits, "evaluation.every=0", "update.learning_rate=0.03")...))
			require.Equal(t, of.sampler, r.ScoredBySampler)
			for n := range 2 {
				version, compared, own := r.version(), false, n == 0 || name != "shared" // which has sampled none of the second's rows
				in := r.watched(t, func(step string, do func() any) any {
					require.False(t, of.sampler && step == steps.Score.Name, "a row is scored")
					got := do()
					if of.sampler && step == steps.Select.Name { // the version is still on the device
						selected := got.(*activities.SelectResult)
						again, err := r.Device.Score(t.Context(), activities.ScoreInput{
							Policy: version, Iteration: version.Version, Settings: r.Settings, Trajectories: selected.Trajectories,
						})
						require.NoError(t, err)
						require.Equal(t, again.Scores, selected.Scored.Scores)
						compared = true
					}
					return got
				})
				require.Equal(t, of.sampler && own, compared)
				for _, name := range []string{collapse.MetricDiffering, collapse.MetricRolloutDiff, collapse.MetricRolloutDiffMax} {
					_, measured := in.Metrics[name]
					require.Equal(t, own, measured, "%s: the sampler is compared with nothing but the training program", name)
				}
				require.Zero(t, in.Metrics[collapse.MetricDiffering])
				require.Zero(t, in.Metrics[collapse.MetricRolloutDiffMax])
				if of.weighted {
					require.EqualValues(t, 1, in.Metrics["rollout_corr/rollout_is_mean"])
					require.EqualValues(t, 1, in.Metrics["rollout_corr/rollout_is_max"])
				}
			}
			r.rebuilt(t)
		})
	}
}

// Rows that were sampled by other weights than those of the version stop the run at once, and the event names the token.
func TestNotExact(t *testing.T) {
	for name, edits := range map[string][]string{
		"a micro-batch is scored again": {`update.learning_rate=0.01`}, "all rows are scored": {`update.kl_in="loss"`, "update.kl_coefficient=0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := begun(t, "stale", tinySpec(t, append(edits, "evaluation.every=0")...))
			require.Zero(t, r.iterate(t).Metrics[collapse.MetricDiffering])
			e := r.Device.Engine
			in := r.watched(t, func(step string, do func() any) any {
				if step != steps.Generate.Name {
					return do()
				}
				w, done, err := r.Device.begin(t.Context(), r.Run)
				require.NoError(t, err)
				p, err := e.programsFor(w.Context, r.Run, w.Shapes(w.Training, 1))
				require.NoError(t, err)
				other, err := p.Probe()
				require.NoError(t, err)
				done(&err)
				e.state, other = other, e.state
				got := do()
				e.state, other = other, e.state
				other.Free()
				return got
			})
			differing := in.Metrics[collapse.MetricDiffering]
			require.Positive(t, differing)
			require.Positive(t, in.Metrics[collapse.MetricRolloutDiffMax])
			require.NotEqual(t, in.Metrics[collapse.MetricSamplerLogProb], in.Metrics[collapse.MetricTrainerLogProb])
			i := slices.IndexFunc(in.Detected.Events, func(e collapse.Event) bool { return e.Detector == collapse.NotExact })
			require.GreaterOrEqual(t, i, 0)
			require.Equal(t, 1, in.Detected.Events[i].Iteration)
			require.Contains(t, in.Detected.Events[i].Text, "the first is that of row 0, token ")
			require.Equal(t, collapse.Stop, in.Detected.Decision.Action)
		})
	}
}

// A self-test refuses a device whose sampler gives other numbers than its scorer, and says which; a run without policy.exact does not ask.
func TestSelfTestIsExact(t *testing.T) {
	t.Parallel()
	for _, exact := range []bool{true, false} {
		r := begun(t, "asked", tinySpec(t, fmt.Sprint("policy.exact=", exact)))
		w, done, err := r.Device.begin(t.Context(), r.Run)
		require.NoError(t, err)
		shapes := w.Shapes(w.Training, 1)
		p, err := r.Device.Engine.programsFor(w.Context, r.Run, shapes)
		require.NoError(t, err)
		probe, err := p.Probe()
		require.NoError(t, err)
		in := w.selfTestPrompts(shapes, draw.Address{}.Rand())
		got, err := p.Sampler.Generate(t.Context(), probe, in)
		require.NoError(t, err)
		if exact {
			require.NoError(t, w.scoresAsSampled(t.Context(), p, probe, in, got))
		}
		got.Entropies[1][2] = math.Nextafter32(got.Entropies[1][2], 100)
		err = w.scoresAsSampled(t.Context(), p, probe, in, got)
		if exact {
			require.ErrorIs(t, err, activities.ErrNotExact)
			require.ErrorContains(t, err, fmt.Sprintf("the entropy of row 1 at place %d is ", len(in.Prompts[1])+2))
			require.ErrorContains(t, err, "pieces of the network is the same alone")
		} else {
			require.NoError(t, err)
		}
		probe.Free()
		err = nil
		done(&err)
	}
}

// Without policy.exact the difference of the sampler's log-probs from Score's is measured, and a run
// with a bound below it is warned. From its batches the run gets the same state.
func TestSamplerBesideScore(t *testing.T) {
	t.Parallel()
	r := begun(t, "rounded", tinySpec(t, "policy.exact=false", `environment.name="sokoban"`, "rollout.turns=3", "policy.starter.hidden_size=64",
		`collapse={"training_rollout_diff":{"above":1e-9}}`,
		"iterations=2", "evaluation.every=0", "snapshot.every=2"))
	in := r.iterate(t)
	mean, most := float64(in.Metrics[collapse.MetricRolloutDiff]), float64(in.Metrics[collapse.MetricRolloutDiffMax])
	t.Logf("difference %.2g, at most %.2g", mean, most)
	require.Greater(t, mean, 1e-9)
	require.Less(t, mean, 0.05, "the bound that the documentation shows")
	require.GreaterOrEqual(t, most, mean)
	require.True(t, slices.ContainsFunc(in.Detected.Events, func(e collapse.Event) bool { return e.Detector == collapse.RolloutDiff }))
	require.Equal(t, collapse.Warn, in.Detected.Decision.Action)
	r.rebuilt(t)
}
