package sweep

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

const base = `{"environment": {"name": "bandit"}, "iterations": 3, "rollout": {"turns": 1, "groups": 4, "group_size": 4}}`

func testKnown() Known {
	return Known{
		Spec: spec.Known{Environments: []string{"bandit", "frozenlake"}},
		Base: func(name string) ([]byte, error) {
			if name != "small" {
				return nil, fmt.Errorf("read preset %q: known are small", name)
			}
			return []byte(base), nil
		},
	}
}

func decode(t *testing.T, text string) (Definition, []Trial) {
	t.Helper()
	methodstest.NeedsOf(t, text)
	d, trials, err := Decode([]byte(strings.ReplaceAll(text, "BASE", base)), testKnown())
	require.NoError(t, err)
	return d, trials
}

func labels(trials []Trial) []string {
	var out []string
	for _, t := range trials {
		out = append(out, t.Label)
	}
	return out
}

func TestExpand(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"grid times seeds": {`{"base": BASE, "grid": {"selection.keep": [0.25, 1.0], "update.epochs": [1, 2]}, "seeds": [1, 2]}`, []string{
			"selection.keep=0.25,update.epochs=1,seed=1", "selection.keep=0.25,update.epochs=2,seed=1",
			"selection.keep=1,update.epochs=1,seed=1", "selection.keep=1,update.epochs=2,seed=1",
			"selection.keep=0.25,update.epochs=1,seed=2", "selection.keep=0.25,update.epochs=2,seed=2",
			"selection.keep=1,update.epochs=1,seed=2", "selection.keep=1,update.epochs=2,seed=2",
		}},
		"a list, one with a label": {`{"base": "small", "list": [{"label": "kept", "selection.keep": 0.5}, {"credit.algorithm": "grpo", "update.clip_high": 0.28}]}`,
			[]string{"kept", "credit.algorithm=grpo,update.clip_high=0.28"}},
		"a list times a grid": {`{"base": BASE, "list": [{"label": "a", "update.epochs": 2}, {"label": "b", "update.epochs": 3}], "grid": {"selection.keep": [0.5, 1]}}`,
			[]string{"a,selection.keep=0.5", "a,selection.keep=1", "b,selection.keep=0.5", "b,selection.keep=1"}},
		"seeds alone":           {`{"base": BASE, "seeds": [7, 5]}`, []string{"seed=7", "seed=5"}},
		"a number of seeds":     {`{"base": {"seed": 41, "environment": {"name": "bandit"}}, "seeds": 2}`, []string{"seed=41", "seed=42"}},
		"of the default seed":   {`{"base": BASE, "seeds": 2}`, []string{"seed=10000", "seed=10001"}},
		"objects by their name": {`{"base": {}, "grid": {"environment": [{"name": "bandit"}, {"name": "frozenlake"}]}}`, []string{"environment=bandit", "environment=frozenlake"}},
		"options that others know": {`{"base": BASE, "grid": {"environment.options.high_probability": [0.1, 0.25]}}`,
			[]string{"environment.options.high_probability=0.1", "environment.options.high_probability=0.25"}},
		"branches of another run": {`{"base": {"environment": {"name": "bandit"}, "from": {"run": "bandit-1"}, "rollout": {"turns": 1}}, "grid": {"from.iteration": [4, 8]}}`, []string{"from.iteration=4", "from.iteration=8"}},
		"odd letters":             {`{"base": BASE, "grid": {"policy.from": ["folder:/a b/é", "starter"]}}`, []string{"policy.from=folder:/a_b/_", "policy.from=starter"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, trials := decode(t, c.text)
			require.Equal(t, c.want, labels(trials))
		})
	}
}

