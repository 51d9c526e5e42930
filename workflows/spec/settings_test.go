package spec_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workflows/spec"
)

func change(path, value string) spec.Change {
	return spec.Change{Path: path, Value: json.RawMessage(value)}
}

func settings(t *testing.T) spec.Settings {
	t.Helper()
	return spec.SettingsOf(decode(t, `{"environment":{"name":"bandit"}}`))
}

func TestSettingsApply(t *testing.T) {
	before := settings(t)
	after, err := before.Apply(
		change("update.learning_rate", "1e-4"),
		change("update.weight_decay", "0"),
		change("update.max_grad_norm", "0.5"),
		change("update.clip_low", "0.1"),
		change("update.clip_high", "0.2"),
		change("update.entropy_coefficient", "0.01"),
		change("selection.method", `"all"`),
		change("selection.keep", "0.5"),
		change("credit.normalize_by_std", "false"),
		change("rollout.temperature", "0.7"),
	)
	require.NoError(t, err)
	require.Equal(t, settings(t), before)
	require.Equal(t, 1e-4, after.Update.LearningRate)
	require.Equal(t, "all", after.Selection.Method)
	require.False(t, after.Credit.NormalizeByStd)
	require.Equal(t, 0.7, after.Rollout.Temperature)
	require.Equal(t, 16, after.Update.MicroBatch)
	require.Len(t, before.Diff(after), 10)
	require.Len(t, spec.Knobs(), 27)
	require.Equal(t, "rollout.temperature: 1, and 0.7", before.Diff(after)[:1].String())
}

func TestSettingsApplyInOrder(t *testing.T) {
	after, err := settings(t).Apply(change("selection.keep", "0.01"), change("selection.keep", "0.5"))
	require.NoError(t, err)
	require.Equal(t, 0.5, after.Selection.Keep)
	after, err = after.Apply(change("selection.method", `"all"`), change("selection.keep", "0.01"))
	require.NoError(t, err, "keep means nothing to all")
	_, err = after.Apply(change("selection.method", `"top_fraction"`))
	require.EqualError(t, err, "1 problem:\n  selection.keep: found 0.01; allowed: a number of which 8 groups make at least one (from 0.125)")
}

func TestSettingsApplyRefuses(t *testing.T) {
	knobs := "rollout.temperature, rollout.turn_limit, selection.method, selection.metric, selection.order, selection.keep, selection.count, selection.p, selection.drop_flat, selection.reweight, selection.loss_scale, credit.normalize_by_std, credit.floor, update.learning_rate, " +
		"update.weight_decay, update.max_grad_norm, update.clip_low, update.clip_high, update.supervised.share, update.supervised.coefficient, update.kl_coefficient, update.kl_first_turn, update.entropy_coefficient, " +
		"critic.learning_rate, critic.weight_decay, critic.max_grad_norm, critic.clip"
	for _, c := range []struct {
		change spec.Change
		want   string
	}{
		{change("update.learning_rate", "2"), "update.learning_rate: found 2; allowed: a number from 0 to 1"},
		{change("update.learning_rate", `"1e-4"`), `update.learning_rate: found "1e-4"; allowed: a number from 0 to 1 (a number stands without quotes)`},
		{change("update.learning_rate", "null"), "update.learning_rate: found null; allowed: a number from 0 to 1"},
		{change("update.learning_rate", ""), "update.learning_rate: found unexpected end of JSON input at line 1, column 1; allowed: a number from 0 to 1"},
		{change("update.learning_rate", "NaN"), "update.learning_rate: found invalid character 'N' looking for beginning of value at line 1, column 1; allowed: a number from 0 to 1"},
		{change("update.learning_rate", "1 2"), "update.learning_rate: found invalid character '2' after top-level value at line 1, column 3; allowed: a number from 0 to 1"},
		{change("update.learning_rate", `{"a":1,"a":2}`), "update.learning_rate: found an object; allowed: a number from 0 to 1"},
		{change("selection.method", `"top"`), `selection.method: found "top"; allowed: one of "all", "top_fraction", "top_count", "top_p", "top_p_softmax", "min_p" (did you mean "top_p"?)`},
		{change("selection.keep", "0.1"), "selection.keep: found 0.1; allowed: a number of which 8 groups make at least one (from 0.125)"},
		{change("update.micro_batch", "8"), "update.micro_batch: found a field that is fixed for the run; allowed: " + knobs},
		{change("seed", "8"), "seed: found a field that is fixed for the run; allowed: " + knobs},
		{change("update.learning_rat", "1"), "update.learning_rat: found an unknown knob; allowed: " + knobs + ` (did you mean "update.learning_rate"?)`},
		{change("temperature", "1"), "temperature: found an unknown knob; allowed: " + knobs + ` (did you mean "rollout.temperature"?)`},
		{change("", "1"), "(spec): found an unknown knob; allowed: " + knobs},
		{change("update", "{}"), "update: found an unknown knob; allowed: " + knobs + ` (did you mean "update.clip_low"?)`},
	} {
		t.Run(c.change.Path+"="+string(c.change.Value), func(t *testing.T) {
			after, err := settings(t).Apply(c.change)
			require.EqualError(t, err, "1 problem:\n  "+c.want)
			require.Equal(t, settings(t), after)
			var problems spec.Problems
			require.ErrorAs(t, err, &problems)
		})
	}
	after, err := settings(t).Apply(change("update.clip_low", "0.1"), change("seed", "1"), change("update.clip_high", "-1"))
	require.ErrorContains(t, err, "2 problems:")
	require.Equal(t, settings(t), after, "all changes or none")
}

