package methods

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workers/lab/study"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Every run is a spec that can be started. All have one task, warm start and learning rate, and end by
// the tokens; what a method is comes from its preset.
func TestSpecs(t *testing.T) {
	methodstest.NeedsAll(t)
	var first spec.Train
	seen := map[string]bool{}
	for i, m := range Methods {
		text, err := m.Spec(3, 1000)
		require.NoError(t, err)
		s, err := spec.Decode(text, run.Known())
		require.NoError(t, err, m.Name)
		if i == 0 {
			first = s
		}
		if m.Start != "" {
			require.True(t, s.Rollout.Subgoals)
			require.NotEqual(t, first.Policy.Starter, s.Policy.Starter)
			require.Equal(t, first.Policy.WarmStart, s.Policy.WarmStart)
		} else {
			require.Equal(t, first.Policy, s.Policy)
			require.Equal(t, first.Evaluation, s.Evaluation)
		}
		require.Equal(t, first.Environment, s.Environment)
		at := 0
		if len(s.Schedule) > 0 { // a model learns before the policy does
			require.Zero(t, s.Update.LearningRate)
			at = s.Schedule[0].From
		}
		require.Equal(t, first.Update.LearningRate, spec.SettingsAt(s.Schedule, spec.SettingsOf(s), spec.SettingsOf(s), at).Update.LearningRate)
		require.Equal(t, []int{first.Rollout.Groups, first.Rollout.GroupSize, first.Rollout.Turns}, []int{s.Rollout.Groups, s.Rollout.GroupSize, s.Rollout.Turns})
		require.Equal(t, 1000, s.Stop.SampledTokens)
		require.EqualValues(t, 3, s.Seed)
		s.Description = ""
		learns, err := json.Marshal([]any{s.Selection, s.Credit, s.Update, s.Rollout})
		require.NoError(t, err)
		require.False(t, seen[string(learns)], "%s is what another method is", m.Name)
		seen[string(learns)] = true
	}
	require.Equal(t, bytes.Count(list, []byte(`"preset"`)), len(Methods), "algorithms that there are not")
}

// A version that rolled out is evaluated before its iteration's tokens, one that an update made after.
func TestRecordOfManifests(t *testing.T) {
	r := Record{Method: "tsr", Seed: 2, Until: 150}
	of := func(iteration int, tokens float64, evaluations ...store.EvaluationRef) *store.Manifest {
		return &store.Manifest{Iteration: iteration, Evaluations: evaluations, Metrics: map[string]canon.Float{
			activities.TotalSampledTokens: canon.Float(tokens), "reward/mean": 0.5, "success/mean": 0.25, "rollout/trajectories": 8,
		}}
	}
	evaluated := func(version int, success float64) store.EvaluationRef {
		return store.EvaluationRef{Version: version, Metrics: map[string]canon.Float{"success/mean": canon.Float(success)}}
	}
	r.add(of(0, 100, evaluated(0, 0.5)))
	r.add(of(1, 200, evaluated(2, 0.75)))
	require.Equal(t, []Evaluation{{0, 0, 0.5}, {2, 200, 0.75}}, r.Evaluations)
	require.Equal(t, []int{100, 200}, r.Tokens)
	require.Equal(t, 0.75, r.last())

	folder := t.TempDir()
	other := r
	other.Method, other.Seed = "starpo", 1
	require.NoError(t, save(folder, []Record{r, other}))
	got, err := Read(folder)
	require.NoError(t, err)
	require.Equal(t, []Record{other, r}, got)

	text, err := os.ReadFile(filepath.Join(folder, study.RecordsFile))
	require.NoError(t, err)
	for _, broken := range []string{
		strings.Replace(string(text), `"until":150`, `"until":1500`, 1), strings.Replace(string(text), `"tsr"`, `"none"`, 1),
		strings.Replace(string(text), `"seed":2`, `"seed":2,"more":1`, 1), string(text[:len(text)-9]), strings.Replace(string(text), "[100,200]", "[200,100]", 1),
		strings.Replace(string(text), `"until":150`, `"until":160`, 1),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, study.RecordsFile), []byte(broken), 0o600))
		_, err := Read(folder)
		require.ErrorIs(t, err, study.ErrRecord)
	}
}

// record is a run whose first rollout sampled tokens for eight trajectories, and that ended with success.
func record(method string, seed uint64, tokens int, reward, success float64) Record {
	return Record{
		Method: method, Seed: seed, Until: 100, Tokens: []int{tokens, 120}, Rewards: []canon.Float{canon.Float(reward), 1}, Successes: []canon.Float{0, 1},
		Trajectories: []int{8, 8}, Evaluations: []Evaluation{{0, 0, 0.1}, {2, 120, canon.Float(success)}},
	}
}

