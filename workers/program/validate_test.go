package program

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/presets/presetstest"
	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/validate"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func TestValidatePresets(t *testing.T) {
	for _, name := range presetstest.Names() {
		if b, err := presets.Read(name); err == nil && validate.IsSweep(b) {
			continue // see TestValidateSweepPresets
		}
		t.Run(name, func(t *testing.T) {
			b, err := presets.Read(name)
			require.NoError(t, err)
			if strings.Contains(string(b), `"folder:`) {
				// Its model is made first: by make size.
				out, _, err := execute(validateCommand(), string(b), "-")
				require.NoError(t, err)
				require.Contains(t, out, "are left out: there is no folder ")
				return
			}
			file := filepath.Join(t.TempDir(), "spec.json")
			require.NoError(t, os.WriteFile(file, b, 0o600))
			out, stderr, err := execute(validateCommand(), "", file)
			require.NoError(t, err)
			require.Empty(t, stderr)
			if name == "smoke" { // how a spec is read does not depend on which one it is
				piped, _, err := execute(validateCommand(), string(b), "-")
				require.NoError(t, err)
				require.Equal(t, out, piped)
			}

			// The printed spec is complete: it resolves to itself.
			resolved, numbers, ok := strings.Cut(out, "\n\n")
			require.True(t, ok)
			decoded, err := spec.Decode([]byte(resolved), run.Known())
			require.NoError(t, err)
			if strings.Contains(string(b), `"hf:`) {
				require.Contains(t, numbers, "The model's tokenizer is fetched at the start.") // it decides the widths
			} else {
				require.NotEmpty(t, decoded.Rollout.PromptTokens)
			}
			again, _, err := execute(validateCommand(), resolved, "-")
			require.NoError(t, err)
			require.Equal(t, out, again)
			for _, row := range []string{"trajectories an iteration", "tokens sampled", "device: peak", "S3: the run"} {
				require.Contains(t, numbers, row)
			}
		})
	}
}

// report is validate's JSON.
type report struct {
	OK       bool
	Problems []spec.Problem
	Spec     spec.Train
	Derived  map[string]any
	Unknown  string
}

func validateJSON(t *testing.T, document string) (report, error) {
	t.Helper()
	out, _, err := execute(validateCommand(), document, "-", "--json")
	var r report
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	return r, err
}

const bandit = `"environment":{"name":"bandit"}`

func TestValidateProblems(t *testing.T) {
	document := `{"environment":{"name":"bandits","options":{}},"iteratons":3,"rollout":{"groups":0}}`
	out, _, err := execute(validateCommand(), document, "-")
	require.ErrorIs(t, err, command.ErrSilent)
	_, problems := spec.Decode([]byte(document), run.Known())
	require.Equal(t, "-: "+problems.Error()+"\n", out, "the text of the Resolve activity")
	for _, want := range []string{`environment.name: found "bandits"`, `did you mean "bandit"?`, `did you mean "iterations"?`, "rollout.groups: found 0"} {
		require.Contains(t, out, want)
	}

	r, err := validateJSON(t, document)
	require.ErrorIs(t, err, command.ErrSilent)
	require.False(t, r.OK)
	require.Len(t, r.Problems, 3)
	require.Nil(t, r.Derived)

	for name, document := range map[string]string{"empty": "", "too large": "{" + strings.Repeat(" ", spec.MaxBytes) + "}", "options": `{"environment":{"name":"bandit","options":{"high_probability":2}}}`} {
		t.Run(name, func(t *testing.T) {
			r, err := validateJSON(t, document)
			require.ErrorIs(t, err, command.ErrSilent)
			require.NotEmpty(t, r.Problems)
		})
	}
	_, _, err = execute(validateCommand(), "", filepath.Join(t.TempDir(), "none.json"))
	require.ErrorContains(t, err, "none.json")
	require.NotErrorIs(t, err, command.ErrSilent)
}

