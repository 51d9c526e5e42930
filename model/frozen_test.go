package model

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// agree compares the gradient of a loss with differences. The weights of loss.CISPO,
// loss.DPPOTV and loss.DPPOKL are not differentiated, and the differences hold them.
func (d *doubled) agree(t *testing.T, base Params, m *minibatch, o LossOptions) (metrics []float64, gradient [][]float64) {
	t.Helper()
	if o.Surrogate != loss.CISPO && o.Surrogate != loss.DPPOTV && o.Surrogate != loss.DPPOKL {
		of := o.PolicyLayout()
		sides := []int{of.Metric(terms.ClipFraction), of.Metric(terms.DualClipFraction)}
		if o.Has(terms.OffPolicy) {
			sides = append(sides, of.Metric(terms.OffPolicyFraction))
		}
		return d.agreeWithDifferences(t, base, m, sides...)
	}
	_, params := d.params(t, base)
	defer free(params)
	metrics, gradient = d.losses(t, params, m, true)
	frozen := d.frozenAt(t, params, m)
	defer frozen.free()
	_, want := d.agreeWithDifferences(t, base, frozen)
	require.Equal(t, want, gradient)
	return metrics, gradient
}

// frozenAt is the loss that is linear in log-probs and entropies, with the derivatives that
// m has at the parameters.
func (d *doubled) frozenAt(t *testing.T, params []compute.Buffer, m *minibatch) *minibatch {
	t.Helper()
	n, wide := d.p.sh.MicroBatch*d.p.sh.Sequence, d.p.net.wide
	linear := &program{name: "linear", device: d.p.device, build: func(in *inputs) []*graph.Node {
		lp, entropy := in.next(wide, n), in.next(wide, n)
		by := in.columns(wide, nil, n)
		in.next(wide, 1) // no knobs
		sum := graph.ReduceAllSum(graph.Add(graph.Mul(lp, by.Weight), graph.Mul(entropy, by.Share)))
		return []*graph.Node{by.Weight, by.Share, graph.Reshape(sum, 1)}
	}}
	out := &minibatch{loss: linear, knobs: d.put(t, []float64{0}, 1), metrics: 1}
	d.p.device.run.Lock()
	defer d.p.device.run.Unlock()
	for i, ids := range m.ids {
		_, scored := d.score(t, params, ids)
		said, err := m.loss.call(append([]compute.Buffer{scored[0], scored[1]}, m.columns[i], m.knobs)...)
		require.NoError(t, err)
		by := append(get(t, said[0], n), get(t, said[1], n)...)
		out.columns = append(out.columns, d.put(t, by, 2, n))
		again, err := upload(d.p.device, 0, getInts(t, ids, n), d.p.sh.MicroBatch, d.p.sh.Sequence)
		require.NoError(t, err)
		out.ids = append(out.ids, again)
		free(scored)
		free(said)
	}
	return out
}

func getInts(t *testing.T, b compute.Buffer, n int) []int32 {
	t.Helper()
	v := make([]int32, n)
	require.NoError(t, b.ToFlatData(v))
	return v
}
