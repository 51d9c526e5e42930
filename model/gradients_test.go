package model

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// agreeWithDifferences compares the gradient of the minibatch's loss in float64 with
// central differences: along a random direction of each tensor, where all its
// elements count, along two single elements, the one with the largest derivative
// among them, and along a direction of all tensors at once. The loss has kinks. If one of
// the sides metrics counts the tokens beyond a kink, no difference may reach over it; the
// caller keeps the tokens away from the others. It gives metrics and gradient.
func (d *doubled) agreeWithDifferences(t *testing.T, base Params, m *minibatch, sides ...int) (metrics []float64, gradient [][]float64) {
	t.Helper()
	values, params := d.params(t, base)
	defer free(params)
	at, grads := d.losses(t, params, m, true)

	// The error of a central difference is h²/6 times a third derivative, and about
	// 1e-16/h of rounding.
	const h = 1e-5
	along := func(what string, directions map[int][]float64) {
		t.Helper()
		var want float64
		for i := range grads {
			for j, x := range directions[i] {
				want += x * grads[i][j]
			}
		}
		var lossAt [2]float64
		for side, by := range []float64{-h, h} {
			moved := slices.Clone(params)
			var own []compute.Buffer
			for i, direction := range directions {
				v := slices.Clone(values[i])
				for j := range v {
					v[j] += by * direction[j]
				}
				moved[i] = d.put(t, v, d.p.c.Tensors()[i].Shape...)
				own = append(own, moved[i])
			}
			now, _ := d.losses(t, moved, m, false)
			free(own)
			lossAt[side] = now[0]
			for _, s := range sides {
				require.Equal(t, at[s], now[s], "%s: over a kink", what)
			}
		}
		got := (lossAt[1] - lossAt[0]) / (2 * h)
		require.InDelta(t, want, got, 1e-6*math.Abs(want)+1e-10, what)
	}
	every := map[int][]float64{}
	for i, ts := range d.p.c.Tensors() {
		r := draw.Address{Seed: 5, Purpose: "test", Step: int64(i)}.Rand()
		every[i] = make([]float64, ts.Elements())
		for j := range every[i] {
			every[i][j] = r.NormFloat64() / math.Sqrt(float64(ts.Elements()))
		}
		along(ts.Name+", a direction", map[int][]float64{i: every[i]})
		steepest := 0
		for j, g := range grads[i] {
			if math.Abs(g) > math.Abs(grads[i][steepest]) {
				steepest = j
			}
		}
		require.NotZero(t, grads[i][steepest], ts.Name)
		for _, j := range []int{steepest, r.IntN(ts.Elements())} {
			one := make([]float64, ts.Elements())
			one[j] = 1
			along(ts.Name+", an element", map[int][]float64{i: one})
		}
	}
	along("all tensors", every)
	return at, grads
}

// params are the parameters in float64, here and on the device.
func (d *doubled) params(t *testing.T, base Params) (values [][]float64, buffers []compute.Buffer) {
	t.Helper()
	for i, ts := range base.Config.Tensors() {
		values = append(values, float64s(base.Values[i]))
		buffers = append(buffers, d.put(t, values[i], ts.Shape...))
	}
	return values, buffers
}

// requireRounded requires that the float32 programs give the gradient in float64, except
// for rounding.
func requireRounded(t *testing.T, want [][]float64, got Params) {
	t.Helper()
	for i, ts := range got.Config.Tensors() {
		var largest, off float64
		for j, g := range got.Values[i] {
			largest = math.Max(largest, math.Abs(want[i][j]))
			off = math.Max(off, math.Abs(want[i][j]-float64(g)))
		}
		require.Less(t, off, 2e-5*largest, ts.Name)
	}
}

