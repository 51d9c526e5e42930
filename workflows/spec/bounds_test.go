package spec

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// bounds are the numbers that each numeric field of a spec may have, written as
// intervals: a square bracket belongs to its interval, a round one does not, and
// single values stand in braces. They are repeated here on purpose: a bound that moves,
// opens or closes must be changed here too.
var bounds = map[string]string{
	"seed":           "[0, 9007199254740992]",
	"iterations":     "[1, 1000000]",
	"from.iteration": "[0, 1000000]",
	"from.branch":    "[-1, 1000000]",

	"policy.lora.rank":  "[1, 4096]",
	"policy.lora.alpha": "(0, 1000000]",
	"policy.lora.seed":  "[0, 9007199254740992]",

	"policy.starter.layers":            "[1, 64]",
	"policy.starter.hidden_size":       "[8, 4096]",
	"policy.starter.intermediate_size": "[8, 16384]",
	"policy.starter.heads":             "[1, 64]",
	"policy.starter.kv_heads":          "[1, 64]",
	"policy.starter.seed":              "[0, 9007199254740992]",
	"policy.starter.tokenizer":         "[1, 2]",
	"policy.warm_start.steps":          "[0, 100000]",
	"policy.warm_start.rows":           "[1, 4096]",
	"policy.warm_start.learning_rate":  "(0, 1]",
	"policy.warm_start.demonstrations": "[0, 1]",
	"policy.warm_start.seed":           "[0, 9007199254740992]",

	"rollout.groups":         "[1, 4096]",
	"rollout.group_size":     "[1, 1024]",
	"rollout.turns":          "[1, 100]",
	"rollout.max_new_tokens": "[1, 32768]",
	"rollout.temperature":    "[0.01, 10]",
	"rollout.format_penalty": "[-1000, 0]",
	"rollout.overlong_cache": "[0, 32768]",
	"rollout.context_turns":  "[0, 100]",
	"rollout.prompt_tokens":  "[1, 131072]",
	"rollout.pass_rows":      "[1, 4096]",
	"rollout.beam":           "[1, 1024]",
	"rollout.depth":          "[1, 8]",
	"stop.sampled_tokens":    "[1, 1000000000000]",
	"stop.success.at_least":  "(0, 1]",
	"stop.success.for":       "[1, 1000000]",
	"rollout.branches":       "[1, 1024]",
	"rollout.expansions":     "[1, 16]",
	"rollout.trees":          "[1, 1024]",
	"rollout.pivot_gamma":    "(0, 100]",
	"rollout.entropy_weight": "(0, 100]",

	"rollout.branch_probability": "(0, 1]",
	"update.branch_weight":       "(0, 100]",
	"rollout.block_rows":         "[2, 65536]",
	"rollout.workers":            "[1, 64]",
	"rollout.lag":                "[0, 1]",
	"rollout.candidates":         "[1, 64]",
	"rollout.chunk_tokens":       "[1, 32768]",

	"selection.keep":     "(0, 1]",
	"selection.count":    "[1, 4096]",
	"selection.p":        "[0, 1]",
	"selection.slack":    "[0, 1000]",
	"selection.floor":    "[0, 1000]",
	"selection.resample": "[1, 10]",

	"credit.epsilon":       "[1e-12, 1]",
	"credit.floor":         "[0, 1000]",
	"credit.gamma":         "[0, 1]",
	"credit.lambda":        "[0, 1]",
	"credit.turn_gamma":    "[0, 1]",
	"credit.turn_lambda":   "[0, 1]",
	"credit.baseline_rate": "[0, 1]",
	"credit.step_weight":   "[0, 1000]",

	"update.learning_rate":          "[0, 1]",
	"update.beta1":                  "[0, 0.999999]",
	"update.beta2":                  "[0, 0.999999]",
	"update.adam_epsilon":           "[1e-12, 1]",
	"update.weight_decay":           "[0, 1]",
	"update.max_grad_norm":          "[1e-6, 1e6]",
	"update.warmup_iterations":      "[0, 1000000]",
	"update.clip_low":               "(0, 1)",
	"update.clip_high":              "(0, 10]",
	"update.dual_clip":              "{0} (1, 1000]",
	"update.tau_positive":           "(0, 100]",
	"credit.beta":                   "(0, 100]",
	"credit.segment_lambda":         "(0, 1]",
	"credit.least_holders":          "[2, 1024]",
	"credit.baseline_decay":         "(0, 1]",
	"credit.task_weight":            "[0, 1e6]",
	"credit.gate_weight":            "(0, 1e6]",
	"credit.gate_sharpness":         "(0, 1e6]",
	"teacher.context_tokens":        "[1, 65536]",
	"credit.keep_reward":            "[-1000, 1000]",
	"credit.changed_reward":         "[-1000, 1000]",
	"credit.invalid_penalty":        "[0, 1000]",
	"credit.entropy_gain":           "(0, 100]",
	"credit.future_gain":            "(0, 100]",
	"credit.clarity":                "(0, 100]",
	"update.tau_negative":           "(0, 100]",
	"update.ratio_cap":              "(0, 1e6]",
	"update.off_policy_limit":       "(0, 1000]",
	"update.passes.clip_low":        "(0, 1)",
	"update.passes.clip_high":       "(0, 10]",
	"update.kl_first_turn":          "(0, 1000]",
	"update.reference_every":        "[1, 1000000]",
	"rollout.turn_limit":            "[1, 100]",
	"schedule[].from":               "[0, 1000000]",
	"schedule[].value":              "[-1e9, 1e9]",
	"schedule[].over":               "[0, 1000000]",
	"update.supervised.share":       "(0, 1]",
	"update.supervised.coefficient": "(0, 1000]",
	"update.mismatch.cap":           "(0, 1e9]",
	"update.mismatch.mask_low":      "(0, 1]",
	"update.mismatch.mask_high":     "[1, 1e9]",
	"update.mismatch.veto":          "(0, 1)",
	"update.divisor":                "[0, 1e9]",
	"update.epochs":                 "[1, 100]",
	"update.minibatch":              "[0, 65536]",
	"update.kl_coefficient":         "[0, 1000]",
	"update.entropy_coefficient":    "[0, 1]",
	"update.micro_batch":            "[1, 1024]",
	"update.shards":                 "[1, 64]",
	"update.widths":                 "[1, 3]",
	"selection.members":             "[1, 4096]",
	"selection.least_advantage":     "(0, 1000]",
	"update.stop_kl":                "(0, 1000]",

	"critic.learning_rate": "[0, 1]",
	"critic.weight_decay":  "[0, 1]",
	"critic.max_grad_norm": "[1e-6, 1e6]",
	"critic.clip":          "[0, 1e6]",

	"freshness.online":            "[1, 16]",
	"freshness.reuse":             "[1, 16]",
	"freshness.replay_iterations": "[0, 16]",
	"freshness.replay_share":      "(0, 0.9]",

	"snapshot.every":  "[1, 1000000]",
	"snapshot.retain": "[0, 1000000]",

	"evaluation.every":       "[0, 1000000]",
	"evaluation.seed":        "[0, 9007199254740992]",
	"evaluation.instances":   "[1, 65536]",
	"evaluation.samples":     "[1, 1024]",
	"evaluation.temperature": "{0} [0.01, 10]",

	"diagnostics.every":       "[0, 1000000]",
	"diagnostics.samples":     "[2, 256]",
	"limits.activity_seconds": "[5, 3600]",
	"limits.device_gb":        "[1, 100000]",
	"limits.generate_rows":    "[1, 65536]",
	"limits.score_rows":       "[1, 65536]",
	"limits.update_rows":      "[1, 65536]",
	"limits.snapshot_mib":     "[1, 1000000]",
	"limits.step_failures":    "[1, 1000000]",

	"collapse.warm_up": "[1, 1000]",
	"collapse.decay":   "[0, 0.999]",
	"collapse.solved":  "[0, 1]",

	"collapse.reward_std.factor":           "(0, 1)",
	"collapse.reward_std.floor":            "[0, 1e6]",
	"collapse.reward_std.iterations":       "[1, 1000]",
	"collapse.entropy_fall.factor":         "(0, 1)",
	"collapse.entropy_fall.floor":          "[0, 1e6]",
	"collapse.entropy_fall.iterations":     "[1, 1000]",
	"collapse.entropy_rise.factor":         "(1, 1000]",
	"collapse.entropy_rise.floor":          "[0, 1e6]",
	"collapse.entropy_rise.iterations":     "[1, 1000]",
	"collapse.grad_norm.factor":            "(1, 1000]",
	"collapse.grad_norm.floor":             "[0, 1e6]",
	"collapse.grad_norm.iterations":        "[1, 1000]",
	"collapse.distinct.factor":             "(0, 1)",
	"collapse.distinct.floor":              "[0, 1e6]",
	"collapse.distinct.iterations":         "[1, 1000]",
	"collapse.similarity.factor":           "(0, 1)",
	"collapse.similarity.floor":            "[0, 1e6]",
	"collapse.similarity.iterations":       "[1, 1000]",
	"collapse.executable.factor":           "(0, 1)",
	"collapse.executable.floor":            "[0, 1e6]",
	"collapse.executable.iterations":       "[1, 1000]",
	"collapse.validation.below":            "(0, 1]",
	"collapse.validation.evaluations":      "[1, 1000]",
	"collapse.no_signal.iterations":        "[1, 1000]",
	"collapse.no_format.below":             "(0, 1]",
	"collapse.no_format.iterations":        "[1, 1000]",
	"collapse.entropy_uniform.above":       "(0, 1]",
	"collapse.entropy_uniform.iterations":  "[1, 1000]",
	"collapse.entropy_uniform.vocabulary":  "[0, 1073741824]",
	"collapse.tool_calls.factor":           "(0, 1)",
	"collapse.tool_calls.floor":            "[0, 1e6]",
	"collapse.tool_calls.iterations":       "[1, 1000]",
	"collapse.echo_trap.signs":             "[2, 4]",
	"collapse.echo_trap.within":            "[1, 1000]",
	"collapse.empty_selection.iterations":  "[1, 1000]",
	"collapse.non_finite.iterations":       "[1, 1000]",
	"collapse.not_exact.iterations":        "[1, 1000]",
	"collapse.training_rollout_diff.above": "[0, 1000]",

	"collapse.rollback.max":                  "[0, 100]",
	"collapse.rollback.learning_rate_factor": "(0, 10]",
	"collapse.rollback.selection_keep":       "{0} [1e-6, 1]",
	"collapse.rollback.clip_high":            "{0} [1e-6, 10]",
	"collapse.rollback.temperature":          "{0} [0.01, 10]",
	"collapse.rollback.entropy_coefficient":  "{-1} [0, 1]",
	"collapse.rollback.kl_coefficient":       "{-1} [0, 10]",

	"environment.broken_share":    "(0, 1]",
	"environment.timeout_seconds": "[1, 3600]",
	"environment.mixture[].share": "(0, 1e6]",

	"update.clip_turns[].low":  "(0, 1)",
	"update.clip_turns[].high": "(0, 10]",
	"rewards[].weight":         "[-1000000, 1000000]",

	"evaluation.suites[].instances":      "[1, 65536]",
	"evaluation.suites[].samples":        "[1, 1024]",
	"evaluation.suites[].seed":           "[0, 9007199254740992]",
	"evaluation.suites[].temperature":    "{0} [0.01, 10]",
	"evaluation.suites[].turns":          "[1, 100]",
	"evaluation.suites[].max_new_tokens": "[1, 32768]",
	"evaluation.suites[].format_penalty": "[-1000, 0]",
	"evaluation.suites[].context_turns":  "[0, 100]",
	"evaluation.suites[].prompt_tokens":  "[1, 131072]",

	"evaluation.suites[].environment.broken_share":    "(0, 1]",
	"evaluation.suites[].environment.timeout_seconds": "[1, 3600]",
	"environment.calls_per_turn":                      "[1, 32]",
	"environment.result_tokens":                       "[16, 32768]",
	"evaluation.suites[].environment.calls_per_turn":  "[1, 32]",
	"evaluation.suites[].environment.result_tokens":   "[16, 32768]",
	"rollout.context[].keep_last":                     "[1, 100]",
	"rollout.context[].cut_observations":              "[0, 32768]",
}

