package methods

import (
	"bytes"
	"encoding/json"
	"fmt"
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
		text, err := tasks[Lakes].spec(m, 3, 1e-3, 1000)
		require.NoError(t, err)
		s, err := spec.Decode(text, run.Known())
		require.NoError(t, err, m.Name)
		if i == 0 {
			first = s
		}
		if m.Start != "" {
			require.True(t, s.Rollout.Subgoals)
			require.Equal(t, first.Policy, s.Policy)
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
		require.Equal(t, 1e-3, spec.SettingsAt(s.Schedule, spec.SettingsOf(s), spec.SettingsOf(s), at).Update.LearningRate)
		require.Equal(t, []int{first.Rollout.Groups, first.Rollout.GroupSize, first.Rollout.Turns}, []int{s.Rollout.Groups, s.Rollout.GroupSize, s.Rollout.Turns})
		require.Equal(t, 1000, s.Stop.SampledTokens)
		require.EqualValues(t, 3, s.Seed)
		s.Description = ""
		learns, err := json.Marshal([]any{s.Selection, s.Credit, s.Update, s.Rollout})
		require.NoError(t, err)
		require.False(t, seen[string(learns)], "%s is what another method is", m.Name)
		seen[string(learns)] = true
	}
	require.Equal(t, bytes.Count(list, []byte(`"title"`)), len(Methods), "algorithms that there are not")
}

// On a model that is trained further there is one learning rate, so none is tried, and methods that need a warm start which
// the task lacks are unknown.
func TestTasks(t *testing.T) {
	methodstest.NeedsAll(t)
	require.Equal(t, []string{Lakes, "smollm2"}, Tasks)
	require.Equal(t, []string{"grpo", "starpo-s", "gigpo"}, Names("smollm2", false))
	require.NotContains(t, Names("smollm2", true), "hiper")
	o := Options{Task: "smollm2", Seeds: 2, Tokens: 300, Out: t.TempDir()}
	runs, err := o.chosen(nil)
	require.NoError(t, err)
	require.Len(t, runs, 3*2)
	var records []Record
	for _, w := range runs {
		s, err := spec.Decode(w.text, run.Known())
		require.NoError(t, err)
		require.Equal(t, "folder:.reprise/smollm2-135m", s.Policy.From)
		require.Equal(t, 1e-5, s.Update.LearningRate)
		r := record(w.method.Name, w.seed, 40, 0, 1)
		r.Spec, r.Rate, r.Until, r.Tokens = w.spec, w.rate, w.tokens, []int{40, w.tokens}
		records = append(records, r)
	}
	require.NoError(t, save(o.Out, records))
	var out, progress bytes.Buffer
	require.NoError(t, Run(t.Context(), o, &out, &progress))
	require.Equal(t, "6 runs until 300 sampled tokens each: 6 of them done already\n", progress.String())
	require.Contains(t, out.String(), "called\nequal.\n\n| method |")
	for task, only := range map[string]string{"smollm2": "hiper", "sea": "grpo"} {
		o.Task, o.Only = task, []string{only}
		require.ErrorContains(t, Run(t.Context(), o, io.Discard, io.Discard), "is none of")
	}
}

// A version that rolled out is evaluated before its iteration's tokens, one that an update made after.
func TestRecordOfManifests(t *testing.T) {
	r := Record{Method: "tsr", Rate: 1e-3, Seed: 2, Until: 150}
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
	other.Method, other.Seed = "grpo", 1
	require.NoError(t, save(folder, []Record{r, other}))
	got, err := Read(folder)
	require.NoError(t, err)
	require.Equal(t, []Record{other, r}, got)

	text, err := os.ReadFile(filepath.Join(folder, study.RecordsFile))
	require.NoError(t, err)
	for _, broken := range []string{
		strings.Replace(string(text), `"until":150`, `"until":1500`, 1), strings.Replace(string(text), `"tsr"`, `"none"`, 1),
		strings.Replace(string(text), `"seed":2`, `"seed":2,"more":1`, 1), string(text[:len(text)-9]), strings.Replace(string(text), "[100,200]", "[200,100]", 1),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, study.RecordsFile), []byte(broken), 0o600))
		_, err := Read(folder)
		require.ErrorIs(t, err, study.ErrRecord)
	}
}

