package model

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// scoredRows are log-probs and entropies of micro-batches, [row][token].
type scoredRows struct{ logProbs, entropies [][]float32 }

// randomMinibatch has two micro-batches of up to 3 rows of up to 7 tokens, with
// masks, row weights and bounds of their own, and log-probs as if a policy had
// scored them. spread is how far the old log-probs are off.
func randomMinibatch(seed uint64, spread float64) (batches []batch.MicroBatch, scores []scoredRows) {
	r := draw.Address{Seed: seed, Purpose: "test"}.Rand()
	for range 2 {
		var b batch.MicroBatch
		var s scoredRows
		for row := range 3 {
			n := 4 + r.IntN(4)
			length := n - r.IntN(2)
			numbers := make([][]float32, 8)
			for i := range numbers {
				numbers[i] = make([]float32, n)
			}
			ids, mask := make([]int32, n), make([]bool, n)
			for t := range n {
				ids[t], mask[t] = int32(r.IntN(37)), t > 0 && t < length && r.IntN(4) > 0
				lp := -3 * r.Float64()
				for i, v := range []float64{lp, 2 * r.Float64(), lp + spread*r.NormFloat64(), lp + 0.5*r.NormFloat64(),
					r.NormFloat64(), 0.1 + 0.2*r.Float64(), 0.2 + 0.2*r.Float64()} {
					numbers[i][t] = float32(v)
				}
			}
			s.logProbs, s.entropies = append(s.logProbs, numbers[0]), append(s.entropies, numbers[1])
			b.IDs, b.Lengths, b.Mask = append(b.IDs, ids), append(b.Lengths, int32(length)), append(b.Mask, mask)
			b.Columns[batch.OldLogProbs], b.Columns[batch.RefLogProbs] = append(b.Columns[batch.OldLogProbs], numbers[2]), append(b.Columns[batch.RefLogProbs], numbers[3])
			b.Columns[batch.Advantages] = append(b.Columns[batch.Advantages], numbers[4])
			b.Columns[batch.ClipLow], b.Columns[batch.ClipHigh] = append(b.Columns[batch.ClipLow], numbers[5]), append(b.Columns[batch.ClipHigh], numbers[6])
			b.RowWeights = append(b.RowWeights, []float32{1, 0.5, 2}[row])
			turns := make([]float32, n)
			for t := range turns {
				turns[t] = float32(1 + t/3)
			}
			b.Columns[batch.Turns] = append(b.Columns[batch.Turns], turns)
		}
		batches, scores = append(batches, b), append(scores, s)
	}
	batches[1].RowWeights[0] = 0
	return batches, scores
}

// markRow makes a row supervised.
func markRow(b *batch.MicroBatch, row int) {
	if b.Columns[batch.Supervised] == nil {
		b.Columns[batch.Supervised] = make([][]float32, len(b.IDs))
	}
	b.Columns[batch.Supervised][row] = batch.Flags(b.Mask[row])
}

func doubles(rows [][]float32) [][]float64 {
	out := make([][]float64, len(rows))
	for r := range rows {
		for _, v := range rows[r] {
			out[r] = append(out[r], float64(v))
		}
	}
	return out
}

// referenceBatch is a minibatch as referencePolicy takes it. Every token has bounds of its own
// there: its turn is its place. With a ratio by turn all have the bounds 0.25.
func referenceBatch(batches []batch.MicroBatch, scores []scoredRows, o PolicyOptions) (PolicyBatch, PolicyOptions) {
	var ref PolicyBatch
	for i, b := range batches {
		ref.LogProbs = append(ref.LogProbs, doubles(scores[i].logProbs)...)
		ref.Entropies = append(ref.Entropies, doubles(scores[i].entropies)...)
		ref.OldLogProbs = append(ref.OldLogProbs, doubles(b.Columns[batch.OldLogProbs])...)
		ref.RefLogProbs = append(ref.RefLogProbs, doubles(b.Columns[batch.RefLogProbs])...)
		ref.Advantages = append(ref.Advantages, doubles(b.Columns[batch.Advantages])...)
		ref.Mask = append(ref.Mask, b.Mask...)
		for r := range b.IDs {
			ref.RowWeights = append(ref.RowWeights, float64(b.RowWeight(r)))
			var turns []int
			for t := range b.IDs[r] {
				if o.Ratio == loss.TurnRatio {
					turns, o.Clips = append(turns, int(b.Columns[batch.Turns][r][t])-1), []Clip{{0.25, 0.25}}
					continue
				}
				turns = append(turns, len(o.Clips))
				o.Clips = append(o.Clips, Clip{Low: float64(b.Columns[batch.ClipLow][r][t]), High: float64(b.Columns[batch.ClipHigh][r][t])})
			}
			ref.Turns = append(ref.Turns, turns)
		}
	}
	return ref, o
}