// elementStart is what an element of a list needs besides the field at hand.
var elementStart = map[string]string{
	"environment.mixture": `"name":"bandit"`, "update.clip_turns": `"low":0.2,"high":0.2`, "rewards": `"name":"length"`, "evaluation.suites": `"suite":"in-distribution"`,
	"schedule": `"field":"update.learning_rate","from":0,"value":1`, "environment.tools": `"name":"calculator"`,
	"rollout.context": `"keep_last":1,"cut_observations":2`,
}

// numericField is a field that holds numbers.
type numericField struct {
	path           string
	whole, isArray bool
	knob           bool
	// allowed is what the field's own rule says; empty if any problem is its own.
	allowed string
}

// numericFields are all numeric fields: of the rules, of the elements of lists and of the
// detectors' config.
func numericFields(t *testing.T) []numericField {
	t.Helper()
	var out []numericField
	var add func(prefix string, rules []*rule)
	add = func(prefix string, rules []*rule) {
		for _, r := range rules {
			f := numericField{path: prefix + r.path, knob: r.knob && prefix == ""}
			switch r.typ {
			case typeInteger, typeSeed:
				f.whole, f.allowed = true, r.allowed()
			case typeIntegers:
				f.whole, f.isArray, f.allowed = true, true, r.span.describe("an integer")
			case typeNumber:
				f.allowed = r.allowed()
			case typeObjects:
				if prefix == "" { // a suite's mixture is a run's
					require.Contains(t, elementStart, r.path, "say what its elements need besides")
					add(r.path+"[].", r.elements)
				}
				continue
			case typeCollapse:
				out = append(out, structFields(reflect.TypeFor[collapse.Config](), r.path+".")...)
				continue
			default:
				require.Contains(t, []valueType{typeBool, typeString, typeNames, typeTexts, typeOptions}, r.typ, "a new type of field, with numbers or without: %s", r.path)
				continue
			}
			out = append(out, f)
		}
	}
	add("", rules())
	return out
}