// Modules of rewards are refused with the remedy, all at once: one that reads calls of a tool that
// is not there, and one whose items depend on what does not stand before them.
func TestValidateRewards(t *testing.T) {
	out, _, err := execute(validateCommand(), `{"environment":{"name":"countdown"},"rewards":[
		{"name":"tools"},{"name":"checklist","options":{"items":"success 0.5 if called, called 0.5"}},{"name":"state"}]}`, "-")
	require.ErrorIs(t, err, command.ErrSilent)
	for _, want := range []string{
		"3 problems", `rewards[0].name: found "tools" with the environment "countdown"`, "the calculator of countdown (option calculator)",
		`rewards[1].options.items: found "success 0.5 if called"`, "an item before it for one that depends on that", "rewards[2].name", "frozenlake, sokoban",
	} {
		require.Contains(t, out, want)
	}
}

func TestValidateStarter(t *testing.T) {
	r, err := validateJSON(t, `{`+bandit+`}`)
	require.NoError(t, err)
	require.True(t, r.OK)
	require.NotNil(t, r.Problems)
	bare := r.Spec
	bare.Rollout.PromptTokens = nil
	want, err := run.WithWidths(bare, nil)
	require.NoError(t, err)
	require.Equal(t, want.Rollout.PromptTokens, r.Spec.Rollout.PromptTokens)
	require.Equal(t, want.Rollout.PromptTokens, r.Spec.Evaluation.Suites[0].PromptTokens)
	require.Positive(t, r.Derived["parameters"])
	require.Contains(t, r.Derived["memory_bytes"], "peak")
	require.Contains(t, r.Derived["storage_bytes"], "run")
}

func TestValidateFolder(t *testing.T) {
	folder := goldenFolder(t)
	document := func(path string) string {
		return `{` + bandit + `,"policy":{"from":"folder:` + path + `"}}`
	}
	r, err := validateJSON(t, document(folder))
	require.NoError(t, err)
	require.Empty(t, r.Unknown)
	require.NotEmpty(t, r.Spec.Rollout.PromptTokens)
	// embedding 600×64, last norm, 3 layers of hidden 64, intermediate 160, 4 heads, 2 of keys.
	require.EqualValues(t, 600*64+64+3*(65*(64+2*32)+64*64+3*64*160+2*64), r.Derived["parameters"])

	// The worker may have a folder that is not here; a folder that is here must be valid.
	r, err = validateJSON(t, document(folder+"/none"))
	require.NoError(t, err)
	require.Contains(t, r.Unknown, "on this machine")
	require.NotContains(t, r.Derived, "parameters")
	for name, change := range map[string]func(string) string{
		"config.json: no such file": func(string) string { return "" },
		"use_sliding_window": func(c string) string {
			return strings.Replace(c, `"use_sliding_window": false`, `"use_sliding_window": true`, 1)
		},
		"should be [400 64]": func(c string) string {
			return strings.NewReplacer(`"vocab_size": 600`, `"vocab_size": 400`, `"eos_token_id": 507`, `"eos_token_id": 1`, `"pad_token_id": 505`, `"pad_token_id": 1`).Replace(c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			broken := withEOS(t, folder, 1)
			path := filepath.Join(broken, "config.json")
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			if changed := change(string(b)); changed == "" {
				require.NoError(t, os.Remove(path))
			} else {
				require.NoError(t, os.WriteFile(path, []byte(changed), 0o600))
			}
			_, _, err = execute(validateCommand(), document(broken), "-")
			require.ErrorContains(t, err, name)
			require.ErrorContains(t, err, broken)
		})
	}
}