func TestTrialsAreSpecs(t *testing.T) {
	d, trials := decode(t, `{"base": BASE, "grid": {"selection.keep": [0.25, 0.5]}, "seeds": [3, 4], "parallel": 7, "on_failure": "stop",
		"metrics": ["actor/entropy"], "goal": "minimize", "early_stopping": {"method": "halving", "first": 1, "factor": 2}}`)
	require.Equal(t, Definition{
		Base: json.RawMessage(`{"environment":{"name":"bandit"},"iterations":3,"rollout":{"group_size":4,"groups":4,"turns":1}}`), Parallel: 7, OnFailure: Stop,
		Metrics: []string{"actor/entropy"}, Goal: Minimize, MaxIterations: 3,
		Stopping: &Stopping{Method: Halving, First: 1, Factor: 2, MinTrials: 3},
	}, d)
	require.Len(t, trials, 4)
	for _, trial := range trials {
		got, err := spec.Decode(trial.Spec, testKnown().Spec)
		require.NoError(t, err)
		require.Equal(t, trial.Seed, got.Seed)
		require.Equal(t, 3, trial.Iterations)
	}
	last := trials[3]
	require.Equal(t, "selection.keep=0.5", last.Setting)
	require.Equal(t, uint64(4), last.Seed)
	require.JSONEq(t, `{"environment":{"name":"bandit"},"iterations":3,"rollout":{"turns":1,"groups":4,"group_size":4},"selection":{"keep":0.5},"seed":4}`, string(last.Spec))
	for _, trial := range trials {
		require.NotEmpty(t, trial.Shared)
		require.Equal(t, last.Shared, trial.Shared, "neither the seed nor the selection is part of a warm start")
	}
	_, trials = decode(t, `{"base": BASE, "grid": {"policy.warm_start.steps": [0, 5], "policy.starter.layers": [1, 2]}}`)
	require.NotEqual(t, trials[0].Shared, trials[1].Shared)
	require.NotEqual(t, trials[0].Shared, trials[2].Shared)
	_, trials = decode(t, `{"base": BASE, "list": [{"label": "full"}, {"label": "adapters", "policy.lora": {"rank": 2}}]}`)
	require.Equal(t, trials[0].Shared, trials[1].Shared, "the starter is taught whole")
	_, trials = decode(t, `{"base": {"environment": {"name": "bandit"}, "rollout": {"turns": 1}, "policy": {"from": "hf:a/b", "warm_start": {"steps": 3}}}, "list": [{"label": "full"}, {"label": "adapters", "policy.lora": {"rank": 2}}]}`)
	require.NotEqual(t, trials[0].Shared, trials[1].Shared, "the adapters of a loaded model are taught")
	_, trials = decode(t, `{"base": {"environment": {"name": "bandit"}, "rollout": {"turns": 1}, "policy": {"from": "hf:a/b", "warm_start": {"steps": 0}}}, "seeds": 2}`)
	require.Empty(t, trials[0].Shared)
	require.Zero(t, trials[0].Before)
	_, trials = decode(t, `{"base": {"environment": {"name": "bandit"}, "from": {"run": "bandit-1"}, "rollout": {"turns": 1}}, "grid": {"from.iteration": [4, 8]}}`)
	require.Equal(t, []int{5, 9}, []int{trials[0].Before, trials[1].Before}, "iterations that are another run's")
}

func TestDefaults(t *testing.T) {
	d, _ := decode(t, `{"base": BASE, "seeds": 1, "early_stopping": {"method": "median", "first": 2}}`)
	require.Equal(t, DefaultParallel, d.Parallel)
	require.Equal(t, Continue, d.OnFailure)
	require.Equal(t, []string{"success/mean", "reward/mean", "evaluation/success/mean"}, d.Metrics)
	require.Equal(t, Maximize, d.Goal)
	require.False(t, d.Report.AtEnd)
	require.Equal(t, &Stopping{Method: Median, First: 2, Every: 2, MinTrials: 3}, d.Stopping)
}

// A definition says something of the report only if there is one: the bytes of those
// that were written before are what they were.
func TestReportIsInTheDefinitionWhereSet(t *testing.T) {
	plain, _ := decode(t, `{"base": BASE, "seeds": 1}`)
	b, err := json.Marshal(plain)
	require.NoError(t, err)
	require.NotContains(t, string(b), "report")
	for text, atEnd := range map[string]bool{`{}`: false, `{"at_end": false}`: false, `{"at_end": true}`: true} {
		d, _ := decode(t, `{"base": BASE, "seeds": 1, "report": `+text+`}`)
		require.Equal(t, atEnd, d.Report.AtEnd)
		got, err := json.Marshal(d)
		require.NoError(t, err)
		if !atEnd {
			require.Equal(t, string(b), string(got))
			continue
		}
		require.Contains(t, string(got), `"report":{"at_end":true}`)
		var read Definition
		require.NoError(t, json.Unmarshal(got, &read))
		require.Equal(t, d, read)
	}
}