// structFields are the numbers of a Go struct, by the paths of its JSON tags.
func structFields(typ reflect.Type, prefix string) (out []numericField) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch f.Type.Kind() {
		case reflect.Struct:
			out = append(out, structFields(f.Type, prefix+name+".")...)
		case reflect.Int:
			out = append(out, numericField{path: prefix + name, whole: true})
		case reflect.Float64:
			out = append(out, numericField{path: prefix + name})
		case reflect.String:
		default:
			panic("a kind of field that the test does not know: " + prefix + name)
		}
	}
	return out
}

// probes are the values just inside and just outside of the bounds, as JSON.
func probes(t *testing.T, text string, whole bool) (inside, outside []string) {
	t.Helper()
	var singles []string
	for strings.HasPrefix(text, "{") {
		single, rest, ok := strings.Cut(text[1:], "} ")
		require.True(t, ok, text)
		singles, text = append(singles, single), rest
	}
	low, high, ok := strings.Cut(text[1:len(text)-1], ", ")
	require.True(t, ok, text)
	for _, end := range []struct {
		at     string
		in     int // the direction of what is inside
		closed bool
	}{{low, 1, text[0] == '['}, {high, -1, text[len(text)-1] == ']'}} {
		require.True(t, end.closed || !whole, "the ends of whole numbers are closed: %s", text)
		inside = append(inside, beside(t, end.at, end.in, whole))
		outside = append(outside, beside(t, end.at, -end.in, whole))
		if end.closed {
			inside = append(inside, end.at)
		} else {
			outside = append(outside, end.at)
		}
	}
	for _, x := range singles {
		outside = append(outside, beside(t, x, 1, whole), beside(t, x, -1, whole))
	}
	inside = append(inside, singles...)
	outside = slices.DeleteFunc(outside, func(x string) bool { return slices.Contains(singles, x) })
	if whole {
		return inside, append(outside, "-9223372036854775808", "9223372036854775807", "99999999999999999999", "1.5", "1e1")
	}
	return inside, append(outside, "-1e300", "1e300", "1e999")
}