// Without the model at hand, what depends on it is left out, and a sentence says so.
func TestValidateHub(t *testing.T) {
	for _, from := range []string{"hf:Qwen/Qwen3-30B-A3B", "model:0123456789ab"} {
		document := `{` + bandit + `,"policy":{"from":"` + from + `"}}`
		out, _, err := execute(validateCommand(), document, "-")
		require.NoError(t, err)
		require.Contains(t, out, "trajectories an iteration")
		require.Contains(t, out, "Parameters, device memory and bytes to S3 are left out: "+from+" is fetched at the start.\n")
		require.NotContains(t, out, "\nparameters ")
		require.NotContains(t, out, "device: peak")
		r, err := validateJSON(t, document)
		require.NoError(t, err)
		require.NotContains(t, r.Derived, "memory_bytes")
		require.Empty(t, r.Spec.Rollout.PromptTokens)
		_, _, err = execute(validateCommand(), document, "-", "--card", "80GB")
		require.ErrorContains(t, err, "--card: the size of the model is not known: "+from+" is fetched at the start")
	}
}

// A model of a known name needs not be at hand; its contexts are an estimate, which is no
// part of the resolved spec.
func TestValidateKnownHub(t *testing.T) {
	document := `{` + bandit + `,"policy":{"from":"hf:Qwen/Qwen2.5-0.5B-Instruct@main"}}`
	out, _, err := execute(validateCommand(), document, "-")
	require.NoError(t, err)
	require.Regexp(t, `\nparameters +494,032,768\n`, out)
	require.Contains(t, out, "those of the starter's tokenizer")
	r, err := validateJSON(t, document)
	require.NoError(t, err)
	require.Contains(t, r.Derived["memory_bytes"], "peak")
	require.Empty(t, r.Spec.Rollout.PromptTokens)
	out, _, err = execute(validateCommand(), `{`+bandit+`,"policy":{"from":"hf:Qwen/Qwen2.5-0.5B"},"rollout":{"turns":1,"prompt_tokens":[256]}}`, "-")
	require.NoError(t, err)
	require.NotContains(t, out, "starter's tokenizer")
}

// validate says that a published model has a warm start which its spec does not ask for.
func TestValidateNotesWarmStart(t *testing.T) {
	check := func(policy string) string {
		out, _, err := execute(validateCommand(), `{`+bandit+policy+`}`, "-", "--summary")
		require.NoError(t, err)
		return out
	}
	const note = "A warm start is on by default: before the first iteration 10 supervised updates of 16 transcripts of random play"
	require.Contains(t, check(`,"policy":{"from":"hf:Qwen/Qwen2.5-0.5B"}`), note)
	require.Contains(t, check(`,"policy":{"from":"hf:Qwen/Qwen2.5-0.5B","lora":{}}`), "at a learning rate of 0.001.")
	require.NotContains(t, check(`,"policy":{"from":"hf:Qwen/Qwen2.5-0.5B","warm_start":{"steps":10}}`), "on by default")
	require.NotContains(t, check(""), "on by default")
}

// validate says where a chat template would render earlier turns in another way.
func TestValidateNotesEarlierTurns(t *testing.T) {
	folder := goldenFolderOf(t, "qwen3-tiny")
	check := func(more, policy string) string {
		out, _, err := execute(validateCommand(), `{`+bandit+`,"policy":{"from":"folder:`+folder+`"`+policy+`}`+more+`}`, "-", "--summary")
		require.NoError(t, err)
		return out
	}
	const note = "The chat template renders an earlier turn in another way"
	require.NotContains(t, check(`,"rollout":{"turns":2}`, ""), note)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "chat_template.jinja"), []byte(thinking), 0o600))
	out := check(`,"rollout":{"turns":2}`, "")
	require.Contains(t, out, note)
	require.Contains(t, out, `assistant\n<think>a thought</think><answer>an answer</answer>"`)
	require.NotContains(t, check(`,"rollout":{"turns":1}`, ""), note)
	require.NotContains(t, check(`,"rollout":{"turns":2,"think":false}`, ""), note)
	require.Contains(t, check(`,"rollout":{"turns":2,"think":false}`, `,"chat_template_kwargs":{"enable_thinking":false}`), note)
}