// lossOnly is a program of the policy's loss alone.
func lossOnly(p *Programs) *program {
	n, wide := p.sh.MicroBatch*p.sh.Sequence, p.net.wide
	return &program{name: "loss", device: p.device, build: func(in *inputs) []*graph.Node {
		lp, entropy := in.next(wide, n), in.next(wide, n)
		l := p.Learner.policyLoss(in, lp, entropy)
		return []*graph.Node{l.ByLogProb, l.ByEntropy, l.Metrics}
	}}
}

// runLoss runs lossOnly on one micro-batch.
func runLoss(t *testing.T, p *Programs, prog *program, b packed, lp, entropy [][]float32, k Settings, supervised bool) (byLogProb, byEntropy, metrics []float32) {
	t.Helper()
	rows, width := p.sh.MicroBatch, p.sh.Sequence
	shifted := func(v [][]float32) []float32 {
		out := make([]float32, rows*width)
		for r := range v {
			for i := 1; i < len(v[r]); i++ {
				out[r*width+i-1] = v[r][i]
			}
		}
		return out
	}
	p.device.run.Lock()
	defer p.device.run.Unlock()
	var args []compute.Buffer
	for _, x := range []struct {
		v    []float32
		dims []int
	}{{shifted(lp), []int{rows * width}}, {shifted(entropy), []int{rows * width}},
		{b.columns, []int{len(b.columns) / (rows * width), rows * width}}, {k.knobs(p.sh.Loss, supervised), []int{len(p.Learner.layout.Knobs)}}} {
		buf, err := upload(p.device, 0, x.v, x.dims...)
		require.NoError(t, err)
		args = append(args, buf)
	}
	defer free(args)
	out, err := prog.call(args...)
	require.NoError(t, err)
	defer free(out)
	for i, to := range []*[]float32{&byLogProb, &byEntropy, &metrics} {
		n := rows * width
		if i == 2 {
			n = p.Learner.metricCount()
		}
		*to, err = download[float32](out[i], n)
		require.NoError(t, err)
	}
	return byLogProb, byEntropy, metrics
}

// metric is the place of a metric of the loss.
func (p *Programs) metric(name string) int { return p.Learner.layout.Metric(name) }

// with are the knobs of a surrogate and of the off-policy mask, if a loss has them.
func (k Settings) with(o LossOptions) Settings {
	if o.Surrogate == loss.SAPO {
		k.Knobs = k.Knobs.With(terms.TauPositive, 1).With(terms.TauNegative, 1.05)
	}
	if o.Surrogate == loss.DPPOTV {
		k.Knobs = k.Knobs.With(terms.RatioCap, 1.3)
	}
	if o.Has(terms.OffPolicy) {
		k.Knobs = k.Knobs.With(terms.OffPolicyLimit, 0.05)
	}
	return k
}

// requireClose asks that a float32 number is right to 1e-5 of scale.
func requireClose(t *testing.T, want, got, scale float64, what ...any) {
	t.Helper()
	require.InDelta(t, want, got, 1e-5*math.Max(scale, math.Abs(want)), what...)
}

