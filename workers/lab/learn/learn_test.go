package learn

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/presets/presetstest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/statistics"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func TestLessonSpecs(t *testing.T) {
	for _, l := range settings {
		t.Run(l.Name, func(t *testing.T) {
			if presetstest.Without(l.Preset) {
				t.Skip("the preset's method is not in the table")
			}
			text, err := specOf(l, 3)
			require.NoError(t, err)
			s, err := spec.Decode(text, run.Known())
			require.NoError(t, err)
			require.EqualValues(t, 3, s.Seed)
			require.Positive(t, s.Evaluation.Every)
			require.Equal(t, l.Teacher != "", s.Teacher != nil)
			if l.Teacher != "" {
				require.Equal(t, "run:learn-"+l.Teacher+"-s1", s.Teacher.From)
				_, err := specOf(named(l.Teacher), teaching)
				require.NoError(t, err)
			}
			if len(l.Metrics) > 0 {
				require.Len(t, s.Rewards, 1)
				require.NotZero(t, s.Rewards[0].Weight)
				require.Equal(t, strings.HasSuffix(l.Name, "-unpaid"), len(s.Schedule) > 0)
				require.Equal(t, l.Ends == nil, strings.HasPrefix(l.What, "nothing"))
				require.True(t, len(s.Schedule) == 0 || l.Ends == nil, "what is not paid promises nothing")
				return
			}
			if strings.HasPrefix(l.Preset, "smol-") { // a model of 134.5 M parameters: fewer rows
				require.Equal(t, map[bool]int{false: 64, true: 128}[l.Preset == "smol-frozenlake"], s.Evaluation.Suites[0].Rows())
				require.Equal(t, 1.0, s.Evaluation.Temperature)
				require.Equal(t, l.Preset == "smol-frozenlake", s.Rollout.Turns > 1)
				return
			}
			require.Equal(t, 256, s.Evaluation.Suites[0].Rows())
			if l.Preset != "bandit-demo" {
				require.Equal(t, l.Name != "lookup-starter-alone" && l.Preset != "code-starter", s.Rollout.Turns > 1)
				require.Equal(t, l.Name == "lookup-starter", len(s.Environment.Tools) > 0)
				sampled := l.Preset == "webshop-starter" || l.Preset == "lookup-starter"
				require.Equal(t, map[bool]float64{false: 0.5, true: 1}[sampled], s.Evaluation.Temperature)
				return
			}
			require.Contains(t, string(s.Environment.Options), "high_probability")
		})
	}
	text, err := specOf(settings[1], 3)
	require.NoError(t, err)
	s, err := spec.Decode(text, run.Known())
	require.NoError(t, err)
	require.Equal(t, 25, s.Iterations)
	require.Equal(t, "all", s.Selection.Method)
	require.False(t, s.Credit.NormalizeByStd)
}

func TestLessonPromises(t *testing.T) {
	l := Setting{From: &[2]float64{0.35, 0.65}, To: &[2]float64{0.90, 1}}
	for _, c := range []struct {
		before, after float64
		want          string
	}{
		{0.35, 0.90, ""},
		{0.65, 1, ""},
		{0.34, 0.95, "began at 34.0 %"},
		{0.5, 0.899, "ended at 89.9 %"},
	} {
		require.Equal(t, c.want, l.broken(Outcome{Before: Figure{Success: c.before}, After: Figure{Success: c.after}}))
	}
	require.Empty(t, Setting{}.broken(Outcome{}), "what promises nothing breaks nothing")

	// ± 0.03 each: the difference has 0.0424.
	wide := 0.03 * statistics.Z95
	before := Figure{Success: 0.30, Low: 0.30 - wide, High: 0.30 + wide}
	after := Figure{Success: 0.42, Low: 0.42 - wide, High: 0.42 + wide}
	require.InDelta(t, 0.12/(0.03*math.Sqrt2), rise(before, after), 1e-9)
	require.Equal(t, "30.0 ± 3.0 %", before.String())
	rises := Setting{Rises: 3}
	require.Equal(t, "rose by 2.8", rises.broken(Outcome{Rise: 2.83}))
	require.Equal(t, "rose by NaN", rises.broken(Outcome{Rise: math.NaN()}))
	require.Empty(t, rises.broken(Outcome{Rise: 3}))

	reaches := Setting{Reaches: 1. / 3}
	for success, want := range map[float64]string{0.33: "came 29 % of the way to best play", 0.38: "", 0.02: "came -3 % of the way to best play"} {
		require.Equal(t, want, reaches.broken(Outcome{After: Figure{Success: success, Random: 0.05, Best: 1}}))
	}
	require.Equal(t, "came NaN % of the way to best play", reaches.broken(Outcome{After: Figure{Success: 1, Best: -1}}), "best play is not known")

	ended := 0.79
	promise := Setting{Ends: &[2]float64{0.8, 1}}
	require.Equal(t, "reward/state/mean ended at 0.79", promise.broken(Outcome{Measured: []Measured{{Metric: "reward/state/mean", Last: &ended}}}))
	require.Equal(t, "reward/state/mean is absent", promise.broken(Outcome{Measured: []Measured{{Metric: "reward/state/mean"}}}))
	ended = 0.8
	require.Empty(t, promise.broken(Outcome{Measured: []Measured{{Metric: "reward/state/mean", Last: &ended}}}))
}