// record is a run whose first rollout sampled tokens for eight trajectories, and that ended with success.
func record(method string, seed uint64, tokens int, reward, success float64) Record {
	return Record{
		Method: method, Rate: 1e-3, Seed: seed, Until: 100, Tokens: []int{tokens, 120}, Rewards: []canon.Float{canon.Float(reward), 1}, Successes: []canon.Float{0, 1},
		Trajectories: []int{8, 8}, Evaluations: []Evaluation{{0, 0, 0.1}, {2, 120, canon.Float(success)}},
	}
}

// Methods are above others only if their intervals do not meet, and searches are compared with the
// plain rollout of their own seed.
func TestTable(t *testing.T) {
	methodstest.NeedsAll(t)
	records := []Record{
		record("grpo", 1, 40, 0.25, 0.5), record("grpo", 2, 48, 0.5, 0.52),
		record("gigpo", 1, 40, 0.25, 0.51), record("gigpo", 2, 48, 0.5, 0.53),
		record("tsr", 1, 80, 0.75, 0.9), record("tsr", 2, 96, 0.75, 0.92),
		record("grpo-subgoals", 1, 90, 0.25, 0.5), record("grpo-subgoals", 2, 90, 0.5, 0.52),
		record("hiper", 1, 90, 0.25, 0.9), record("hiper", 2, 90, 0.5, 0.92),
	}
	table := tasks[Lakes].table(records)
	require.Contains(t, table, "equal. Methods with subgoals have another warm start and are compared with each other only.\n\n|")
	for _, line := range []string{
		"| GRPO | 0.001 | 2 | 2 | 10.0 % | 51.0 ± 12.7 % | – | – | TSR, beam | 1: 50.0, 2: 52.0 |\n", "| GiGPO | 0.001 | 2 | 2 | 10.0 % | 52.0 ± 12.7 % | 1.0 ± 0.0 | – | TSR, beam | 1: 51.0, 2: 53.0 |\n",
		"| HiPER | 0.001 | 2 | 2 | 10.0 % | 91.0 ± 12.7 % | 40.0 ± 0.0 | GRPO with subgoals | – | 1: 90.0, 2: 92.0 |\n", "| GRPO with subgoals | 0.001 | 2 | 2 | 10.0 % | 51.0 ± 12.7 % | – | – | HiPER | 1: 50.0, 2: 52.0 |\n",
		"| TSR, beam | 0.001 | 2 | 2 | 10.0 % | 91.0 ± 12.7 % | 40.0 ± 0.0 | GRPO, GiGPO | – | 1: 90.0, 2: 92.0 |\n", "| TSR, beam | 0.375 ± 1.588 | 11.0 | 5.5 |\n",
	} {
		require.Contains(t, table, line)
	}
	require.NotRegexp(t, `\| GiGPO \| \d\.\d{3} ±`, table, "it searches nothing")
	require.NotRegexp(t, `\| HiPER \| \d\.\d{3} ±`, table, "it searches nothing either: its thoughts are longer")
	alone := tasks[Lakes].table(records[:1])
	require.Contains(t, alone, "| GRPO | 0.001 | 1 | 2 | 10.0 % | 50.0 % | – | – | – | 1: 50.0 |")
	require.NotContains(t, alone, "first rollout")
	require.NotContains(t, tasks[Lakes].table(records[2:]), "first rollout", "nothing plain to compare with")
	require.Empty(t, tasks[Lakes].table(nil))

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
		record("grpo", 1, 40, 0, 0.5), record("grpo", 2, 40, 0, 0.51), record("grpo", 3, 40, 0, 0.9), record("grpo", 4, 40, 0, 0.1),
		record("gigpo", 1, 40, 0, 0.8), record("gigpo", 2, 40, 0, 0.81),
	}
	table := tasks[Lakes].table(records)
	require.Contains(t, table, "| GRPO | 0.001 | 4 | 2 | 10.0 % | 50.3 ± 52.0 % | – | – | GiGPO | 1: 50.0, 2: 51.0, 3: 90.0, 4: 10.0 |\n")
	require.Contains(t, table, "| GiGPO | 0.001 | 2 | 2 | 10.0 % | 80.5 ± 6.4 % | 30.0 ± 0.0 | GRPO | – | 1: 80.0, 2: 81.0 |\n")
	require.NotContains(t, tasks[Lakes].table(append(records[2:4:4], records[4:]...)), "| 80.5 ± 6.4 % | 30.0 ± 0.0 | GRPO ", "no seed that both have")
}