func TestValidateCard(t *testing.T) {
	document := func(model, more string) string {
		return `{` + bandit + `,"policy":{"from":"hf:Qwen/` + model + `"},"rollout":{"turns":1,"prompt_tokens":[1024]}` + more + `}`
	}
	out, _, err := execute(validateCommand(), document("Qwen2.5-0.5B", ""), "-", "--summary", "--card", "80GB")
	require.NoError(t, err)
	require.Contains(t, out, "It fits a device of 80 GB: it needs ")
	require.Contains(t, out, "The host needs ")

	out, _, err = execute(validateCommand(), document("Qwen2.5-7B", ""), "-", "--summary", "--card", "80GB")
	require.ErrorIs(t, err, command.ErrSilent)
	require.Contains(t, out, "It does not fit a device of 80 GB")
	require.Contains(t, out, "  a smaller model, such as qwen2.5-")
	require.Regexp(t, `\n  a device of \d\d\d GB\n$`, out)

	// What is said to fit does fit.
	big := document("Qwen2.5-0.5B", `,"update":{"micro_batch":64}`)
	out, _, err = execute(validateCommand(), big, "-", "--json", "--card", "16GB")
	require.ErrorIs(t, err, command.ErrSilent)
	var r struct{ Card validate.Card }
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.False(t, r.Card.Fits)
	require.NotEmpty(t, r.Card.Changes)
	require.Regexp(t, `^update.micro_batch: \d+ \(64 now\)$`, r.Card.Changes[0])
	less, _, _ := strings.Cut(strings.TrimPrefix(r.Card.Changes[0], "update.micro_batch: "), " ")
	_, _, err = execute(validateCommand(), strings.Replace(big, `"micro_batch":64`, `"micro_batch":`+less, 1), "-", "--card", "16GB")
	require.NoError(t, err)
	device := strings.ReplaceAll(strings.TrimPrefix(r.Card.Changes[len(r.Card.Changes)-1], "a device of "), " ", "")
	_, _, err = execute(validateCommand(), big, "-", "--card", device)
	require.NoError(t, err)

	for _, wrong := range []string{"80", "GB", "-1GB", "80 cards", "1e40GB"} {
		_, _, err = execute(validateCommand(), big, "-", "--card", wrong)
		require.ErrorContains(t, err, "is no size of a device's memory", wrong)
	}
	_, _, err = execute(validateCommand(), big, "-", "--card", "80GB", "--evaluate")
	require.ErrorContains(t, err, "--card is for specs and sweeps")
}

func TestValidateDevices(t *testing.T) {
	text, err := presets.Read("chaos-devices")
	require.NoError(t, err)
	out, _, err := execute(validateCommand(), string(text), "-", "--summary", "--devices", "4")
	require.NoError(t, err)
	require.Contains(t, out, "On 4 devices of one process the first needs ")
	require.Regexp(t, `update, shards +4 +1 +4 +4.00`, out)
	require.NotContains(t, out, "warning: ")
	out, _, err = execute(validateCommand(), string(text), "-", "--summary", "--devices", "8")
	require.NoError(t, err)
	require.Contains(t, out, "warning: an update keeps 4 of 8 devices busy: update.shards is 4; 8 keeps as many busy")
	out, _, err = execute(validateCommand(), string(text), "-", "--json", "--devices", "2")
	require.NoError(t, err)
	var r struct{ Devices cost.Devices }
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, 2, r.Devices.Update.Rounds)

	for _, wrong := range []string{"0", "-1", "1025"} {
		_, _, err = execute(validateCommand(), string(text), "-", "--devices", wrong)
		require.ErrorContains(t, err, "give a number from 1 to 1024", wrong)
	}
	// All weights of 7B fit eight cards, and none alone.
	seven := `{` + bandit + `,"policy":{"from":"hf:Qwen/Qwen2.5-7B"},"rollout":{"turns":1,"prompt_tokens":[512],"pass_rows":16},"update":{"micro_batch":1,"shards":8}}`
	_, _, err = execute(validateCommand(), seven, "-", "--card", "80GB")
	require.ErrorIs(t, err, command.ErrSilent)
	out, _, err = execute(validateCommand(), seven, "-", "--summary", "--card", "80GB", "--devices", "8")
	require.NoError(t, err, out)
	_, _, err = execute(validateCommand(), `{"base": {`+bandit+`}, "seeds": [1]}`, "-", "--devices", "2")
	require.ErrorContains(t, err, "--devices is for specs")
	_, _, err = execute(validateCommand(), `{`+bandit+`,"policy":{"from":"hf:somebody/something"}}`, "-", "--devices", "2")
	require.ErrorContains(t, err, "--devices: the size of the model is not known: hf:somebody/something is fetched at the start")
}

