package study

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

var smallStudy = Size{Iterations: 12, Layers: 2, Width: 64, Groups: 8, GroupSize: 16, LearningRate: 1e-3}

func TestStudySpecs(t *testing.T) {
	for _, s := range Settings() {
		t.Run(s.Name(), func(t *testing.T) {
			text, err := studySpec(wantedRun{s, 3}, smallStudy)
			require.NoError(t, err)
			got, err := spec.Decode(text, run.Known())
			require.NoError(t, err)
			require.EqualValues(t, 3, got.Seed)
			require.EqualValues(t, 3, got.Policy.Starter.Seed)
			require.EqualValues(t, 3, got.Policy.WarmStart.Seed)
			require.Equal(t, 80, got.Policy.WarmStart.Steps, "what is not replaced is the preset's")
			require.Equal(t, 1e-3, got.Update.LearningRate)
			require.Equal(t, collapse.Warn, got.Collapse.OnDetection)
			keeps := s.Algorithm.Name == "starpo-s"
			require.Equal(t, keeps, got.Selection.Method == "top_fraction")
			require.Equal(t, s.Shared, bytes.Contains(got.Environment.Options, []byte(`"shared_chance":true`)))
		})
	}
	text, err := presets.With("bandit-demo", plantedFields(smallStudy, 2, ""))
	require.NoError(t, err)
	got, err := spec.Decode(text, run.Known())
	require.NoError(t, err)
	require.Equal(t, collapse.RollBack, got.Collapse.OnDetection)
	require.Zero(t, plantedAfter%got.Evaluation.Every, "the policy is measured where the knob is turned")
	for _, from := range []string{NoRows, spec.Demonstrations, spec.OwnSuccesses} {
		text, err := presets.With("bandit-demo", plantedFields(smallStudy, 2, from))
		require.NoError(t, err)
		arm, err := spec.Decode(text, run.Known())
		require.NoError(t, err)
		require.Equal(t, collapse.Warn, arm.Collapse.OnDetection)
		require.Equal(t, from != NoRows, arm.Update.Supervised.On())
		require.Equal(t, got.Update.LearningRate, arm.Update.LearningRate)
	}
}

func TestStudyChoosesSeedBySeed(t *testing.T) {
	o := Options{Seeds: 2, Only: []string{"ppo-p10", "starpo-s-p??"}}
	runs, err := o.chosen()
	require.NoError(t, err)
	var names []string
	for _, r := range runs {
		names = append(names, RunName(r.setting.Name(), r.seed))
	}
	require.Equal(t, []string{"starpo-s-p25-s1", "ppo-p10-s1", "starpo-s-p10-s1", "starpo-s-p25-s2", "ppo-p10-s2", "starpo-s-p10-s2"}, names)

	o.Only = []string{"ppo-p30"}
	_, err = o.chosen()
	require.ErrorContains(t, err, `--only "ppo-p30" is none of grpo-p25, ppo-p25`)
	o.Only = []string{"["}
	_, err = o.chosen()
	require.ErrorContains(t, err, "syntax error in pattern")
	_, err = Options{}.chosen()
	require.ErrorContains(t, err, "--seeds 0")
	_, err = Plant(t.Context(), Options{Rate: 1}, nil, nil)
	require.ErrorContains(t, err, "--seeds 0")
	_, err = Plant(t.Context(), Options{Seeds: 1}, nil, nil)
	require.ErrorContains(t, err, "--planted-rate 0")
}

// keepRecord keeps a record that could be of the run, computed on a device with no
// fingerprint.
func keepRecord(t *testing.T, folder string, r wantedRun, size Size) {
	t.Helper()
	text, err := studySpec(r, size)
	require.NoError(t, err)
	record := Record{Setting: r.setting.Name(), Seed: r.seed, Size: size, Metrics: map[string][]canon.Float{}}
	record.Spec, err = SpecDigest(text)
	require.NoError(t, err)
	for _, name := range Columns {
		record.Metrics[name] = make([]canon.Float, size.Iterations)
	}
	require.NoError(t, Folder(folder).Save(record))
}

// TestStudyRefusesBeforeItComputes: records that cannot be compared with the existing
// ones are refused before they are computed.
func TestStudyRefusesBeforeItComputes(t *testing.T) {
	small := Size{Iterations: 1, Layers: 1, Width: 32, Groups: 4, GroupSize: 4, LearningRate: 1e-3}
	other := small
	other.Iterations = 3
	wanted := Options{Seeds: 1, Only: []string{"grpo-p25"}, Size: small}
	runs, err := wanted.chosen()
	require.NoError(t, err)
	elsewhere := wantedRun{setting: Settings()[1], seed: 1}
	for name, c := range map[string]struct {
		size Size
		says []string
	}{
		"another size":   {other, []string{"Iterations:3", "Iterations:1", "use another --out"}},
		"another device": {small, []string{"fingerprint", "use another --out"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another device" {
				plugintest.Needs(t)
			}
			o := wanted
			o.Out = filepath.Join(t.TempDir(), "study")
			keepRecord(t, o.Out, elsewhere, c.size)
			var out, progress bytes.Buffer
			err := Run(t.Context(), o, &out, &progress)
			for _, text := range c.says {
				require.ErrorContains(t, err, text)
			}
			records, err := Folder(o.Out).Records()
			require.NoError(t, err)
			_, made := find(records, runs[0].setting.Name(), runs[0].seed)
			require.False(t, made)
		})
	}
}

// TestStudyGoesOn: what has a record is not computed again, and tables are made of
// what is there.
func TestStudyGoesOn(t *testing.T) {
	o := Options{Seeds: 2, Out: filepath.Join(t.TempDir(), "study"), Only: []string{"grpo-p25"}, Size: smallStudy}
	runs, err := o.chosen()
	require.NoError(t, err)
	todo, err := o.missing(runs)
	require.NoError(t, err)
	require.Len(t, todo, 2)
	for _, r := range runs {
		keepRecord(t, o.Out, r, o.Size)
	}
	var out, progress bytes.Buffer
	require.NoError(t, Run(t.Context(), o, &out, &progress))
	require.Equal(t, "2 runs of 12 iterations, 2 of them done already\n", progress.String())
	require.Contains(t, out.String(), "| grpo-p25 | 2 | 0.0 ± 0.0 % |")
	require.FileExists(t, filepath.Join(o.Out, "p25.svg"))

	more := o // another setting, of another size than what is there
	more.Only = []string{"ppo-p25"}
	more.Size.LearningRate = 2e-3
	require.ErrorContains(t, Run(t.Context(), more, &out, &progress), "use another --out")

	o.Size.LearningRate = 2e-3
	_, err = o.missing(runs)
	require.ErrorContains(t, err, "is of other settings")
}