// Learning rates are tried first, and the better one has the other seeds.
func TestRatesAreTried(t *testing.T) {
	methodstest.NeedsAll(t)
	o := Options{Seeds: 3, Tokens: 300, Only: []string{"gigpo", "echo"}}
	names := func(records ...Record) (out []string) {
		runs, err := o.chosen(records)
		require.NoError(t, err)
		for _, w := range runs {
			out = append(out, fmt.Sprintf("%s-s%d", w.setting(), w.seed))
		}
		return out
	}
	tries := []string{"gigpo-0.0003-100-s1", "gigpo-0.001-100-s1", "echo-0.0003-100-s1", "echo-0.001-100-s1",
		"gigpo-0.0003-100-s2", "gigpo-0.001-100-s2", "echo-0.0003-100-s2", "echo-0.001-100-s2"}
	require.Equal(t, tries, names())
	tried := func(rate float64, seed uint64, success float64) Record {
		r := record("gigpo", seed, 40, 0, success)
		r.Rate = rate
		return r
	}
	some := []Record{tried(3e-4, 1, 0.9), tried(3e-4, 2, 0.1), tried(1e-3, 1, 0.3)}
	require.Equal(t, tries, names(some...), "one of them is missing")
	four := append(some, tried(1e-3, 2, 0.8))
	require.Equal(t, append(tries, "gigpo-0.001-300-s1", "gigpo-0.001-300-s2", "gigpo-0.001-300-s3"), names(four...))
	four[3] = tried(1e-3, 2, 0.7)
	rate, ok := better(four, "gigpo", tasks[Lakes].Rates, 100)
	require.True(t, ok)
	require.Equal(t, 3e-4, rate, "the lower one of equals")

	long := tried(3e-4, 1, 0.6)
	long.Until = 300
	table := tasks[Lakes].table(append(four, long))
	require.Contains(t, table, "after 300 sampled tokens")
	require.Contains(t, table, "| GiGPO | 0.0003 | 1 | 2 | 10.0 % | 60.0 % | – | – | – | 1: 60.0 |\n")
	require.Contains(t, table, "tried for 100 sampled tokens on 2 seeds: the mean success at the end.\n\n| method | 0.0003 | 0.001 |\n|---|---|---|\n| GiGPO | 50.0 % | 50.0 % |\n")
	require.NotContains(t, table, "| ECHO |")
}

// What has a record is not run again, and a record of something else is refused.
func TestRunsThatAreMissing(t *testing.T) {
	methodstest.NeedsAll(t)
	o := Options{Seeds: 2, Tokens: 300, Only: []string{"gigpo", "*-grpo"}, Out: t.TempDir()}
	runs, err := o.chosen(nil)
	require.NoError(t, err)
	require.Len(t, runs, 3*2*triedSeeds)
	var records []Record
	of := func(w wanted) Record {
		r := record(w.method.Name, w.seed, 40, 0, 1)
		r.Spec, r.Rate, r.Until, r.Tokens = w.spec, w.rate, w.tokens, []int{40, w.tokens}
		return r
	}
	done := of(runs[3])
	todo, err := o.missing(runs, []Record{done})
	require.NoError(t, err)
	require.Len(t, todo, 11)
	done.Spec = runs[0].spec
	_, err = o.missing(runs, []Record{done})
	require.ErrorContains(t, err, "the record of tree-grpo-0.001-100-s1 is of other settings or another number of --tokens: use another --out")
	done.Until = 200
	_, err = o.missing(runs, []Record{done})
	require.ErrorContains(t, err, "tree-grpo-0.001-200-s1")

	for _, o := range []Options{{Seeds: 0, Tokens: 3}, {Seeds: 1, Tokens: 2}, {Seeds: 1, Tokens: 3, Only: []string{"none"}}, {Seeds: 1, Tokens: 3, Only: []string{"["}}} {
		require.Error(t, Run(t.Context(), o, io.Discard, io.Discard))
	}

	// All that is asked for is done: nothing is opened.
	for _, w := range runs {
		records = append(records, of(w))
	}
	runs, err = o.chosen(records)
	require.NoError(t, err)
	for _, w := range runs[len(records):] {
		records = append(records, of(w))
	}
	require.NoError(t, save(o.Out, records))
	var out, progress bytes.Buffer
	require.NoError(t, Run(t.Context(), o, &out, &progress))
	require.Equal(t, "18 runs until 300 sampled tokens each, or 100 to try learning rates: 18 of them done already\n", progress.String())
	require.Contains(t, out.String(), "| GiGPO | 0.0003 | 2 |")
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