// beside is the number next to one in a direction.
func beside(t *testing.T, at string, direction int, whole bool) string {
	t.Helper()
	if whole {
		x, err := strconv.ParseInt(at, 10, 64)
		require.NoError(t, err)
		return strconv.FormatInt(x+int64(direction), 10)
	}
	x, err := strconv.ParseFloat(at, 64)
	require.NoError(t, err)
	return strconv.FormatFloat(math.Nextafter(x, math.Inf(direction)), 'g', -1, 64)
}

// documentWith is a spec that has one field written.
func documentWith(path, value string) string {
	list, key, isElement := strings.Cut(path, "[].")
	if isElement {
		start := elementStart[list]
		if strings.Contains(start, `"`+key+`":`) {
			var members []string
			for _, m := range strings.Split(start, ",") {
				if !strings.HasPrefix(m, `"`+key+`":`) {
					members = append(members, m)
				}
			}
			start = strings.Join(members, ",")
		}
		keys := strings.Split(key, ".")
		for i := len(keys) - 1; i > 0; i-- {
			value = `{"` + keys[i] + `":` + value + "}"
		}
		path, value = list, "[{"+start+`,"`+keys[0]+`":`+value+"}]"
	}
	keys := strings.Split(path, ".")
	for i := len(keys) - 1; i >= 0; i-- {
		value = `{"` + keys[i] + `":` + value + "}"
	}
	if path == "environment.tools" {
		return strings.Replace(value, `{"tools"`, `{"name":"bandit","tools"`, 1)
	}
	if strings.HasPrefix(path, "environment.") {
		return value
	}
	return `{"environment":{"name":"bandit"},` + value[1:]
}