// The gradient of the policy's whole loss by every tensor, through a network with a
// tied head, and through one with a head of its own, whose positions and queries go
// in chunks.
func TestPolicyGradientsAgreeWithDifferences(t *testing.T) {
	type setting struct {
		name        string
		o           LossOptions
		aggregation loss.Aggregation
		supervised  bool
		rounded     bool // the float32 programs are compared too
	}
	for _, n := range []struct {
		name     string
		tied     bool
		limits   limits
		settings []setting
	}{
		{"tied", true, defaultLimits, []setting{
			{name: "token mean", aggregation: loss.TokenMean},
			{name: "dual clip, k3", o: LossOptions{Guards: terms.DualClip, KL: loss.K3}, aggregation: loss.SeqMeanTokenSum, rounded: true},
			{name: "sequence, k2", o: LossOptions{Ratio: loss.SequenceRatio, KL: loss.K2}, aggregation: loss.SeqMeanTokenMean, rounded: true},
			{name: "k1", o: LossOptions{KL: loss.K1}, aggregation: loss.Constant},
			{name: "turn", o: LossOptions{Ratio: loss.TurnRatio, Turns: 3}, aggregation: loss.TokenMean, rounded: true},
			{name: "sapo", o: LossOptions{Surrogate: loss.SAPO}, aggregation: loss.SeqMeanTokenMean, rounded: true},
			{name: "cispo", o: LossOptions{Surrogate: loss.CISPO}, aggregation: loss.TokenMean},
			{name: "dppo", o: LossOptions{Surrogate: loss.DPPOTV}, aggregation: loss.TokenMean},
			{name: "dppo, kl", o: LossOptions{Surrogate: loss.DPPOKL}, aggregation: loss.TokenMean},
			{name: "gmpo", o: LossOptions{Surrogate: loss.GMPO}, aggregation: loss.SeqMeanTokenMean},
			{name: "off-policy mask", o: LossOptions{Guards: terms.OffPolicy}, aggregation: loss.TokenMean},
			{name: "rows to imitate, turn, k3", o: LossOptions{Ratio: loss.TurnRatio, Turns: 3, KL: loss.K3, KLByToken: true, Supervised: true}, aggregation: loss.TokenMean, rounded: true},
		}},
		{"untied, chunked", false, limits{queries: 5, logits: 37 * 10, prefill: 6}, []setting{
			{name: "dual clip", o: LossOptions{Guards: terms.DualClip}, aggregation: loss.Constant, rounded: true},
			{name: "sequence, dual clip, k3", o: LossOptions{Ratio: loss.SequenceRatio, Guards: terms.DualClip, KL: loss.K3}, aggregation: loss.SeqMeanTokenMean},
			{name: "abs", o: LossOptions{KL: loss.KAbs}, aggregation: loss.TokenMean},
			{name: "supervised", aggregation: loss.SeqMeanTokenSum, supervised: true},
		}},
	} {
		t.Run(n.name, func(t *testing.T) {
			cfg := tiny()
			cfg.TieEmbeddings = n.tied
			legal := make([]bool, cfg.VocabSize)
			for i := range legal {
				legal[i] = i < 30
			}
			base := tinyParams(cfg)
			k := testSettings()
			k.Temperature, k.EntropyCoefficient = 0.8, 0.3
			prepare := func(t *testing.T, o LossOptions) *Programs {
				p, err := testDevice(t).programsWith(cfg, legal, Shapes{MicroBatch: 3, Sequence: 8, Loss: o}, n.limits)
				require.NoError(t, err)
				t.Cleanup(p.Free)
				return p
			}
			p := prepare(t, LossOptions{})
			d := inFloat64(t, p, legal, k.Temperature)
			for _, c := range n.settings {
				t.Run(c.name, func(t *testing.T) {
					p, k := prepare(t, c.o), k.with(c.o)
					if c.o.Has(terms.DualClip) {
						k.Knobs = k.Knobs.With(terms.DualClip, 1.5)
					}
					if c.o.KL != "" {
						k.KLCoefficient = 0.5
					}
					batches := d.awayFromKinks(t, base, c.o)
					require.NoError(t, batch.Weigh(batches, c.aggregation, 40))
					if c.o.Supervised {
						markRow(&batches[0], 1)
					}
					if c.o.KLByToken {
						for i := range batches {
							batches[i].Columns[batch.KLCoefficients] = batches[i].Columns[batch.ClipHigh] // any numbers
						}
					}
					all, _, err := p.Learner.packAll(batches, k.reads(p.sh.Loss, c.supervised))
					require.NoError(t, err)
					m := d.minibatch(t, lossOnly(widened(p)), all, k.knobs(p.sh.Loss, c.supervised))
					m.metrics = p.Learner.metricCount()
					defer m.free()
					said, want := d.agree(t, base, m, c.o)
					require.Equal(t, !c.supervised && c.o.Surrogate != loss.SAPO, said[p.metric(terms.ClipFraction)] > 0)
					require.Equal(t, c.o.Has(terms.OffPolicy) || c.o.Supervised, len(p.Learner.layout.Own()) > 0 && said[p.metric(p.Learner.layout.Own()[0].Name)] > 0)
					require.Equal(t, c.o.Has(terms.DualClip), said[p.metric(terms.DualClipFraction)] > 0)
					require.Equal(t, c.o.KL != "", said[p.metric(terms.KL)] != 0)
					if c.rounded {
						s, err := p.UploadParams(base)
						require.NoError(t, err)
						defer s.Free()
						got, _ := gradients(t, p, s, batches, k, c.supervised)
						requireRounded(t, want, got)
					}
				})
			}
		})
	}
}