// A change may not leave less than a minibatch, or groups that are not there.
func TestSettingsApplyKeepsRelations(t *testing.T) {
	s := spec.SettingsOf(decode(t, `{"environment":{"name":"bandit"},"update":{"minibatch":32}}`))
	_, err := s.Apply(change("selection.keep", "0.125"))
	require.EqualError(t, err, "1 problem:\n  update.minibatch: found 32; allowed: at most 16, the rows that the selection leaves (1 of 8 groups of 16); or keep more")
	_, err = s.Apply(change("selection.method", `"top_count"`), change("selection.count", "9"))
	require.EqualError(t, err, "1 problem:\n  selection.count: found 9; allowed: at most 8 (rollout.groups)")
}

// What is compiled into the programs, or has no rows to act on, is no knob of such a run.
func TestSettingsApplyOfWhatARunLacks(t *testing.T) {
	_, err := settings(t).Apply(change("update.kl_first_turn", "0.1"))
	require.EqualError(t, err, "1 problem:\n  update.kl_first_turn: found a field that the spec does not give; allowed: a change of a weight that the spec gives (it is compiled into the programs)")
	_, err = settings(t).Apply(change("update.supervised.share", "0.5"))
	require.EqualError(t, err, `1 problem:
  update.supervised.from: found nothing; allowed: "demonstrations", "own_successes" or "observations"; or leave update.supervised out`)
	has := spec.SettingsOf(decode(t, `{"environment":{"name":"bandit"},"update":{"kl_in":"loss","kl_first_turn":0.2,"supervised":{"from":"own_successes"}}}`))
	changed, err := has.Apply(change("update.kl_first_turn", "0.1"), change("update.supervised.share", "0.5"))
	require.NoError(t, err)
	require.Equal(t, []float64{0.1, 0.5}, []float64{changed.Update.KLFirstTurn, changed.Update.Supervised.Share})
	_, err = has.Apply(change("update.supervised.share", "0.95"))
	require.ErrorContains(t, err, "at most 0.9, or 1")
}

func TestSettingsJSON(t *testing.T) {
	b, err := settings(t).JSON()
	require.NoError(t, err)
	require.Equal(t, `{"credit":{"algorithm":"grpo","baseline_rate":0.1,"epsilon":0.000001,"floor":0,"gamma":1,"lambda":1,"normalize_by_std":true,"reward_at":"turns",`+
		`"step_weight":1,"turn_gamma":0.95,"turn_lambda":1,"value_at":"last_prompt_token","whiten":true},`+
		`"critic":{"clip":0.5,"learning_rate":0.001,"max_grad_norm":1,"weight_decay":0.01},`+
		`"rollout":{"group_size":16,"groups":8,"temperature":1},`+
		`"selection":{"count":2,"drop_flat":false,"floor":1e-10,"keep":0.25,"loss_scale":"none","method":"top_fraction","metric":"reward_std","order":"largest","p":0.9,"resample":1,"reweight":false,"slack":0},`+
		`"update":{"adam_epsilon":1e-8,"aggregation":"token_mean","beta1":0.9,"beta2":0.999,"clip_high":0.28,"clip_low":0.2,"decay":"constant",`+
		`"divisor":0,"dual_clip":0,"entropy_coefficient":0.001,"epochs":1,"kl_coefficient":0.001,"kl_estimator":"k3","kl_in":"none","learning_rate":0.0003,"max_grad_norm":1,"micro_batch":16,"minibatch":0,`+
		`"ratio":"token","warmup_iterations":0,"weight_decay":0.01}}`, string(b))
	var read spec.Settings
	require.NoError(t, json.Unmarshal(b, &read))
	require.Equal(t, settings(t), read)
}