func TestPolicyLossIsTheReference(t *testing.T) {
	for name, c := range map[string]struct {
		o           LossOptions
		seed        uint64
		aggregation loss.Aggregation
		dual        float64
		spread      float64
		scalar      bool // bounds
	}{
		"plain":                   {aggregation: loss.TokenMean, spread: 0.6},
		"bounds for all":          {aggregation: loss.TokenMean, spread: 0.6, scalar: true},
		"mean of sums":            {aggregation: loss.SeqMeanTokenSum, spread: 0.6},
		"mean of means":           {aggregation: loss.SeqMeanTokenMean, spread: 0.6},
		"constant":                {aggregation: loss.Constant, spread: 0.6},
		"dual clip":               {o: LossOptions{Guards: terms.DualClip}, aggregation: loss.TokenMean, dual: 1.5, spread: 0.6},
		"far off":                 {o: LossOptions{Guards: terms.DualClip}, aggregation: loss.TokenMean, dual: 3, spread: 15},
		"far off, no dual clip":   {aggregation: loss.TokenMean, spread: 15},
		"k1":                      {o: LossOptions{KL: loss.K1}, aggregation: loss.TokenMean, spread: 0.5},
		"k2":                      {o: LossOptions{KL: loss.K2}, aggregation: loss.SeqMeanTokenMean, spread: 0.5},
		"k3":                      {o: LossOptions{KL: loss.K3}, aggregation: loss.TokenMean, spread: 0.5},
		"abs":                     {seed: 20, o: LossOptions{KL: loss.KAbs}, aggregation: loss.TokenMean, spread: 0.5},
		"sequence":                {o: LossOptions{Ratio: loss.SequenceRatio}, aggregation: loss.SeqMeanTokenMean, spread: 0.6},
		"sequence, far off":       {o: LossOptions{Ratio: loss.SequenceRatio}, aggregation: loss.SeqMeanTokenMean, spread: 30},
		"turn":                    {o: LossOptions{Ratio: loss.TurnRatio, Turns: 3}, aggregation: loss.SeqMeanTokenMean, spread: 0.6, scalar: true},
		"turn, far off":           {o: LossOptions{Ratio: loss.TurnRatio, Turns: 4, KL: loss.K2}, aggregation: loss.TokenMean, spread: 30, scalar: true},
		"cispo":                   {o: LossOptions{Surrogate: loss.CISPO}, aggregation: loss.TokenMean, spread: 0.6},
		"cispo, far off":          {o: LossOptions{Surrogate: loss.CISPO, KL: loss.K3}, aggregation: loss.TokenMean, spread: 15},
		"sapo":                    {o: LossOptions{Surrogate: loss.SAPO}, aggregation: loss.SeqMeanTokenMean, spread: 0.6},
		"sapo, far off":           {o: LossOptions{Surrogate: loss.SAPO, Guards: terms.OffPolicy}, aggregation: loss.SeqMeanTokenMean, spread: 6},
		"dppo":                    {o: LossOptions{Surrogate: loss.DPPOTV}, aggregation: loss.TokenMean, spread: 0.6},
		"dppo, far off":           {o: LossOptions{Surrogate: loss.DPPOTV, Guards: terms.OffPolicy}, aggregation: loss.TokenMean, spread: 3},
		"dppo, kl":                {o: LossOptions{Surrogate: loss.DPPOKL}, aggregation: loss.TokenMean, spread: 1.5},
		"dppo, kl, far off":       {o: LossOptions{Surrogate: loss.DPPOKL, Guards: terms.OffPolicy}, aggregation: loss.TokenMean, spread: 3},
		"gmpo":                    {o: LossOptions{Surrogate: loss.GMPO}, aggregation: loss.SeqMeanTokenMean, spread: 0.6},
		"gmpo, bounds for all":    {o: LossOptions{Surrogate: loss.GMPO, KL: loss.K3}, aggregation: loss.SeqMeanTokenMean, spread: 0.6, scalar: true},
		"gmpo, far off":           {o: LossOptions{Surrogate: loss.GMPO, Guards: terms.OffPolicy}, aggregation: loss.SeqMeanTokenMean, spread: 6},
		"off-policy mask":         {o: LossOptions{Guards: terms.OffPolicy}, aggregation: loss.TokenMean, spread: 0.6},
		"sequence, all there are": {o: LossOptions{Ratio: loss.SequenceRatio, KL: loss.K3, Guards: terms.DualClip}, aggregation: loss.SeqMeanTokenMean, dual: 1.3, spread: 0.9},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := testDevice(t).Programs(tiny(), nil, Shapes{MicroBatch: 3, Sequence: 8, Loss: c.o})
			require.NoError(t, err)
			defer p.Free()
			prog := lossOnly(p)
			defer prog.finalize()
			batches, scores := randomMinibatch(c.seed+uint64(len(name)), c.spread)
			k := testSettings()
			k.EntropyCoefficient = 0.25
			if c.dual > 0 {
				k.Knobs = terms.Knobs{terms.DualClip: float32(c.dual)}
			}
			k = k.with(c.o)
			if c.o.KL != "" {
				k.KLCoefficient = 0.5
				batches[0].Columns[batch.RefLogProbs][0][1] += 9 // K3's bound
				batches[0].Mask[0][1] = true
			}
			if c.scalar {
				for i := range batches {
					for _, rows := range [][][]float32{batches[i].Columns[batch.ClipLow], batches[i].Columns[batch.ClipHigh]} {
						for r := range rows {
							for at := range rows[r] {
								rows[r][at] = 0.25
							}
						}
					}
				}
			}
			ref, o := referenceBatch(batches, scores, PolicyOptions{
				Ratio: c.o.Ratio, DualClip: c.dual, Aggregation: c.aggregation, Divisor: 40,
				EntropyCoefficient: 0.25, KLCoefficient: float64(k.KLCoefficient), KLEstimator: c.o.KL,
				Surrogate: c.o.Surrogate, TauPositive: float64(k.Knobs[terms.TauPositive]), TauNegative: float64(k.Knobs[terms.TauNegative]), RatioCap: float64(k.Knobs[terms.RatioCap]),
				OffPolicyMask: c.o.Has(terms.OffPolicy), OffPolicyLimit: float64(k.Knobs[terms.OffPolicyLimit]),
			})
			want, err := referencePolicy(ref, o)
			require.NoError(t, err)
			if c.scalar {
				k.ClipLow, k.ClipHigh = 0.25, 0.25
				for i := range batches {
					batches[i].Columns[batch.ClipLow], batches[i].Columns[batch.ClipHigh] = nil, nil
				}
			}
			require.NoError(t, batch.Weigh(batches, c.aggregation, 40))
			all, tokens, err := p.Learner.packAll(batches, k.reads(p.sh.Loss, false))
			require.NoError(t, err)
			require.Positive(t, tokens)

			metrics := make([]float64, p.Learner.metricCount())
			row := 0
			var largest float64
			for _, rows := range want.ByLogProb {
				for _, v := range rows {
					largest = math.Max(largest, math.Abs(v))
				}
			}
			for i, b := range all {
				byLogProb, byEntropy, m := runLoss(t, p, prog, b, scores[i].logProbs, scores[i].entropies, k, false)
				for at, v := range m {
					if at == p.metric(terms.RatioMax) {
						metrics[at] = math.Max(metrics[at], float64(v))
					} else {
						metrics[at] += float64(v)
					}
				}
				for r := range batches[i].IDs {
					for at := 1; at < len(batches[i].IDs[r]); at++ {
						place := r*p.sh.Sequence + at - 1
						requireClose(t, want.ByLogProb[row][at], float64(byLogProb[place]), largest, "row %d, token %d", row, at)
						requireClose(t, want.ByEntropy[row][at], float64(byEntropy[place]), 0.1, "row %d, token %d", row, at)
					}
					row++
				}
			}
			for _, x := range []struct {
				name string
				want float64
			}{
				{terms.Loss, want.Loss}, {terms.PolicyLoss, want.Policy}, {terms.Entropy, want.Entropy}, {terms.KL, want.KL},
				{terms.ClipFraction, want.ClipFraction}, {terms.DualClipFraction, want.DualClipFraction},
				{terms.BehaviourKL, want.BehaviourKL}, {terms.ApproxKL, want.ApproxKL}, {terms.RatioMax, want.RatioMax},
			} {
				requireClose(t, x.want, metrics[p.metric(x.name)], math.Max(1, want.RatioMax), x.name)
			}
			require.Equal(t, c.o.Surrogate != loss.SAPO, want.ClipFraction > 0)
			require.Equal(t, c.o.Has(terms.OffPolicy), want.DroppedFraction > 0)
			if c.o.Has(terms.OffPolicy) {
				requireClose(t, want.DroppedFraction, metrics[p.metric(terms.OffPolicyFraction)], 1)
			}
			require.Equal(t, c.dual > 0, want.DualClipFraction > 0)
			require.Equal(t, c.o.KL != "", want.KL != 0)
		})
	}
}