// The problems of a sweep say what to do.
func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"no base":                {`{"seeds": 2}`, []string{"base: found nothing; allowed: a spec, or a preset's name"}},
		"an unknown preset":      {`{"base": "smal", "seeds": 2}`, []string{`base: found "smal"`, "known are small"}},
		"no object":              {`[]`, []string{"(sweep): found an array of 0"}},
		"a run's spec":           {`{"environment": {"name": "bandit"}}`, []string{`found a run's spec (it has "environment"); allowed: a sweep (start it with --type Train)`}},
		"a key twice":            {`{"base": BASE, "base": BASE, "seeds": 2}`, []string{`key "base" stands twice`}},
		"text behind":            {`{"base": BASE, "seeds": 2} x`, []string{"(sweep)"}},
		"nothing varies":         {`{"base": BASE}`, []string{"nothing that varies"}},
		"an unknown key":         {`{"base": BASE, "gird": {}, "seeds": 1}`, []string{`gird: found an unknown key`, `did you mean "grid"?`}},
		"a metric cut short":     {`{"base": BASE, "seeds": 2, "metrics": ["success"]}`, []string{`metrics[0]: found "success"; allowed: a metric's name`, `did you mean "success/mean"?`}},
		"an empty grid":          {`{"base": BASE, "grid": {}}`, []string{"grid: found an empty object; allowed: an object of fields"}},
		"an axis without values": {`{"base": BASE, "grid": {"selection.keep": []}}`, []string{"grid.selection.keep: found an array of 0"}},
		"an axis of one value":   {`{"base": BASE, "grid": {"selection.keep": 0.5}}`, []string{"grid.selection.keep: found 0.5", "belongs into the base"}},
		"an unknown path":        {`{"base": BASE, "grid": {"filter.keep": [0.5]}}`, []string{`an unknown field "filter.keep"`, `did you mean "selection.keep"?`}},
		"a misspelled path":      {`{"base": BASE, "grid": {"selection.kepp": [0.5]}}`, []string{`did you mean "selection.keep"?`}},
		"a misspelled object":    {`{"base": BASE, "grid": {"selecton.keep": [0.5]}}`, []string{`did you mean "selection.keep"?`}},
		"a key by itself":        {`{"base": BASE, "list": [{"learning_rate": 1e-4}]}`, []string{`did you mean "policy.warm_start.learning_rate" or "update.learning_rate"`}},
		"the seed in the grid":   {`{"base": BASE, "grid": {"seed": [1, 2]}}`, []string{`the seeds stand in "seeds"`}},
		"paths in each other":    {`{"base": BASE, "grid": {"environment": [{"name": "bandit"}], "environment.name": ["bandit"]}}`, []string{"paths that do not lie in each other"}},
		"a list against a grid":  {`{"base": BASE, "list": [{"selection.keep": 1}], "grid": {"selection.keep": [0.5]}}`, []string{"paths that do not lie in each other"}},
		"a value of a wrong type": {`{"base": BASE, "grid": {"selection.keep": ["0.25", 0.5]}}`,
			[]string{`trial "selection.keep=0.25": selection.keep: found "0.25"; allowed: a number`, "a number stands without quotes"}},
		"a value out of range":      {`{"base": BASE, "grid": {"selection.keep": [0.5, 1.5]}}`, []string{`trial "selection.keep=1.5": selection.keep: found 1.5`}},
		"a base that is wrong":      {`{"base": {"environment": {"name": "bandi"}}, "grid": {"selection.keep": [0.5, 1]}}`, []string{`base: environment.name: found "bandi"`, `did you mean "bandit"?`}},
		"a base without an object":  {`{"base": {"selection": 1, "environment": {"name": "bandit"}}, "grid": {"selection.keep": [0.5, 1]}}`, []string{"base: selection.keep: found 1 above it"}},
		"the same value twice":      {`{"base": BASE, "grid": {"selection.keep": [0.5, 0.50]}}`, []string{`trial "selection.keep=0.5": found a second time`}},
		"what is the default":       {`{"base": BASE, "list": [{"label": "a", "update.epochs": 1}, {"label": "b", "credit.algorithm": "grpo"}]}`, []string{`trial "b": found the same run as trial "a"`}},
		"too many":                  {`{"base": BASE, "grid": {"selection.keep": [` + many(101) + `]}, "seeds": 100}`, []string{"more than 10000 trials"}},
		"far too many":              {`{"base": BASE, "grid": {"selection.keep": [` + many(200) + `], "update.clip_low": [` + many(200) + `]}}`, []string{"more than 10000 trials"}},
		"parallel of 501":           {`{"base": BASE, "seeds": 2, "parallel": 501}`, []string{"parallel: found 501; allowed: an integer from 1 to 500"}},
		"parallel of none":          {`{"base": BASE, "seeds": 2, "parallel": "4"}`, []string{`parallel: found "4"`, "without quotes"}},
		"a seed twice":              {`{"base": BASE, "seeds": [1, 1]}`, []string{"seeds[1]: found 1; allowed: each seed once"}},
		"no seeds":                  {`{"base": BASE, "seeds": []}`, []string{"seeds: found an array of 0"}},
		"a report that is none":     {`{"base": BASE, "seeds": 2, "report": true}`, []string{`report: found true; allowed: an object with the key at_end`}},
		"a report some day":         {`{"base": BASE, "seeds": 2, "report": {"at_en": true}}`, []string{`report.at_en: found an unknown key`, `did you mean "at_end"?`}},
		"a report in quotes":        {`{"base": BASE, "seeds": 2, "report": {"at_end": "true"}}`, []string{`report.at_end: found "true"; allowed: true or false`, "without quotes"}},
		"a report by number":        {`{"base": BASE, "seeds": 2, "report": {"at_end": 1}}`, []string{`report.at_end: found 1; allowed: true or false`}},
		"a policy nobody knows":     {`{"base": BASE, "seeds": 2, "on_failure": "halt"}`, []string{`on_failure: found "halt"; allowed: one of "continue", "stop"`}},
		"a label with a slash":      {`{"base": BASE, "list": [{"label": "a/b", "update.epochs": 2}]}`, []string{"list[0].label"}},
		"random beside a grid":      {`{"base": BASE, "grid": {"update.epochs": [1]}, "random": {"draws": 1, "over": {"selection.keep": {"uniform": [0.1, 1]}}}}`, []string{"random draws beside a grid"}},
		"random without ranges":     {`{"base": BASE, "random": {"draws": 3}}`, []string{"random.over: found nothing"}},
		"random without draws":      {`{"base": BASE, "random": {"over": {"selection.keep": {"uniform": [0.1, 1]}}}}`, []string{"random.draws: found nothing"}},
		"an unknown draw":           {`{"base": BASE, "random": {"draws": 3, "over": {"selection.keep": {"unifrom": [0, 1]}}}}`, []string{`did you mean "uniform"?`}},
		"a range backwards":         {`{"base": BASE, "random": {"draws": 3, "over": {"selection.keep": {"uniform": [1, 0.5]}}}}`, []string{"the lower first"}},
		"the logarithm of 0":        {`{"base": BASE, "random": {"draws": 3, "over": {"update.learning_rate": {"log_uniform": [0, 0.5]}}}}`, []string{"both above 0"}},
		"more draws than settings":  {`{"base": BASE, "random": {"draws": 5, "over": {"update.epochs": {"int": [1, 3]}}}}`, []string{"random.draws: found 5", "3 were found"}},
		"stopping without a method": {`{"base": BASE, "seeds": 2, "early_stopping": {}}`, []string{"early_stopping.method: found nothing"}},
		"stopping after the end":    {`{"base": BASE, "seeds": 2, "early_stopping": {"method": "median"}}`, []string{"early_stopping.first: found 10; allowed: less than the 3 iterations"}},
		"a rule's wrong key":        {`{"base": BASE, "seeds": 2, "early_stopping": {"method": "median", "factor": 3}}`, []string{"early_stopping.factor"}},
		"a metric twice":            {`{"base": BASE, "seeds": 2, "metrics": ["a", "a"]}`, []string{"metrics[1]"}},
		"more than can be carried":  {`{"base": BASE, "seeds": [` + seq(1000) + `], "grid": {"update.clip_low": [` + many(10) + `]}, "metrics": ["a", "b", "c", "d"]}`, []string{"10000 trials of 4 metrics and rungs"}},
		"null":                      {`{"base": null, "seeds": null}`, []string{"base: found null", "seeds: found null"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Decode([]byte(strings.ReplaceAll(c.text, "BASE", base)), testKnown())
			var problems spec.Problems
			require.ErrorAs(t, err, &problems)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// many are so many different numbers from 0 to 1.
func many(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("0.%04d", i+1))
	}
	return strings.Join(out, ",")
}