// Methods are above others only if their intervals do not meet, and searches are compared with the
// plain rollout of their own seed.
func TestTable(t *testing.T) {
	methodstest.NeedsAll(t)
	records := []Record{
		record("starpo", 1, 40, 0.25, 0.5), record("starpo", 2, 48, 0.5, 0.52),
		record("gigpo", 1, 40, 0.25, 0.51), record("gigpo", 2, 48, 0.5, 0.53),
		record("tsr", 1, 80, 0.75, 0.9), record("tsr", 2, 96, 0.75, 0.92),
		record("starpo-subgoals", 1, 90, 0.25, 0.5), record("starpo-subgoals", 2, 90, 0.5, 0.52),
		record("hiper", 1, 90, 0.25, 0.9), record("hiper", 2, 90, 0.5, 0.92),
	}
	table := Table(records)
	require.Contains(t, table, "equal. Methods with subgoals have another warm start and are compared with each other only.\n\n|")
	for _, line := range []string{
		"| StarPO | 2 | 2 | 10.0 % | 51.0 ± 12.7 % | – | TSR, beam | 1: 50.0, 2: 52.0 |\n", "| GiGPO | 2 | 2 | 10.0 % | 52.0 ± 12.7 % | – | TSR, beam | 1: 51.0, 2: 53.0 |\n",
		"| HiPER | 2 | 2 | 10.0 % | 91.0 ± 12.7 % | StarPO with subgoals | – | 1: 90.0, 2: 92.0 |\n", "| StarPO with subgoals | 2 | 2 | 10.0 % | 51.0 ± 12.7 % | – | HiPER | 1: 50.0, 2: 52.0 |\n",
		"| TSR, beam | 2 | 2 | 10.0 % | 91.0 ± 12.7 % | StarPO, GiGPO | – | 1: 90.0, 2: 92.0 |\n", "| TSR, beam | 0.375 ± 1.588 | 11.0 | 5.5 |\n",
	} {
		require.Contains(t, table, line)
	}
	require.NotContains(t, table, "| GiGPO | 0.0", "it searches nothing")
	require.NotContains(t, table, "| HiPER | 0.", "it searches nothing either: its thoughts are longer")
	alone := Table(records[:1])
	require.Contains(t, alone, "| StarPO | 1 | 2 | 10.0 % | 50.0 % | – | – | 1: 50.0 |")
	require.NotContains(t, alone, "first rollout")
	require.NotContains(t, Table(records[2:]), "first rollout", "nothing plain to compare with")
	require.Empty(t, Table(nil))

	drawn, err := Plot(records)
	require.NoError(t, err)
	again, err := Plot(records)
	require.NoError(t, err)
	require.Equal(t, drawn, again)
	require.True(t, bytes.Contains(drawn, []byte("TSR, beam")))
}

// Seeds that only one of two methods has do not enter their comparison: another device may have made them.
func TestTableComparesCommonSeeds(t *testing.T) {
	methodstest.NeedsAll(t)
	records := []Record{
		record("starpo", 1, 40, 0, 0.5), record("starpo", 2, 40, 0, 0.51), record("starpo", 3, 40, 0, 0.9), record("starpo", 4, 40, 0, 0.1),
		record("gigpo", 1, 40, 0, 0.8), record("gigpo", 2, 40, 0, 0.81),
	}
	table := Table(records)
	require.Contains(t, table, "| StarPO | 4 | 2 | 10.0 % | 50.3 ± 52.0 % | – | GiGPO | 1: 50.0, 2: 51.0, 3: 90.0, 4: 10.0 |\n")
	require.Contains(t, table, "| GiGPO | 2 | 2 | 10.0 % | 80.5 ± 6.4 % | StarPO | – | 1: 80.0, 2: 81.0 |\n")
	require.NotContains(t, Table(append(records[2:4:4], records[4:]...)), "| GiGPO | 2 | 2 | 10.0 % | 80.5 ± 6.4 % | StarPO ", "no seed that both have")
}

// What has a record is not run again, and a record of something else is refused.
func TestRunsThatAreMissing(t *testing.T) {
	methodstest.NeedsAll(t)
	o := Options{Seeds: 2, Tokens: 100, Only: []string{"gigpo", "*grpo"}, Out: t.TempDir()}
	runs, err := o.chosen()
	require.NoError(t, err)
	var names []string
	for _, w := range runs {
		names = append(names, w.method.Name)
	}
	require.Equal(t, []string{"gigpo", "tree-grpo", "deep-grpo", "gigpo", "tree-grpo", "deep-grpo"}, names)
	done := record("gigpo", 2, 40, 0, 1)
	done.Spec = runs[3].spec
	todo, err := missing(runs, []Record{done})
	require.NoError(t, err)
	require.Len(t, todo, 5)
	done.Spec = runs[0].spec
	_, err = missing(runs, []Record{done})
	require.ErrorContains(t, err, "the record of gigpo-s2 is of 100 tokens or of other settings: use another --out")

	for _, o := range []Options{{Seeds: 0, Tokens: 1}, {Seeds: 1}, {Seeds: 1, Tokens: 1, Only: []string{"none"}}, {Seeds: 1, Tokens: 1, Only: []string{"["}}} {
		require.Error(t, Run(t.Context(), o, io.Discard, io.Discard))
	}

	// All that is asked for is done: nothing is opened.
	var records []Record
	for _, w := range runs {
		r := record(w.method.Name, w.seed, 40, 0, 1)
		r.Spec = w.spec
		records = append(records, r)
	}
	require.NoError(t, save(o.Out, records))
	var out, progress bytes.Buffer
	require.NoError(t, Run(t.Context(), o, &out, &progress))
	require.Equal(t, "6 runs until 100 sampled tokens each, 6 of them done already\n", progress.String())
	require.Contains(t, out.String(), "| GiGPO | 2 |")
	written, err := os.ReadFile(filepath.Join(o.Out, "table.md"))
	require.NoError(t, err)
	require.Equal(t, out.String(), string(written))
	require.FileExists(t, filepath.Join(o.Out, "success.svg"))

	// How often snapshots are stored changes nothing that a record holds.
	other, err := digest(bytes.Replace(runs[0].text, []byte(`"snapshot":{"every":10}`), []byte(`"snapshot":{"every":7}`), 1))
	require.NoError(t, err)
	require.Equal(t, runs[0].spec, other)
	other, err = digest(bytes.Replace(runs[0].text, []byte(`"seed":1`), []byte(`"seed":7`), 1))
	require.NoError(t, err)
	require.NotEqual(t, runs[0].spec, other)
}