func TestValidateSeconds(t *testing.T) {
	out, _, err := execute(validateCommand(), "", "../../docs/devices/qwen2.5-0.5b.json", "--summary", "--devices", "8", "--card", "h100")
	require.NoError(t, err)
	require.Contains(t, out, "It fits a device of 80 GB")
	require.Contains(t, out, "An iteration on 8 × H100 SXM takes ")
	require.Contains(t, out, "\nA preemption costs ")
	text, err := presets.Read("smoke")
	require.NoError(t, err)
	_, _, err = execute(validateCommand(), string(text), "-", "--card", "h100")
	require.ErrorContains(t, err, "--card H100 SXM: its figures are of bfloat16, and policy.compute_dtype is float32: give its memory alone, such as 80GB")
}

func TestValidateSweepCard(t *testing.T) {
	document := `{"base": {` + bandit + `,"policy":{"from":"hf:Qwen/Qwen2.5-1.5B"},"rollout":{"turns":1,"prompt_tokens":[1024]}}, "grid": {"update.micro_batch": [1, 128]}, "seeds": [1, 2]}`
	out, _, err := execute(validateCommand(), document, "-", "--card", "40GB")
	require.ErrorIs(t, err, command.ErrSilent)
	require.Contains(t, out, "The trial that needs the most is update.micro_batch=128,seed=1.\nIt does not fit a device of 40 GB")
	require.Contains(t, out, "2 of 4 trials do not fit: update.micro_batch=128,seed=1, update.micro_batch=128,seed=2\n")
	_, _, err = execute(validateCommand(), document, "-", "--card", "160GB")
	require.NoError(t, err)
}

func TestValidateCountsActions(t *testing.T) {
	text, err := presets.Read("smoke")
	require.NoError(t, err)
	out, _, err := execute(validateCommand(), string(text), "-")
	require.NoError(t, err)
	// Generate, Step, Select, Update, Commit, and the search attributes; besides Score and Credit where the sampler's numbers do not do.
	require.Regexp(t, `\nactions an iteration +6 +billed by Temporal Cloud; besides 1 a snapshot, 3 an evaluation, and heartbeats\n`, out)
	rounded, err := presets.With("smoke", map[string]any{"policy": map[string]any{"exact": false}})
	require.NoError(t, err)
	out, _, err = execute(validateCommand(), string(rounded), "-")
	require.NoError(t, err)
	require.Regexp(t, `\nactions an iteration +8 `, out)
	out, _, err = execute(validateCommand(), string(text), "-", "--json")
	require.NoError(t, err)
	require.Contains(t, out, `"billed_actions":{"iteration":6,"snapshot":1,"evaluation":3}`)
}

// --summary prints what follows from a spec without the spec.
func TestValidateSummary(t *testing.T) {
	document := `{` + bandit + `}`
	whole, _, err := execute(validateCommand(), document, "-")
	require.NoError(t, err)
	short, _, err := execute(validateCommand(), document, "-", "--summary")
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(whole, "\n\n"+short))
	require.Contains(t, short, "trajectories an iteration")
	require.NotContains(t, short, "{")
	bad, _, err := execute(validateCommand(), `{"environment": 1}`, "-", "--summary")
	require.Error(t, err)
	require.Contains(t, bad, "problem")
}