// Values at tokens that are not trained on are not read.
func TestPolicyLossReadsTheMaskOnly(t *testing.T) {
	p, err := testDevice(t).Programs(tiny(), nil, Shapes{MicroBatch: 3, Sequence: 8, Loss: LossOptions{KL: loss.K2, Guards: terms.Guards(terms.DualClip, terms.OffPolicy), Ratio: loss.TurnRatio, Turns: 3}})
	require.NoError(t, err)
	defer p.Free()
	prog := lossOnly(p)
	defer prog.finalize()
	batches, scores := randomMinibatch(3, 0.5)
	k := testSettings()
	k.KLCoefficient = 0.5
	k.Knobs = terms.Knobs{terms.DualClip: 2}
	run := func() [][]float32 {
		all, _, err := p.Learner.packAll(batches, k.reads(p.sh.Loss, false))
		require.NoError(t, err)
		a, b, c := runLoss(t, p, prog, all[1], scores[1].logProbs, scores[1].entropies, k, false)
		return [][]float32{a, b, c}
	}
	want := run()
	b := batches[1]
	for r := range b.IDs {
		for at := range b.IDs[r] {
			if !b.Learns(r, at) {
				for _, x := range [][][]float32{scores[1].logProbs, scores[1].entropies, b.Columns[batch.OldLogProbs], b.Columns[batch.RefLogProbs], b.Columns[batch.Advantages], b.Columns[batch.ClipLow], b.Columns[batch.ClipHigh]} {
					x[r][at] = float32(math.NaN())
				}
			}
		}
	}
	require.Equal(t, want, run())
}