func TestDiff(t *testing.T) {
	one := decode(t, `{"environment":{"name":"bandit","options":{"high":0.25,"names":["a","b"],"x":{"y":1}}},"rollout":{"turns":1}}`)
	other := decode(t, `{"environment":{"name":"bandit","options":{"names":["b","a"],"x":{"y":1,"z":true}}},
		"policy":{"from":"hf:Qwen/Qwen2.5-0.5B"},"description":"other","rollout":{"turns":1,"prompt_tokens":[64],"think":false}}`)
	require.Empty(t, spec.Diff(one, one))
	require.Equal(t, `description: "", and "other"
policy.from: "starter", and "hf:Qwen/Qwen2.5-0.5B"
policy.compute_dtype: "float32", and "bfloat16"
policy.starter.layers: 4, and nothing
policy.starter.hidden_size: 128, and nothing
policy.starter.intermediate_size: 384, and nothing
policy.starter.heads: 4, and nothing
policy.starter.kv_heads: 2, and nothing
policy.starter.seed: 1, and nothing
policy.warm_start.steps: 150, and 10
policy.warm_start.rows: 32, and 16
policy.warm_start.learning_rate: 0.001, and 0.00003
environment.options.high: 0.25, and nothing
environment.options.names: ["a","b"], and ["b","a"]
environment.options.x.z: nothing, and true
rollout.max_new_tokens: 24, and 400
rollout.think: true, and false
rollout.prompt_tokens: nothing, and [64]
rollout.prefill: "", and "groups"
rollout.protocol: "", and "examples"
rollout.stop_at: nothing, and ["</answer>"]
selection.drop_flat: false, and true
update.learning_rate: 0.0003, and 0.000001
update.dual_clip: 0, and 3
update.entropy_coefficient: 0.001, and 0
update.micro_batch: 16, and 4
critic.learning_rate: 0.001, and 0.00001
snapshot.retain: 0, and 2
evaluation.instances: 64, and 256
evaluation.suites[0].environment.options.high: 0.25, and nothing
evaluation.suites[0].environment.options.names: ["a","b"], and ["b","a"]
evaluation.suites[0].environment.options.x.z: nothing, and true
evaluation.suites[0].instances: 64, and 256
evaluation.suites[0].max_new_tokens: 24, and 400
evaluation.suites[0].protocol: nothing, and "examples"
evaluation.suites[0].stop_at: nothing, and ["</answer>"]
evaluation.suites[0].think: true, and false
collapse.echo_trap.on_detection: nothing, and "default"
collapse.echo_trap.signs: nothing, and 3
collapse.echo_trap.within: nothing, and 10
collapse.entropy_uniform.above: nothing, and 0.5
collapse.entropy_uniform.iterations: nothing, and 3
collapse.entropy_uniform.on_detection: nothing, and "default"
collapse.no_format.below: nothing, and 0.05
collapse.no_format.iterations: nothing, and 5
collapse.no_format.on_detection: nothing, and "default"
collapse.no_signal.iterations: nothing, and 5
collapse.no_signal.on_detection: nothing, and "default"
collapse.tool_calls.factor: nothing, and 0.3
collapse.tool_calls.floor: nothing, and 0.2
collapse.tool_calls.iterations: nothing, and 5
collapse.tool_calls.on_detection: nothing, and "default"`, spec.Diff(one, other).String())

	broken := one
	broken.Update.LearningRate = math.NaN()
	require.Equal(t, spec.Differences{{Path: "update.learning_rate", One: "0.0003", Other: "NaN"}}, spec.Diff(one, broken))
}

func TestCadence(t *testing.T) {
	due := func(is func(version, iterations int) bool, iterations int) (versions []int) {
		for v := range iterations + 1 {
			if is(v, iterations) {
				versions = append(versions, v)
			}
		}
		return versions
	}
	require.Equal(t, []int{10, 20, 25}, due(spec.Snapshot{Every: 10}.Due, 25))
	require.Equal(t, []int{3}, due(spec.Snapshot{Every: 10}.Due, 3))
	require.Equal(t, []int{0, 10, 20, 25}, due(spec.Evaluation{Every: 10}.Due, 25))
	require.Empty(t, due(spec.Evaluation{Every: 0}.Due, 25))
}

func TestKept(t *testing.T) {
	for _, c := range []struct {
		method string
		keep   float64
		groups int
		want   int
	}{
		{"top_fraction", 0.25, 8, 2}, {"top_fraction", 0.25, 7, 1}, {"top_fraction", 0.25, 3, 0},
		{"top_fraction", 0.29, 100, 29}, {"top_fraction", 1, 8, 8}, {"top_fraction", 0.999999, 8, 7}, {"all", 0.25, 8, 8},
	} {
		require.Equal(t, c.want, spec.Selection{Method: c.method, Keep: c.keep}.Kept(c.groups), c)
	}
}

// What is no change is answered with an example, in a few words.
func TestChangeIsAnObject(t *testing.T) {
	var c spec.Change
	require.NoError(t, json.Unmarshal([]byte(`{"path":"update.learning_rate","value":1e-4}`), &c))
	require.Equal(t, spec.Change{Path: "update.learning_rate", Value: json.RawMessage("1e-4")}, c)
	for _, text := range []string{`"update.learning_rate=1e-4"`, `5`, `[]`, `{"path":5}`} {
		err := json.Unmarshal([]byte(text), &c)
		require.ErrorContains(t, err, `a change is an object, as {"path": "update.learning_rate", "value": 1e-4}; found `)
	}
}