// A reward that reads what no prompt asks for is no problem, but it is said.
func TestValidateSaysWhatNoPromptAsksFor(t *testing.T) {
	const document = `{"policy":{"from":"hf:Qwen/Qwen2.5-0.5B-Instruct"},"environment":{"name":"sokoban"},"rewards":[{"name":"state"}]%s}`
	out, _, err := execute(validateCommand(), fmt.Sprintf(document, ""), "-")
	require.NoError(t, err)
	require.Contains(t, out, "Warning: rewards[0] (state) reads <observation> and <prediction> in replies")
	out, _, err = execute(validateCommand(), fmt.Sprintf(document, `,"rollout":{"protocol":"vagen"}`), "-")
	require.NoError(t, err)
	require.NotContains(t, out, "Warning:")
}

// A foreign environment is asked to describe itself, so that no number is left out.
func TestValidateAsksTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "guess.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"environment":{"name":"foreign","options":{"name":"guess"}},"rewards":[{"name":"foreign","options":{"name":"judge"}}]}`), 0o644))
	run := func(args ...string) (string, error) {
		out, _, err := execute(validateCommand(), "", args...)
		return out, err
	}
	out, err := run(file, "--summary")
	require.NoError(t, err)
	require.Contains(t, out, "the environment guess describes itself when the run starts (--env-process guess=COMMAND asks it now)")
	script := standinScript(t, standin.None)
	out, err = run(file, "--summary", "--env-process", "guess="+script, "--env-process", "judge="+script, "--card", "80GB")
	require.NoError(t, err, out)
	require.NotContains(t, out, "?")
	require.NotContains(t, out, "left out")
	require.Regexp(t, `width of a row +[1-9]`, out)
	require.Regexp(t, `S3: a snapshot +[1-9]`, out)
	out, err = run(file, "--env-process", "guess="+script)
	require.NoError(t, err, out)
	require.Contains(t, out, `"version": "guess-1"`, "the description is in the resolved spec")

	sweep := filepath.Join(t.TempDir(), "sweep.json")
	require.NoError(t, os.WriteFile(sweep, []byte(`{"base":{"environment":{"name":"foreign","options":{"name":"guess"}}},"seeds":2}`), 0o644))
	out, err = run(sweep, "--card", "80GB", "--env-process", "guess="+script)
	require.NoError(t, err, out)
	for want, args := range map[string][]string{
		`a flag names the environment "gues": the spec names guess, judge`: {file, "--env-process", "gues=" + script},
		"want NAME=COMMAND":              {file, "--env-process", "guess"},
		"not with --evaluate":            {file, "--evaluate", "--env-process", "guess=" + script},
		"a sweep has no numbers without": {sweep, "--env-process", "guess=" + script},
		"the environment cannot be used": {file, "--env-process", "guess=/bin/false"},
	} {
		_, err := run(args...)
		require.ErrorContains(t, err, want, "%q", args)
	}
}

// A model that is not at hand is said to be unknown, and what may be wrong with its name is a warning.
func TestValidateNamesAnUnknownModel(t *testing.T) {
	for from, warning := range map[string]string{
		"hf:nonexist/zzz":    "Warning: the sizes of hf:nonexist/zzz are not known here, and the hub was not asked whether there is such a model.",
		"folder:/nope":       "Warning: there is no folder /nope on this machine: a host worker without it refuses the run.",
		"folder:some/where":  "a relative path is from the folder in which that worker was started: give the whole path.",
		"model:0123456789ab": "",
	} {
		out, _, err := execute(validateCommand(), `{"environment":{"name":"bandit"},"policy":{"from":"`+from+`"}}`, "-", "--summary")
		require.NoError(t, err)
		require.Regexp(t, `width of a row +\? +unknown: the model is unknown, whose tokenizer gives the context widths\n`, out, from)
		require.Contains(t, out, warning, from)
		require.NotContains(t, out, "the environment gives")
	}
}