// outOfRange reports whether decoding reports the field's own bounds, and not only
// how it goes with others.
func outOfRange(t *testing.T, f numericField, value string) bool {
	t.Helper()
	at := strings.ReplaceAll(f.path, "[].", "[0].")
	if f.isArray {
		value, at = "["+value+"]", at+"[0]"
	}
	document := documentWith(f.path, value)
	require.True(t, json.Valid([]byte(document)), document)
	_, err := Decode([]byte(document), Known{})
	if err == nil {
		return false
	}
	var problems Problems
	require.ErrorAs(t, err, &problems)
	return slices.ContainsFunc(problems, func(p Problem) bool { return p.Path == at && (f.allowed == "" || f.allowed == p.Allowed) })
}

// Every number of a spec, just inside of its bounds and just outside.
func TestEveryBound(t *testing.T) {
	var paths []string
	for _, f := range numericFields(t) {
		paths = append(paths, f.path)
		t.Run(f.path, func(t *testing.T) {
			require.Contains(t, bounds, f.path, "a new field needs its bounds in this table")
			inside, outside := probes(t, bounds[f.path], f.whole)
			for _, x := range inside {
				require.False(t, outOfRange(t, f, x), "%s is in %s", x, bounds[f.path])
			}
			for _, x := range outside {
				require.True(t, outOfRange(t, f, x), "%s is not in %s", x, bounds[f.path])
			}
		})
	}
	slices.Sort(paths)
	if !methodstest.Whole() { // fields of a method that is not there
		require.Subset(t, slices.Collect(maps.Keys(bounds)), paths)
		return
	}
	require.Equal(t, slices.Sorted(maps.Keys(bounds)), paths, "the table has fields that are gone")
}

// A change of a knob has the bounds of its field.
func TestEveryBoundOfAKnob(t *testing.T) {
	settings := SettingsOf(Default(FromStarter))
	settings.Rollout.Groups, settings.Selection.Method = 4096, "all"
	settings.Update.KLFirstTurn, settings.Update.Supervised.From = 1, OwnSuccesses // else they are no knobs
	var paths []string
	for _, f := range numericFields(t) {
		if !f.knob {
			continue
		}
		paths = append(paths, f.path)
		inside, outside := probes(t, bounds[f.path], f.whole)
		for _, x := range inside {
			if f.path == supervisedShare && x == "0.9999999999999999" {
				continue // a relation keeps shares between 0.9 and 1 out
			}
			_, err := settings.Apply(Change{Path: f.path, Value: json.RawMessage(x)})
			require.NoError(t, err, "%s = %s", f.path, x)
		}
		for _, x := range outside {
			changed, err := settings.Apply(Change{Path: f.path, Value: json.RawMessage(x)})
			require.ErrorContains(t, err, f.path, "%s = %s", f.path, x)
			require.Equal(t, settings, changed)
		}
	}
	require.Equal(t, []string{
		"rollout.temperature", "rollout.turn_limit",
		"selection.keep", "selection.count", "selection.p",
		"credit.floor",
		"update.learning_rate", "update.weight_decay", "update.max_grad_norm", "update.clip_low", "update.clip_high", "update.supervised.share", "update.supervised.coefficient", "update.kl_coefficient", "update.kl_first_turn", "update.entropy_coefficient",
		"critic.learning_rate", "critic.weight_decay", "critic.max_grad_norm", "critic.clip",
	}, paths, "the numbers that can be changed during a run")
}