// awayFromKinks is a minibatch with ratios on both sides of all bounds, and far from
// them: a bound of randomMinibatch is e^−0.36 to e^−0.1, or e^0.18 to e^0.34, the
// dual clip of 1.5 is e^0.4, and a log-ratio of ±20 and a K3 of 10 are the last. For
// the ratio of a sequence a row has one advantage, and bounds of its own, as for loss.GMPO, and for the ratio of
// a turn a turn has: with others the derivative is GSPO-token's, which is not the loss's
// (see referencePolicy).
func (d *doubled) awayFromKinks(t *testing.T, base Params, o LossOptions) []batch.MicroBatch {
	t.Helper()
	_, params := d.params(t, base)
	defer free(params)
	batches, _ := randomMinibatch(11, 0)
	r := draw.Address{Seed: 4, Purpose: "test"}.Rand()
	reference := []float64{-3.4, -0.9, -0.3, 0.2, 0.6}
	n := 0
	for i, b := range batches {
		for row := range b.IDs {
			for at := range b.IDs[row] {
				b.IDs[row][at] %= 30
			}
		}
		lp := d.logProbs(t, params, b)
		for row := range b.IDs {
			ofRows := []struct{ off, advantage float64 }{{0.7, 1.2}, {0.04, -0.7}, {-0.7, -0.9}, {}, {-0.04, 0.8}, {0.7, -0.6}}
			for at := range b.IDs[row] {
				n++
				off := []float64{-0.7, -0.04, 0.04, 0.7, 25, -25}[n%6]
				advantage := math.Abs(float64(b.Columns[batch.Advantages][row][at]))
				if (n+n/6)%2 == 0 && (off != 25 || o.Has(terms.DualClip)) { // else the loss is e^20
					advantage = -advantage
				}
				if o.Ratio == loss.SequenceRatio || o.Ratio == loss.TurnRatio {
					ofRow := ofRows[3*i+row]
					if o.Ratio == loss.TurnRatio {
						ofRow = ofRows[(3*i+row+int(b.Columns[batch.Turns][row][at]))%len(ofRows)]
					}
					off = ofRow.off + 0.02*(r.Float64()-0.5)
					advantage, b.Columns[batch.ClipLow][row][at], b.Columns[batch.ClipHigh][row][at] = ofRow.advantage, 0.2, 0.28
				}
				switch o.Surrogate {
				case loss.GMPO:
					off, advantage = []float64{-0.7, -0.04, 0.04, 0.7}[n%4], ofRows[3*i+row].advantage
					b.Columns[batch.ClipLow][row][at], b.Columns[batch.ClipHigh][row][at] = 0.2, 0.28
				case loss.DPPOKL: // of log-ratios of 0.04 it is below 1e-4, of 0.7 above 1e-3
					b.Columns[batch.ClipLow][row][at], b.Columns[batch.ClipHigh][row][at] = 5e-4, 5e-4
				}
				b.Columns[batch.Advantages][row][at] = float32(advantage)
				b.Columns[batch.OldLogProbs][row][at] = float32(lp[row][at] - off)
				b.Columns[batch.RefLogProbs][row][at] = float32(lp[row][at] - reference[r.IntN(len(reference))])
			}
		}
	}
	return batches
}

// logProbs are a micro-batch's, [row][token].
func (d *doubled) logProbs(t *testing.T, params []compute.Buffer, b batch.MicroBatch) [][]float64 {
	t.Helper()
	return d.scores(t, params, b, 0)
}

// scores are a micro-batch's numbers of an output of the forward program, [row][token].
func (d *doubled) scores(t *testing.T, params []compute.Buffer, b batch.MicroBatch, output int) [][]float64 {
	t.Helper()
	packed, err := d.p.Scorer.pack(b)
	require.NoError(t, err)
	d.p.device.run.Lock()
	defer d.p.device.run.Unlock()
	ids, err := upload(d.p.device, 0, packed, d.p.sh.MicroBatch, d.p.sh.Sequence)
	require.NoError(t, err)
	defer free([]compute.Buffer{ids})
	_, out := d.score(t, params, ids)
	defer free(out)
	width := d.p.sh.Sequence
	flat := get(t, out[output], d.p.sh.MicroBatch*width)
	rows := make([][]float64, len(b.IDs))
	for r := range rows {
		rows[r] = append([]float64{0}, flat[r*width:(r+1)*width-1]...)
	}
	return rows
}
