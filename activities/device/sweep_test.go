package device

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/activities/sweeps"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

func resolvedSweep(t *testing.T, a *sweeps.Sweeps, format string, arguments ...any) activities.SweepResult {
	t.Helper()
	got, err := a.ResolveSweep(t.Context(), activities.ResolveSweepInput{ID: "s", Input: json.RawMessage(fmt.Sprintf(format, arguments...))})
	require.NoError(t, err)
	return got
}

func TestResolveSweep(t *testing.T) {
	a := &sweeps.Sweeps{Store: store.NewMemory()}
	const document = `{"base": "chaos", "grid": {"selection.keep": [0.25, 0.5, 1]}, "seeds": [1, 2]}`
	got := resolvedSweep(t, a, document)
	require.Equal(t, 6, got.Trials)
	require.Contains(t, got.Sweep.Key, "sweeps/s/definition.")
	require.False(t, got.SearchAttributes)
	require.Equal(t, got, resolvedSweep(t, a, document), "a second start is the first")

	page, err := a.SweepTrials(t.Context(), activities.SweepTrialsInput{Sweep: got.Sweep, From: 4, Count: 100})
	require.NoError(t, err)
	require.Equal(t, 6, page.Total)
	require.Len(t, page.Trials, 2)
	require.Equal(t, "selection.keep=0.5,seed=2", page.Trials[0].Label)
	require.Empty(t, page.Trials[0].Spec)
	page, err = a.SweepTrials(t.Context(), activities.SweepTrialsInput{Sweep: got.Sweep, From: 1, Count: 1, Specs: true})
	require.NoError(t, err)
	h := &host.Host{Store: a.Store}
	trial, err := h.Resolve(t.Context(), activities.ResolveInput{Run: "s/" + page.Trials[0].Label, Spec: page.Trials[0].Spec})
	require.NoError(t, err)
	require.Equal(t, 0.5, trial.Plan.Settings.Selection.Keep)
	page, err = a.SweepTrials(t.Context(), activities.SweepTrialsInput{Sweep: got.Sweep, From: 99, Count: 1})
	require.NoError(t, err)
	require.Empty(t, page.Trials)

	more, err := a.ExtendSweep(t.Context(), activities.ExtendSweepInput{ID: "s", Sweep: got.Sweep, Input: json.RawMessage(`{"grid": {"selection.keep": [0.75]}, "seeds": [1]}`)})
	require.NoError(t, err)
	require.Equal(t, 7, more.Trials)
	require.NotEqual(t, got.Sweep.Key, more.Sweep.Key)
	_, err = a.ExtendSweep(t.Context(), activities.ExtendSweepInput{ID: "s", Sweep: more.Sweep, Input: json.RawMessage(`{"grid": {"selection.keep": [0.75]}, "seeds": [1]}`)})
	require.Equal(t, activities.KindSpecInvalid, run.KindOf(err))
}

func TestResolveSweepRefuses(t *testing.T) {
	a := &sweeps.Sweeps{Store: store.NewMemory()}
	for document, want := range map[string]string{
		`{"base": "chaoss", "seeds": 2}`:                                                     `near it are chaos,`,
		`{"base": "chaos", "grid": {"environment.options.high_prob": [0.1]}}`:                "environment.options.high_prob",
		`{"base": "chaos", "grid": {"environment": [{"name": "bandit"}, {"name": "lake"}]}}`: `trial "environment=lake": environment.name: found "lake"`,
	} {
		_, err := a.ResolveSweep(t.Context(), activities.ResolveSweepInput{ID: "s", Input: json.RawMessage(document)})
		require.Equal(t, activities.KindSpecInvalid, run.KindOf(err), document)
		require.ErrorContains(t, err, want)
	}
	require.Empty(t, a.Store.(*store.Memory).Own(), "nothing is written")
}