// seq are the numbers from 1 to n.
func seq(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint(i+1))
	}
	return strings.Join(out, ",")
}

// However much is wrong, what is said stays small.
func TestProblemsAreBounded(t *testing.T) {
	_, _, err := Decode([]byte(`{"base": `+base+`, "grid": {"selection.keep": [`+strings.ReplaceAll(many(5000), "0.", "2.")+`]}}`), testKnown())
	var problems spec.Problems
	require.ErrorAs(t, err, &problems)
	require.LessOrEqual(t, len(problems), maxProblems)
	require.Less(t, len(err.Error()), 16<<10)
}

func TestRandomDraws(t *testing.T) {
	const over = `"update.learning_rate": {"log_uniform": [1e-5, 1e-3]}, "update.epochs": {"int": [1, 8]}`
	draws := func(n int, over string) []Trial {
		_, trials := decode(t, fmt.Sprintf(`{"base": BASE, "random": {"draws": %d, "seed": 5, "over": {%s}}}`, n, over))
		return trials
	}
	few, more := draws(5, over), draws(9, over)
	require.Equal(t, few, more[:5], "more draws leave the first as they were")
	require.Equal(t, []string{
		"update.learning_rate=0.000865379,update.epochs=4", "update.learning_rate=0.000018416,update.epochs=2",
		"update.learning_rate=0.0000677356,update.epochs=3", "update.learning_rate=0.000242828,update.epochs=6",
		"update.learning_rate=0.000111096,update.epochs=2",
	}, labels(few))
	for i, trial := range draws(5, over+`, "selection.keep": {"uniform": [0.3, 1]}`) {
		require.Truef(t, strings.HasPrefix(trial.Label, few[i].Label), "%s: what a field draws does not depend on the others", trial.Label)
	}
	all := draws(8, `"update.epochs": {"int": [1, 8]}`)
	require.Len(t, all, 8, "what was drawn before is drawn anew")
	require.Len(t, draws(2, `"policy.from": {"choice": ["starter", "hf:a/b"]}`), 2)
}