// The gradient by the policy's weights follows from the reference's derivatives by
// log-probs and entropies, taken through the network by supervised passes. Their
// derivative by a log-prob is minus the weight, by an entropy minus the coefficient times
// the weight.
func TestPolicyGradientIsTheReference(t *testing.T) {
	for name, o := range map[string]LossOptions{
		"token":    {Guards: terms.DualClip, KL: loss.K3},
		"sequence": {Ratio: loss.SequenceRatio, KL: loss.K2},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := testDevice(t).Programs(tiny(), nil, Shapes{MicroBatch: 3, Sequence: 8, Loss: o})
			require.NoError(t, err)
			defer p.Free()
			s, err := p.NewState(tinyParams(tiny()))
			require.NoError(t, err)
			defer s.Free()
			k := testSettings()
			k.Temperature, k.EntropyCoefficient, k.KLCoefficient = 0.8, 0.25, 0.5
			if o.Has(terms.DualClip) {
				k.Knobs = terms.Knobs{terms.DualClip: 1.5}
			}
			batches, scores := randomMinibatch(17, 0.7)
			for i, b := range batches {
				was := scores[i].logProbs
				scores[i].logProbs, scores[i].entropies, err = p.Scorer.Score(bg, s, b, 0.8)
				require.NoError(t, err)
				for r := range b.IDs {
					n := len(b.IDs[r])
					scores[i].logProbs[r], scores[i].entropies[r] = scores[i].logProbs[r][:n], scores[i].entropies[r][:n]
					for at := range n {
						b.Columns[batch.OldLogProbs][r][at] += scores[i].logProbs[r][at] - was[r][at]
						b.Columns[batch.RefLogProbs][r][at] += scores[i].logProbs[r][at] - was[r][at]
					}
				}
			}
			ref, ro := referenceBatch(batches, scores, PolicyOptions{
				Ratio: o.Ratio, DualClip: float64(k.Knobs[terms.DualClip]), Aggregation: loss.SeqMeanTokenSum,
				EntropyCoefficient: 0.25, KLCoefficient: 0.5, KLEstimator: o.KL,
			})
			want, err := referencePolicy(ref, ro)
			require.NoError(t, err)
			require.Positive(t, want.ClipFraction)

			require.NoError(t, batch.Weigh(batches, loss.SeqMeanTokenSum, 0))
			got, m := gradients(t, p, s, batches, k, false)
			requireClose(t, want.Loss, float64(m[p.metric(terms.Loss)]), 1)

			through := func(weights [][]float64, entropy float32) Params {
				k := k
				k.EntropyCoefficient = entropy
				all, _, err := p.Learner.packAll(batches, k.reads(p.sh.Loss, true))
				require.NoError(t, err)
				row := 0
				for i, b := range batches {
					for r := range b.IDs {
						for at := 1; at < len(b.IDs[r]); at++ {
							all[i].columns[r*p.sh.Sequence+at-1] = float32(weights[row][at])
						}
						row++
					}
				}
				g, _ := gradientsOf(t, p, s, all, pass{temperature: 0.8, knobs: k.knobs(p.sh.Loss, true)})
				return g
			}
			scaled := func(v [][]float64, by float64) [][]float64 {
				out := make([][]float64, len(v))
				for r := range v {
					for _, x := range v[r] {
						out[r] = append(out[r], by*x)
					}
				}
				return out
			}
			byLogProb := through(scaled(want.ByLogProb, -1), 0)
			both, without := through(scaled(want.ByEntropy, -1), 1), through(scaled(want.ByEntropy, -1), 0)
			for i, ts := range p.c.Tensors() {
				var largest float64
				for _, g := range got.Values[i] {
					largest = math.Max(largest, math.Abs(float64(g)))
				}
				for j, g := range got.Values[i] {
					w := float64(byLogProb.Values[i][j]) + float64(both.Values[i][j]) - float64(without.Values[i][j])
					requireClose(t, w, float64(g), largest, "%s %d", ts.Name, j)
				}
			}
		})
	}
}