// policiesOf are the policies that a sweep's first trials start from, and their specs.
func policiesOf(t *testing.T, a *sweeps.Sweeps, of activities.SweepResult) (from []string, specs []json.RawMessage) {
	t.Helper()
	page, err := a.SweepTrials(t.Context(), activities.SweepTrialsInput{Sweep: of.Sweep, Count: 9, Specs: true})
	require.NoError(t, err)
	for _, trial := range page.Trials {
		var s struct{ Policy struct{ From string } }
		require.NoError(t, json.Unmarshal(trial.Spec, &s))
		from, specs = append(from, s.Policy.From), append(specs, trial.Spec)
	}
	return from, specs
}

// A model that trials start from is fetched once, and named by its digest: all
// trials start from the same.
func TestResolveSweepImportsModelsOnce(t *testing.T) {
	a := &sweeps.Sweeps{Store: store.NewMemory()}
	got := resolvedSweep(t, a, `{"base": %s, "grid": {"policy.from": ["folder:%s", "starter"]}, "seeds": 2}`, tinySpec(t, `policy={}`, "rollout.max_new_tokens=8"), golden)
	from, specs := policiesOf(t, a, got)
	require.Regexp(t, `^model:[0-9a-f]{12}$`, from[0])
	require.Equal(t, []string{from[0], "starter", from[0], "starter"}, from)
	h := &host.Host{Store: a.Store}
	of, err := h.Resolve(t.Context(), activities.ResolveInput{Run: "r", Spec: specs[0]})
	require.NoError(t, err)
	require.NotNil(t, of.Base)

	_, err = a.ResolveSweep(t.Context(), activities.ResolveSweepInput{ID: "s", Input: json.RawMessage(fmt.Sprintf(`{"base": %s, "seeds": 1}`, folderSpec(t, "/nowhere")))})
	require.Equal(t, activities.KindModelInvalid, run.KindOf(err))
}