func TestMore(t *testing.T) {
	d, trials := decode(t, `{"base": BASE, "grid": {"selection.keep": [0.25, 0.5]}, "seeds": [1]}`)
	more, err := More(d, trials, []byte(`{"grid": {"selection.keep": [0.75]}, "seeds": [1, 2]}`), testKnown().Spec)
	require.NoError(t, err)
	require.Equal(t, []string{"selection.keep=0.75,seed=1", "selection.keep=0.75,seed=2"}, labels(more))
	for text, want := range map[string]string{
		`{"grid": {"selection.keep": [0.5, 0.75]}, "seeds": [1]}`: `trial "selection.keep=0.5,seed=1": found a second time`,
		`{"base": {}, "seeds": [1]}`:                              "base: found an unknown key",
		`{}`:                                                      "nothing that varies",
		`{"grid": {"selection.keep": [7]}}`:                       "selection.keep: found 7",
	} {
		_, err := More(d, trials, []byte(text), testKnown().Spec)
		require.ErrorContains(t, err, want)
	}
}

// A label is part of a workflow's id: it is bounded, and different ones differ.
func TestLongLabels(t *testing.T) {
	a := []change{{"policy.from", json.RawMessage(`"` + strings.Repeat("x", 300) + `"`)}}
	require.Equal(t, "policy.from=#"+labelOf(a)[len("policy.from=#"):], labelOf(a))
	var b, c []change
	for range 20 {
		b = append(b, change{"update.learning_rate", json.RawMessage("1")})
		c = append(c, change{"update.learning_rate", json.RawMessage("1")})
	}
	c[19].value = json.RawMessage("2")
	require.LessOrEqual(t, len(labelOf(b)), maxLabel)
	require.NotEqual(t, labelOf(b), labelOf(c))
}

func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		`{"base": "small", "seeds": 2}`, `{"base": ` + base + `, "grid": {"selection.keep": [0.25]}}`,
		`{"base": {}, "list": [{"label": "a", "update.epochs": 1}], "seeds": [1]}`,
		`{"base": "small", "random": {"draws": 2, "over": {"selection.keep": {"uniform": [0.1, 1]}, "update.epochs": {"choice": [1]}}}}`,
		`{"base": "small", "seeds": 1, "early_stopping": {"method": "halving", "first": 1}}`, `{`, `null`, "\xff",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, trials, err := Decode(b, testKnown())
		if err != nil {
			var problems spec.Problems
			require.True(t, errors.As(err, &problems))
			require.NotEmpty(t, problems)
			require.LessOrEqual(t, len(problems), maxProblems)
			return
		}
		require.NotEmpty(t, trials)
		seen := map[string]bool{}
		for _, trial := range trials {
			require.False(t, seen[trial.Label])
			seen[trial.Label] = true
			require.LessOrEqual(t, len(trial.Label), 3*maxLabel)
			_, err := spec.Decode(trial.Spec, testKnown().Spec)
			require.NoError(t, err)
		}
		require.Positive(t, d.MaxIterations)
	})
}
