package presets_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/activities/sweeps"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/presets/presetstest"
	"github.com/reprise-rl/reprise/workflows/spec"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

const twin = "-starter"

// paper is what the sweeps are: the paper's figures and tables by their presets, the
// settings of each and of its twin. docs/results/paper.md says where they come from.
var paper = map[string]struct{ settings, twin int }{
	"fig5-baseline":    {8, 6},
	"fig6-collapse":    {8, 2},
	"fig7-filter":      {12, 3},
	"fig8-shaping":     {6, 3},
	"fig9-starpo-s":    {8, 6},
	"fig10-freshness":  {4, 3},
	"fig11-length":     {6, 6},
	"table2-diversity": {6, 4},
	"table3-actions":   {7, 3},
	"table4-reasoning": {6, 6},
}

// isSweep reports whether a preset starts a sweep: by its name it is a figure, a table, or a
// comparison.
func isSweep(name string) bool {
	return strings.HasPrefix(name, "fig") || strings.HasPrefix(name, "table") || name == comparison
}

// comparison is the sweep of all weights beside adapters. The figures whose names end with
// adapters are the paper's for larger models.
const (
	comparison = "full-or-lora"
	adapters   = "-lora"
)

// ofAdapters are the figures for larger models.
var ofAdapters = []string{"fig5-baseline", "fig7-filter", "fig9-starpo-s"}

// expand decodes a sweep and the spec of each of its trials.
func expand(t *testing.T, name string) (sweep.Definition, []sweep.Trial, []spec.Train) {
	t.Helper()
	b, err := presets.Read(name)
	require.NoError(t, err)
	d, trials, err := sweep.Decode(b, sweeps.KnownSweep())
	require.NoError(t, err)
	trains := make([]spec.Train, len(trials))
	for i, trial := range trials {
		trains[i], err = spec.Decode(trial.Spec, run.Known())
		require.NoError(t, err, trial.Label)
	}
	return d, trials, trains
}

func settings(trials []sweep.Trial) []string {
	var out []string
	for _, trial := range trials {
		if !slices.Contains(out, trial.Setting) {
			out = append(out, trial.Setting)
		}
	}
	return out
}

func TestSweepsAreThePapers(t *testing.T) {
	want, have := []string{comparison}, []string(nil)
	for name := range paper {
		want = append(want, name, name+twin)
	}
	for _, name := range ofAdapters {
		want = append(want, name+adapters)
	}
	for _, name := range presets.Names() {
		if isSweep(name) {
			have = append(have, name)
		}
	}
	require.ElementsMatch(t, want, have)
}

// The published values hold in every trial: fields that a setting does not vary follow
// the paper's section 3 and appendix B.
func TestSweepsAsPublished(t *testing.T) {
	for name, counts := range paper {
		if presetstest.Without(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			d, trials, trains := expand(t, name)
			require.NotEmpty(t, d.Description)
			require.Len(t, settings(trials), counts.settings)
			require.Len(t, trials, 3*counts.settings, "three seeds")
			for i, train := range trains {
				label := trials[i].Label
				require.Equal(t, "hf:Qwen/Qwen2.5-0.5B-Instruct", train.Policy.From, label)
				require.Equal(t, 200, train.Iterations, label)
				if train.Rollout.GroupSize > 1 {
					require.Equal(t, 8*16, train.Rollout.Trajectories(), label)
				}
				require.Equal(t, 32, train.Update.Minibatch, label)
				require.Equal(t, 4, train.Update.MicroBatch, label)
				require.Equal(t, 1e-6, train.Update.LearningRate, label)
				require.Equal(t, 0.001, train.Update.EntropyCoefficient, label)
				require.Equal(t, -0.1, train.Rollout.FormatPenalty, label)
				require.Equal(t, "ragen", train.Rollout.Protocol, label)
				require.Equal(t, 256, train.Evaluation.Instances, label)
				require.Equal(t, 0.5, train.Evaluation.Temperature, label)
				if train.Environment.Name == "bandit" {
					require.Equal(t, 1, train.Rollout.Turns, label)
				} else {
					require.Equal(t, 5, train.Rollout.Turns, label)
				}
			}
		})
	}
}