// Trials that are added start from what was imported at the start, whatever has
// become of the folder since.
func TestExtendSweepImportsNothingAgain(t *testing.T) {
	folder := copied(t)
	a := &sweeps.Sweeps{Store: store.NewMemory()}
	document := fmt.Sprintf(`{"base": %s, "grid": {"rollout.groups": [2, 4]}, "seeds": [1]}`, folderSpec(t, folder))
	got := resolvedSweep(t, a, "%s", document)
	require.Equal(t, got.Sweep, resolvedSweep(t, a, "%s", document).Sweep, "started again with the same document")
	froms := func(of activities.SweepResult) []string {
		from, _ := policiesOf(t, a, of)
		return from
	}
	first := froms(got)[0]
	require.Equal(t, []string{first, first}, froms(got))

	// The folder has other weights now, and then is gone.
	config, err := os.ReadFile(filepath.Join(folder, "config.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "config.json"), append(config, '\n'), 0o600))
	more := got
	for _, added := range []string{`{"seeds": [2]}`, fmt.Sprintf(`{"grid": {"policy.from": ["folder:%s"]}, "seeds": [3]}`, folder)} {
		more, err = a.ExtendSweep(t.Context(), activities.ExtendSweepInput{ID: "s", Sweep: more.Sweep, Input: json.RawMessage(added)})
		require.NoError(t, err)
		require.NoError(t, os.RemoveAll(folder))
	}
	require.Equal(t, []string{first, first, first, first}, froms(more))
	require.Contains(t, string(more.Definition.Base), folder, "what was written stays")

	table, err := a.WriteTable(t.Context(), activities.WriteTableInput{ID: "s", Sweep: more.Sweep, Records: make([]activities.TrialRecord, 4)})
	require.NoError(t, err)
	b, err := store.GetArtifact(t.Context(), a.Store, table.Table)
	require.NoError(t, err)
	require.Contains(t, string(b), more.Sweep.Digest)
}

// The table says what the store says of each trial, and nothing of when it was.
func TestSweepTable(t *testing.T) {
	r := begun(t, "s/seed=1", tinySpec(t))
	a := &sweeps.Sweeps{Store: r.store}
	got := resolvedSweep(t, a, `{"base": %s, "seeds": [1, 2], "metrics": ["reward/mean", "evaluation/success/mean", "none"],
		"early_stopping": {"method": "halving", "first": 2, "min_trials": 1}}`, tinySpec(t))
	first, second := r.iterate(t), r.iterate(t)

	in := activities.SummarizeInput{Definition: got.Definition, Trials: []activities.SummarizeTrial{{Run: "s/seed=1"}, {Run: "s/seed=2"}, {Run: "s/seed=1", Until: 1}}}
	out, err := a.Summarize(t.Context(), in)
	require.NoError(t, err)
	rewards := []float64{float64(first.Metrics["reward/mean"]), float64(second.Metrics["reward/mean"])}
	all, none, until := out.Outcomes[0], out.Outcomes[1], out.Outcomes[2]
	require.Equal(t, 2, all.Iterations)
	require.InDelta(t, rewards[1], float64(all.Values[0].Last), 0)
	require.InDelta(t, max(rewards[0], rewards[1]), float64(all.Values[0].Best), 0)
	require.Equal(t, 1, all.Values[1].At, "version 2 was evaluated, in iteration 1")
	require.Equal(t, -1, all.Values[2].At)
	require.Len(t, all.Points, 1)
	require.InDelta(t, rewards[1], float64(all.Points[0].Judged), 0)
	require.Equal(t, 0, none.Iterations)
	require.Empty(t, none.Points)
	require.Equal(t, 1, until.Iterations)
	require.InDelta(t, rewards[0], float64(until.Values[0].Last), 0)
	require.Equal(t, all.Points, until.Points, "what came behind does not count, but happened")
	require.Equal(t, activities.Metrics{"reward/mean": second.Metrics["reward/mean"], "evaluation/success/mean": evaluations(second, 2)["in-distribution"].Metrics["success/mean"]},
		activities.Reported(got.Definition.Metrics, second.Metrics, second.Evaluations, 2), "a trial reports what is read of it later")

	records := []activities.TrialRecord{
		{State: sweep.Done, Started: 1763735000, Ended: 1763735100, Iterations: 2, Values: all.Values, Points: all.Points, LostDevices: 1},
		{Index: 1, State: sweep.Failed, Started: 1763735000, Reason: "no device"},
	}
	table, err := a.WriteTable(t.Context(), activities.WriteTableInput{ID: "s", Sweep: got.Sweep, Records: records})
	require.NoError(t, err)
	b, err := store.GetArtifact(t.Context(), a.Store, table.Table)
	require.NoError(t, err)
	var read sweep.Table
	require.NoError(t, json.Unmarshal(b, &read))
	require.Equal(t, r.head.Digest, read.Rows[0].Manifest)
	require.Equal(t, second.StateAfter, read.Rows[0].Policy)
	require.Equal(t, 2, read.Rows[0].Iterations)
	require.Equal(t, all.Values[0], read.Rows[0].Metrics["reward/mean"])
	require.Equal(t, sweep.Failed, read.Rows[1].State)
	require.NotContains(t, string(b), "no device", "why an attempt failed is telemetry")
	require.Equal(t, 1, read.Settings[0].Done)

	records[0].Started, records[0].Ended, records[0].LostDevices, records[0].Recomputed = 5, 6, 7, 8
	again, err := a.WriteTable(t.Context(), activities.WriteTableInput{ID: "s", Sweep: got.Sweep, Records: records})
	require.NoError(t, err)
	require.Equal(t, table, again, "time and lost work are telemetry")
	b, _, err = store.ReadFixed(t.Context(), a.Store, "sweeps/s/telemetry.json", 1<<20)
	require.NoError(t, err)
	require.Contains(t, string(b), `"lost_devices": 7`)
	require.Regexp(t, `"memory_bytes": [1-9]`, string(b), "as validate estimates it")
	require.Equal(t, 1, strings.Count(string(b), "memory_bytes"), "of a trial that committed nothing it is not known")
	_, err = a.WriteTable(t.Context(), activities.WriteTableInput{ID: "s", Sweep: got.Sweep, Records: records[:1]})
	require.Equal(t, activities.KindInvalid, run.KindOf(err))

	// One trial's broken chain is that trial's trouble.
	alter(t, r.store, r.head.Key)
	out, err = a.Summarize(t.Context(), in)
	require.NoError(t, err)
	require.NotEmpty(t, out.Outcomes[0].Problem)
	require.Empty(t, out.Outcomes[1].Problem)
}

// If a trial is forked from another run's iteration, only its own iterations count.
func TestSummarizeBranchOfAnotherRun(t *testing.T) {
	source := begun(t, "source", tinySpec(t, "evaluation.every=0"))
	source.iterate(t)
	r := source.fork(t, "s/a", "evaluation.every=0", `from={"run":"source","iteration":0}`, "seed=9")
	own := r.iterateFork(t)
	a := &sweeps.Sweeps{Store: source.store}
	d := sweep.Definition{Metrics: []string{"reward/mean"}, Goal: sweep.Maximize, MaxIterations: 3, Stopping: &sweep.Stopping{Method: sweep.Median, First: 1, Every: 1}}
	out, err := a.Summarize(t.Context(), activities.SummarizeInput{Definition: d, Trials: []activities.SummarizeTrial{{Run: "s/a"}}})
	require.NoError(t, err)
	got := out.Outcomes[0]
	require.Equal(t, 2, got.Iterations)
	require.Equal(t, sweep.Value{Last: own.Metrics["reward/mean"], Best: own.Metrics["reward/mean"], At: 1}, got.Values[0])
	require.Len(t, got.Points, 2)
	require.True(t, math.IsNaN(float64(got.Points[0].Judged)), "it was not there at the first rung")
	require.InDelta(t, float64(own.Metrics["reward/mean"]), float64(got.Points[1].Judged), 0)
}

// If a trial was rolled back, a rung's point comes from the branch that first reached it,
// whatever follows. The table's row shows the newest branch; up to a rung it shows the
// branch that was judged.
func TestSummarizeAfterRollback(t *testing.T) {
	r := begun(t, "s/a", tinySpec(t, "evaluation.every=0"))
	first, second := r.iterate(t), r.iterate(t)
	d := sweep.Definition{Metrics: []string{"actor/entropy"}, Goal: sweep.Maximize, MaxIterations: 9, Stopping: &sweep.Stopping{Method: sweep.Halving, First: 2, Factor: 2}}
	a := &sweeps.Sweeps{Store: r.store}
	summarize := func(until int) activities.Outcome {
		out, err := a.Summarize(t.Context(), activities.SummarizeInput{Definition: d, Trials: []activities.SummarizeTrial{{Run: "s/a", Until: until}}})
		require.NoError(t, err)
		require.Empty(t, out.Outcomes[0].Problem)
		return out.Outcomes[0]
	}
	before := summarize(0)
	require.Len(t, before.Points, 1)

	// Back to iteration 0, and another three on branch 1.
	r.head, r.state, r.commits = second.Parent, first.StateAfter, r.commits[:1]
	r.restore(t, activities.RestoreInput{})
	var back []activities.CommitInput
	for n := range 3 {
		it := r.iteration()
		it.Branch = 1
		if n == 0 {
			it.Rolled = nil
		}
		in, err := r.Iterate(t.Context(), it)
		require.NoError(t, err)
		r.commit(t, in)
		back = append(back, in)
		require.Equal(t, before.Points, summarize(0).Points[:1], "a decision rests on it")
	}
	require.NotEqual(t, second.StateAfter, back[0].StateAfter)

	all := summarize(0)
	require.Equal(t, 1, all.Branch)
	require.Equal(t, 4, all.Iterations)
	require.InDelta(t, float64(back[2].Metrics["actor/entropy"]), float64(all.Values[0].Last), 0)
	require.Len(t, all.Points, 2)
	require.InDelta(t, float64(second.Metrics["actor/entropy"]), float64(all.Points[0].Judged), 0)
	require.InDelta(t, float64(back[2].Metrics["actor/entropy"]), float64(all.Points[1].Judged), 0)
	until := summarize(2)
	require.Equal(t, 0, until.Branch)
	require.Equal(t, 2, until.Iterations)
	require.InDelta(t, float64(second.Metrics["actor/entropy"]), float64(until.Values[0].Last), 0)
	require.Equal(t, 1, summarize(3).Branch)
}