// What a run measured is the mean over the iterations that have it.
func TestLearnMeasured(t *testing.T) {
	var chain store.Chain
	for i := range 12 {
		metrics := map[string]canon.Float{}
		if i != 1 {
			metrics["thought/wrong_share"] = canon.Float(i)
		}
		chain = append(chain, store.Link{Manifest: &store.Manifest{Metrics: metrics}})
	}
	m := measured(chain, "thought/wrong_share")
	require.InDelta(t, 9./4, *m.First, 1e-12)
	require.InDelta(t, 9., *m.Last, 1e-12)
	absent := measured(chain, "reward/state/mean")
	require.Nil(t, absent.First)

	var b bytes.Buffer
	require.NoError(t, Print(&b, []Result{{Setting{Name: "reward-state"}, []Outcome{{Seed: 2, Measured: []Measured{m, absent}}}}}))
	_, table, ok := strings.Cut(b.String(), "of the last.\n\n")
	require.True(t, ok)
	require.Equal(t, "setting       seed  metric               first  last  \n"+
		"reward-state  2     thought/wrong_share  2.25   9.00  \n"+
		"reward-state  2     reward/state/mean    –      –     \n", table)
}

func TestLearnTable(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, Print(&b, []Result{
		{settings[0], []Outcome{{Seed: 1, Before: Figure{Success: 0.47, Reward: 0.169}, After: Figure{Success: 0.961, Reward: 0.222, Random: 0.5, Best: 1}, Iterations: 30, Seconds: 31}}},
		{settings[2], []Outcome{{Seed: 2, Before: Figure{Success: 0.47}, After: Figure{Success: 0.3, Best: -1}, Broken: "ended at 30.0 %"}}},
	}))
	require.Contains(t, b.String(), "p25-keep25  1     47.0 ± 0.0 % → 96.1 ± 0.0 %  0.0 SE  50.0 %  100.0 %  0.169 → 0.222  30          31       35–65 % to at least 90 %: kept")
	require.Contains(t, b.String(), "BROKEN, ended at 30.0 %")
}

// The curves stand beside each other, with at most a dozen columns.
func TestLearnCurves(t *testing.T) {
	var b bytes.Buffer
	rising := []float64{0.48, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95}
	require.NoError(t, Print(&b, []Result{
		{Setting{Name: "full"}, []Outcome{{Seed: 1, Curve: rising}}},
		{Setting{Name: "adapters"}, []Outcome{{Seed: 1, Curve: rising[:3]}}},
		{Setting{Name: "lake", Rises: 3}, []Outcome{{Seed: 1, Curve: make([]float64, 60)}}},
	}))
	_, curves, ok := strings.Cut(b.String(), "the first being 1.\n\n")
	require.True(t, ok)
	require.Equal(t, "setting   seed  1     5     10  15  20  25  30  35  40  45  50  55  60  \n"+
		"full      1     48 %  80 %  \nadapters  1     48 %  \nlake      1     0 %   "+strings.Repeat("0 %  ", 12)+"\n", curves)
	b.Reset()
	require.NoError(t, Print(&b, []Result{{Setting{Name: "long"}, []Outcome{{Seed: 1, Curve: make([]float64, 61)}}}}))
	require.Contains(t, b.String(), "seed  1    10   20   30   40   50   60   \n")
}

// Versions between the first and the last are shown where they were measured.
func TestLearnVersions(t *testing.T) {
	at := func(version int, success float64) Evaluation { return Evaluation{version, Figure{Success: success}} }
	var b bytes.Buffer
	require.NoError(t, Print(&b, []Result{{Setting{Name: "code"}, []Outcome{
		{Seed: 1, Evaluated: []Evaluation{at(0, 0.121), at(20, 0.363), at(40, 0.402)}}, {Seed: 2, Evaluated: []Evaluation{at(0, 0.1), at(40, 0.3)}},
	}}}))
	_, table, ok := strings.Cut(b.String(), "by version.\n\n")
	require.True(t, ok)
	require.Equal(t, "code  1  0: 12.1 %  20: 36.3 %  40: 40.2 %  \n", table)
}

// rewardNames are the names of rewards' settings, as a message lists them.
func rewardNames() string {
	var names []string
	for _, s := range rewards() {
		names = append(names, s.Name)
	}
	return strings.Join(names, ", ")
}

func TestLearnRefusesUnknownSetting(t *testing.T) {
	_, err := Run(t.Context(), Options{Only: "p30", Seeds: 1}, &bytes.Buffer{})
	require.EqualError(t, err, `learn: --only "p30" is none of p25-keep25, p25-all, p10-all, p10-keep25, p25-all-std, p25-lora, frozenlake, sokoban, webshop-starter, code-starter, code-distill, lookup-starter, lookup-starter-alone, roles, roles-grpo, smol-bandit, smol-bandit-lora, smol-distill, smol-frozenlake, `+rewardNames())
	_, err = Run(t.Context(), Options{}, &bytes.Buffer{})
	require.ErrorContains(t, err, "--seeds 0")
}