// A figure for larger models has the trials of the figure for each of them, and differs in what
// RAGEN's base-lora says.
func TestSweepsOfAdapters(t *testing.T) {
	for _, name := range ofAdapters {
		t.Run(name, func(t *testing.T) {
			_, published, want := expand(t, name)
			_, trials, trains := expand(t, name+adapters)
			require.Len(t, trials, 2*len(published))
			models := map[string]int{}
			for _, train := range trains {
				models[train.Policy.From]++
				require.Equal(t, 64, train.Policy.LoRA.Rank)
				var paths []string
				for _, d := range spec.Diff(want[0], train) {
					if strings.HasPrefix(d.Path, "policy.") || strings.HasSuffix(d.Path, "learning_rate") {
						paths = append(paths, d.Path)
					}
				}
				require.Equal(t, []string{
					"policy.from", "policy.lora.rank", "policy.lora.alpha", "policy.lora.targets", "policy.lora.rslora", "policy.lora.seed",
					"update.learning_rate", "critic.learning_rate",
				}, paths)
				require.Equal(t, 1e-5, train.Update.LearningRate)
				require.Equal(t, 1e-4, train.Critic.LearningRate)
			}
			require.Equal(t, map[string]int{"hf:Qwen/Qwen2.5-3B-Instruct": len(published), "hf:Qwen/Qwen2.5-7B-Instruct": len(published)}, models)
		})
	}
}

// All weights and adapters are compared with all else equal but for the learning rate.
func TestComparisonOfAdapters(t *testing.T) {
	_, trials, trains := expand(t, comparison)
	require.Len(t, trials, 4*3)
	for i, train := range trains {
		for _, d := range spec.Diff(trains[0], train) {
			require.True(t, strings.HasPrefix(d.Path, "policy.lora.") || d.Path == "update.learning_rate" || d.Path == "seed", "%s: %s", trials[i].Label, d.Path)
		}
	}
}

// A twin varies what its figure varies, on a CPU in minutes.
func TestSweepsTwins(t *testing.T) {
	for name, counts := range paper {
		if presetstest.Without(name) {
			continue
		}
		t.Run(name+twin, func(t *testing.T) {
			d, trials, trains := expand(t, name+twin)
			require.Contains(t, d.Description, "The twin of "+name+" ")
			require.Contains(t, d.Description, "It shows the machinery, not the paper's conclusion.")
			_, published, _ := expand(t, name)
			var parts []string
			for _, s := range settings(published) {
				parts = append(append(parts, s), strings.Split(s, ",")...)
			}
			have := settings(trials)
			require.Len(t, have, counts.twin)
			require.Len(t, trials, 2*counts.twin, "two seeds")
			for _, s := range have {
				require.Contains(t, parts, s, "a setting of the figure")
			}
			turns := 0
			for i, train := range trains {
				require.Equal(t, spec.FromStarter, train.Policy.From, trials[i].Label)
				require.LessOrEqual(t, train.Limits.ActivitySeconds, 60, trials[i].Label)
				turns += train.Iterations * train.Rollout.Trajectories() * train.Rollout.Turns
			}
			require.LessOrEqual(t, turns, 25_000, "turns of all trials together")
		})
	}
}

// Figures that show other metrics of the same runs have the same trials.
func TestSweepsOfTheSameRuns(t *testing.T) {
	for a, b := range map[string]string{"fig5-baseline": "fig6-collapse", "table4-reasoning": "fig11-length"} {
		first, trials, _ := expand(t, a)
		second, same, _ := expand(t, b)
		require.Equal(t, trials, same, "%s and %s", a, b)
		require.NotEqual(t, first.Metrics, second.Metrics)
	}
}

// In the tables, what is varied is varied in the suites too.
func TestSweepsSuitesHaveTheActionsOfTheRun(t *testing.T) {
	type limits struct {
		Actions int `json:"max_actions"`
		Turn    int `json:"max_actions_per_turn"`
	}
	read := func(options json.RawMessage) (l limits) {
		require.NoError(t, json.Unmarshal(options, &l))
		return l
	}
	for _, name := range []string{"table3-actions", "table3-actions" + twin} {
		_, trials, trains := expand(t, name)
		for i, train := range trains {
			run := read(train.Environment.Options)
			require.Equal(t, train.Rollout.Turns*run.Turn, run.Actions, trials[i].Label)
			for _, suite := range train.Evaluation.Suites {
				if suite.Name != spec.InDistribution {
					require.Equal(t, run, read(suite.Environment.Options), "%s: %s", trials[i].Label, suite.Name)
				}
			}
		}
	}
}

// The manual has a line for each of them.
func TestSweepsAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../docs/results/paper.md")
	require.NoError(t, err)
	for name := range paper {
		require.Contains(t, string(b), "`"+name+"`")
	}
	for _, name := range ofAdapters {
		require.Contains(t, string(b), "`"+name+adapters+"`")
	}
}
