package terms

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
)

func TestTable(t *testing.T) {
	seen, knobs := map[[2]string]bool{}, map[string]Knob{}
	for _, term := range Table {
		key := [2]string{string(term.Kind), term.Name}
		require.False(t, seen[key], key)
		seen[key] = true
		require.NotEmpty(t, term.Paper, key)
		require.Equal(t, term.Kind == Frame, term.Doc == "", key)
		require.Equal(t, term.Kind == Surrogate, term.Formula != "", key)
		if term.Kind == Guard {
			require.NotEmpty(t, term.Knobs, "a spec selects %s by its first knob", term.Name)
			require.NotEmpty(t, term.Metrics, "%s says where it acts", term.Name)
		}
		for _, k := range term.Knobs {
			if other, ok := knobs[k.Name]; ok {
				require.Equal(t, other, k, "one name, two knobs")
			}
			knobs[k.Name] = k
			require.Less(t, k.Low, k.High, k.Name)
			require.True(t, k.Default == 0 || k.Default > k.Low && k.Default <= k.High, k.Name)
			require.Equal(t, k.Doc == "", k.Source == "", k.Name)
		}
	}
	_, ok := Find(Surrogate, "k1")
	require.False(t, ok)
	require.Equal(t, Knobs{"a": 1, "b": 2}, Knobs{"a": 3}.With("b", 2).With("a", 1))
}

func TestCheck(t *testing.T) {
	for _, e := range []loss.KLEstimator{"", "k1", "k2", "k3", "abs"} {
		require.NoError(t, Selection{KL: e}.Check(), e)
	}
	for surrogate, units := range map[loss.Surrogate]bool{"": true, "clip": true, "cispo": false, "sapo": false, "dppo_tv": false, "dppo_kl": false, "gmpo": false} {
		require.NoError(t, Selection{Surrogate: surrogate, Guards: OffPolicy}.Check(), surrogate)
		for _, s := range []Selection{{Guards: DualClip}, {Ratio: loss.SequenceRatio}, {Ratio: loss.TurnRatio, Turns: 2}} {
			s.Surrogate = surrogate
			if units {
				require.NoError(t, s.Check(), surrogate)
			} else {
				require.ErrorIs(t, s.Check(), batch.ErrInput, surrogate)
			}
		}
	}
	for _, s := range []Selection{
		{Surrogate: "ppo"}, {Surrogate: "k1"}, {Ratio: "word"}, {KL: "k4"}, {Guards: "clip"}, {Guards: OffPolicy + "," + DualClip}, {Value: "cube"},
		{Turns: 2}, {Ratio: loss.TurnRatio}, {KLByToken: true},
	} {
		require.ErrorIs(t, s.Check(), batch.ErrInput, s)
	}
	require.True(t, Selection{Guards: Guards(OffPolicy, DualClip)}.Has(DualClip))
	require.False(t, Selection{Guards: DualClip}.Has(OffPolicy))
	require.Empty(t, Guards())
}

// The places of columns, knobs and metrics are pinned: programs that were compiled have them so.
func TestLayout(t *testing.T) {
	always := []string{EntropyCoefficient, KLCoefficient, DualClip, AllSupervised}
	together := append(always[:4:4], TauPositive, TauNegative, RatioCap, OffPolicyLimit)
	frame := []string{"loss", "pg_loss", "entropy", "kl_loss", "pg_clipfrac", "pg_clipfrac_lower", "ppo_kl", "approx_kl", "ratio_max"}
	columns := []batch.Column{batch.OldLogProbs, batch.Advantages, batch.ClipLow, batch.ClipHigh}
	for name, c := range map[string]struct {
		of             Selection
		columns        []batch.Column
		knobs, metrics []string
	}{
		"nothing":   {knobs: always},
		"dual clip": {of: Selection{Guards: DualClip}, knobs: always},
		"cispo":     {of: Selection{Surrogate: loss.CISPO}, knobs: always},
		"sapo":      {of: Selection{Surrogate: loss.SAPO}, knobs: together},
		"dppo":      {of: Selection{Surrogate: loss.DPPOTV}, knobs: together},
		"dppo, kl":  {of: Selection{Surrogate: loss.DPPOKL}, knobs: together},
		"gmpo":      {of: Selection{Surrogate: loss.GMPO}, knobs: always},
		"mask":      {of: Selection{Guards: OffPolicy}, knobs: together, metrics: []string{OffPolicyFraction}},
		"all": {
			of: Selection{
				Ratio: loss.TurnRatio, Turns: 2, KL: loss.K3, KLByToken: true, Supervised: true, Guards: Guards(DualClip, OffPolicy),
			},
			columns: []batch.Column{batch.RefLogProbs, batch.Turns, batch.Supervised, batch.KLCoefficients},
			knobs:   together, metrics: []string{OffPolicyFraction, SupervisedLoss},
		},
	} {
		l := c.of.PolicyLayout()
		require.Equal(t, append(columns[:4:4], c.columns...), l.Columns, name)
		names := func() (knobs, metrics []string) {
			for _, k := range l.Knobs {
				knobs = append(knobs, k.Name)
			}
			for _, m := range l.Metrics {
				metrics = append(metrics, m.Name)
				require.Equal(t, m.Name == RatioMax, m.Largest)
			}
			return knobs, metrics
		}
		knobs, metrics := names()
		require.Equal(t, c.knobs, knobs, name)
		require.Equal(t, append(frame[:9:9], c.metrics...), metrics, name)
		require.Len(t, l.Own(), len(c.metrics))
	}
	l := Selection{Value: Promise}.CriticLayout()
	require.Equal(t, []batch.Column{batch.Returns, batch.OldValues}, l.Columns)
	require.Equal(t, []float32{7}, l.Pack(Knobs{ValueClip: 7, RatioCap: 8}))
	require.Equal(t, map[string]float64{"loss": 1, "vf_clipfrac": 2, "vpred_mean": 3}, l.Report([]float64{1, 2, 3}))
	require.Equal(t, []int{0, -1, 2}, []int{l.Metric(Loss), l.Metric(RatioMax), l.Metric(ValueMean)})
}