// A supervised row adds its weighted negative log-likelihood to the loss, and changes nothing
// else: no other row's derivative, no other part of the loss, no mean.
func TestSupervisedRowsBesideOthers(t *testing.T) {
	const weight, row = 0.03125, 1
	o := LossOptions{KL: loss.K3, Guards: terms.OffPolicy}
	k := testSettings().with(o)
	k.EntropyCoefficient, k.KLCoefficient = 0.25, 0.5
	batches, scores := randomMinibatch(3, 0.6)
	batches[0].RowWeights[row] = 0
	require.NoError(t, batch.Weigh(batches, loss.TokenMean, 0))
	run := func(o LossOptions) (byLogProb, byEntropy, metrics []float32) {
		p, err := testDevice(t).Programs(tiny(), nil, Shapes{MicroBatch: 3, Sequence: 8, Loss: o})
		require.NoError(t, err)
		defer p.Free()
		prog := lossOnly(p)
		defer prog.finalize()
		all, _, err := p.Learner.packAll(batches, k.reads(p.sh.Loss, false))
		require.NoError(t, err)
		return runLoss(t, p, prog, all[0], scores[0].logProbs, scores[0].entropies, k, false)
	}
	byLogProb, byEntropy, metrics := run(o)
	own := o.PolicyLayout()
	require.Len(t, metrics, own.Metric(terms.OffPolicyFraction)+1)

	batches[0].RowWeights[row] = 1
	var added float64
	for at, yes := range batches[0].Mask[row] {
		if yes {
			batches[0].Columns[batch.Weights][row][at] = weight
			byLogProb[row*8+at-1] = -weight
			added -= weight * float64(scores[0].logProbs[row][at])
		}
	}
	require.Positive(t, added)
	markRow(&batches[0], row)
	o.Supervised = true
	gotLogProb, gotEntropy, got := run(o)
	place := o.PolicyLayout().Metric
	require.Equal(t, byLogProb, gotLogProb)
	require.Equal(t, byEntropy, gotEntropy)
	require.InDelta(t, float64(metrics[place(terms.Loss)])+added, float64(got[place(terms.Loss)]), 1e-6)
	require.InDelta(t, added, float64(got[place(terms.SupervisedLoss)]), 1e-6)
	require.Equal(t, metrics[place(terms.PolicyLoss):], got[place(terms.PolicyLoss):place(terms.SupervisedLoss)])

	// Supervised rows alone have a finite loss.
	for i := range batches {
		for r := range batches[i].IDs {
			batches[i].RowWeights[r] = float32(1 - min(i+max(r-row, row-r), 1))
		}
	}
	require.NoError(t, batch.Weigh(batches, loss.TokenMean, 0))
	_, _, got = run(o)
	require.Equal(t, got[place(terms.SupervisedLoss)], got[place(terms.Loss)])
	require.Zero(t, got[place(terms.PolicyLoss)])
}
