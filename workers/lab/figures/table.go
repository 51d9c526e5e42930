package figures

import (
	"fmt"
	"slices"
	"strings"
)

// about says of each group, the first part of its rows' IDs, what was measured.
var about = map[string]string{
	"beside-transformers": "Rollouts of SmolLM2-135M-Instruct, untrained, beside those that transformers samples: success, valid replies, and how many contexts, turns and tokens are equal.",
	"bucket":              "An iteration alone, and beside a run whose reads of the bucket take 2 s longer.",
	"calls":               "What a call of a tool or an agent takes beside what it is about.",
	"chaos":               "A sweep of two hundred trials, undisturbed and with kills.",
	"compile":             "Compiling the programs of a policy with hidden size 64, and restoring with and without compiled programs.",
	"credit":              "Credit and selection on one core of a host, for 8 groups of 16 trajectories of 3,600 tokens.",
	"critic":              "A critic's Values and CriticUpdate, over the policy's Score and Update.",
	"demo":                "`make demo`: its duration, and success in percent before and after.",
	"devices":             "A rollout and an update on four virtual devices of a CPU, over one device.",
	"env":                 "Environments: rooms made, turns played, and the turns of foreign environments.",
	"exact":               "Programs with `policy.exact`, over those without.",
	"fingerprint":         "How fast the programs compute a state's fingerprint.",
	"gpu":                 "Sessions on one card: speed, memory, and a killed worker.",
	"h200":                "Learning on an H200: success on lakes before and after.",
	"host-step":           "The host's part of a rollout, beside a policy that samples 20,000 tokens a second.",
	"iteration":           "An iteration of the demo and its steps.",
	"learn":               "What `make learn` learns, by environment and seed: success before and after.",
	"ledger":              "The duration of `make ledger`, which trains every preset of a method.",
	"lights":              "Training on the Python environment of `docs/own/lights.json`.",
	"loss":                "Options of the loss, over the clipped surrogate alone.",
	"memory":              "A fresh worker's resident memory, and how far it exceeds what `validate --card` says.",
	"notice":              "From the notice that a machine is going to be taken to the beginning of the next step on another worker, by the step that ran.",
	"planted":             "A planted collapse: when it is detected, where the run goes back to, and its level before and after.",
	"planted-0.01":        "A planted collapse with a learning rate of 0.01, and what supervised updates do against it.",
	"policy-try":          "What `reprise policy try` costs.",
	"preset":              "What runs of presets reach.",
	"programs":            "From the start of `reprise dev` to the first commit, with compiled programs from a bucket and without.",
	"reasoning":           "Training on `docs/own/reasoning.json`, three seeds: success before and after.",
	"recovery":            "After a kill: when the run notices, when its next step begins, and what rebuilding the weights takes.",
	"reference":           "What a random player and the best possible one reach in environments.",
	"reinforced":          "Success on lakes and Sokoban before and after reinforcement, by setting.",
	"report":              "The report of a run of 220 iterations and 28,160 trajectories.",
	"reward":              "What policies learn from each kind of reward, by seed.",
	"size":                "Qwen2.5-0.5B's shape on two cores: duration, memory, restarts, and log-probs beside transformers.",
	"signals":             "Training with the tool of `docs/own/signals.py`, on places that are not trained on.",
	"smol-bandit":         "SmolLM2-135M-Instruct on Bandit, all weights trained.",
	"smol-bandit-lora":    "SmolLM2-135M-Instruct on Bandit, by an adapter.",
	"smol-distill":        "What adapters of SmolLM2-135M learn on the bandit from the model with all weights trained.",
	"smol-frozenlake":     "SmolLM2-135M-Instruct on FrozenLake, all weights trained.",
	"smol-lakes-lora":     "SmolLM2-135M-Instruct on FrozenLake, by an adapter.",
	"soak":                "Three thousand iterations on one worker.",
	"speed":               "Forward passes, training and decoding, in tokens a second and over torch and transformers.",
	"study":               "`make study`: success by method and number of tokens, and what detectors of collapse see.",
	"supervised":          "Success on lakes and Sokoban after supervised updates alone.",
	"sweep":               "What a sweep adds to its trials, and what sweeps of presets give.",
	"tax":                 "What Temporal and S3 add to an iteration.",
	"twins":               "How long the twins of RAGEN's figures take.",
	"update":              "Processor time of an update with memory kept and given back.",
	"updates":             "Updates of fewer rows, of several widths and of kept values, over plain ones.",
	"worker":              "Resident memory of workers.",
	"workers":             "A rollout by two workers of one core each, over one of them.",
}

// Table lists all rows in Markdown: a section a group, and in it a table for each measurement, which is what
// one command printed on one machine, day and commit.
func Table(figures []Figure, numerics int) string {
	var b strings.Builder
	for i := 0; i < len(figures); {
		name, n := group(figures[i]), i+1
		for n < len(figures) && group(figures[n]) == name {
			n++
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", name, about[name])
		for _, rows := range sittings(figures[i:n]) {
			fmt.Fprintf(&b, "\n`%s`, %s\n\n| figure | value |\n|---|---|\n", rows[0].Command, rows[0].circumstances())
			for _, f := range rows {
				fmt.Fprintf(&b, "| `%s` | %s |\n", f.ID, f.withUnit(numerics))
			}
		}
		i = n
	}
	return b.String()
}

// group is the first part of a row's ID.
func group(f Figure) string {
	name, _, _ := strings.Cut(f.ID, "/")
	return name
}

// withUnit is the number with its unit, unless the number says it.
func (f Figure) withUnit(numerics int) string {
	if slices.Contains(strings.Fields(f.Text()), f.Unit) {
		return f.shown(numerics)
	}
	return strings.TrimSpace(f.shown(numerics) + " " + f.Unit)
}

// circumstances are where and when the row was measured.
func (f Figure) circumstances() string {
	if !f.Measured() {
		return "not measured"
	}
	return fmt.Sprintf("on %s, %s, commit %.7s", f.Machine, f.Date, f.Commit)
}

// sittings splits rows by command, machine, day and commit, each in the place of its first row.
func sittings(figures []Figure) [][]Figure {
	var all [][]Figure
	for _, f := range figures {
		at := slices.IndexFunc(all, func(rows []Figure) bool {
			return rows[0].Command == f.Command && rows[0].circumstances() == f.circumstances()
		})
		if at < 0 {
			all, at = append(all, nil), len(all)
		}
		all[at] = append(all[at], f)
	}
	return all
}
