package model

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

func valueBatch(batches []batch.MicroBatch, values [][][]float32) ValueBatch {
	var out ValueBatch
	for i, b := range batches {
		out.Values = append(out.Values, doubles(values[i])...)
		out.OldValues = append(out.OldValues, doubles(b.Columns[batch.OldValues])...)
		out.Returns = append(out.Returns, doubles(b.Columns[batch.Returns])...)
		for r := range b.IDs {
			out.Mask = append(out.Mask, b.Mask[r])
			out.RowWeights = append(out.RowWeights, float64(b.RowWeight(r)))
		}
	}
	return out
}

// valueLossOnly is a program of the critic's loss alone.
func valueLossOnly(p *Programs) *program {
	n, wide := p.sh.MicroBatch*p.sh.Sequence, p.net.wide
	return &program{name: "value loss", device: p.device, build: func(in *inputs) []*graph.Node {
		values := in.next(wide, n)
		by, metrics := p.Learner.valueLoss(in, values)
		return []*graph.Node{by, metrics}
	}}
}

func TestValueLossIsTheReference(t *testing.T) {
	p, s, _ := tinyCritic(t)
	prog := valueLossOnly(p)
	defer prog.finalize()
	batches := []batch.MicroBatch{criticBatch(t, p, s, 1), criticBatch(t, p, s, 2)}
	var values [][][]float32
	for _, b := range batches {
		v, err := p.Scorer.Values(bg, s, b)
		require.NoError(t, err)
		values = append(values, v)
	}
	for _, clip := range []float32{0, 0.5} {
		for _, a := range []loss.Aggregation{loss.TokenMean, loss.SeqMeanTokenSum, loss.SeqMeanTokenMean} {
			k := criticSettings()
			k.Clip = clip
			want, err := referenceValue(valueBatch(batches, values), ValueOptions{Clip: float64(clip), Aggregation: a})
			require.NoError(t, err)
			require.Equal(t, clip > 0, want.ClipFraction > 0)
			require.NoError(t, batch.Weigh(batches, a, 0))
			all, _, err := p.Learner.packAll(batches, k.reads(p.sh.Loss))
			require.NoError(t, err)
			metrics := make([]float64, p.Learner.metricCount())
			row := 0
			for i, b := range all {
				by, m := runValueLoss(t, p, prog, b, values[i], k)
				for at, v := range m {
					metrics[at] += float64(v)
				}
				for r := range batches[i].IDs {
					for at := 1; at < 7; at++ {
						requireClose(t, want.ByValue[row][at], float64(by[r*7+at-1]), 0.1, "row %d, token %d", row, at)
					}
					row++
				}
			}
			requireClose(t, want.Loss, metrics[p.metric(terms.Loss)], 1)
			requireClose(t, want.ClipFraction, metrics[p.metric(terms.ValueClipFraction)], 1)
		}
	}
}

func runValueLoss(t *testing.T, p *Programs, prog *program, b packed, values [][]float32, k CriticSettings) (byValue, metrics []float32) {
	t.Helper()
	n := p.sh.MicroBatch * p.sh.Sequence
	flat := make([]float32, n)
	for r := range values {
		copy(flat[r*p.sh.Sequence:], values[r][1:])
	}
	p.device.run.Lock()
	defer p.device.run.Unlock()
	var args []compute.Buffer
	for _, x := range []struct {
		v    []float32
		dims []int
	}{{flat, []int{n}}, {b.columns, []int{len(b.columns) / n, n}}, {k.knobs(p.sh.Loss), []int{1}}} {
		buf, err := upload(p.device, 0, x.v, x.dims...)
		require.NoError(t, err)
		args = append(args, buf)
	}
	defer free(args)
	out, err := prog.call(args...)
	require.NoError(t, err)
	defer free(out)
	byValue, err = download[float32](out[0], n)
	require.NoError(t, err)
	metrics, err = download[float32](out[1], p.Learner.metricCount())
	require.NoError(t, err)
	return byValue, metrics
}
