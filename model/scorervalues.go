package model

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
)

// Values returns, at index t of each row, the critic's value V(ids[<t]): the return it
// expects before token t is chosen. It is 0 at t = 0 and from the row's length on. Rows
// are Sequence long, in the batch's order. Of a head of several numbers they are
// Sequence × Config.Values long, with the numbers of a token one after the other.
//
// CriticUpdate computes its values with the same program, so with the parameters that
// Values ran with, its values equal the old ones exactly.
func (s *Scorer) Values(ctx context.Context, st *State, b batch.MicroBatch) ([][]float32, error) {
	out, err := s.ValuesAll(ctx, st, []batch.MicroBatch{b})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// ValuesAll is Values for several micro-batches, which are dealt to the devices. The context is
// checked before each.
func (s *Scorer) ValuesAll(ctx context.Context, st *State, batches []batch.MicroBatch) ([][][]float32, error) {
	got, err := s.scores(ctx, st, batches, true, 0, 1)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	out := make([][][]float32, len(got))
	for i, of := range got {
		out[i] = of[0]
	}
	return out, nil
}

// buildValues is the critic's forward program. Its inputs are the parameters, ids [b, T]
// and rotary tables; its outputs are the values of the tokens that follow, [b·T], and what is
// saved for the backward program.
func (s *Scorer) buildValues(in *inputs) []*graph.Node {
	w := s.net.weights(in)
	saved := s.layers(w, s.batchInputs(in))
	v := s.net.values(saved.last, w.norm, w.value)
	return append([]*graph.Node{v}, s.savedOutputs(saved)...)
}

// values computes the values, wide [n · values], of the final hidden states x [n, d] before their
// norm: the numbers of a token one after the other.
func (t network) values(x, norm *graph.Node, head linear) *graph.Node {
	n, d, heads := x.Shape().Dimensions[0], x.Shape().Dimensions[1], t.c.values()
	h := t.widen(t.norm(x, norm))
	if heads == 1 {
		v := graph.ReduceSum(graph.Mul(h, graph.Reshape(head.weight, 1, d)), -1)
		return graph.Add(v, graph.BroadcastToDims(head.bias, n))
	}
	var all []*graph.Node
	for k := range heads {
		v := graph.ReduceSum(graph.Mul(h, head.row(k)), -1)
		all = append(all, graph.Reshape(graph.Add(v, graph.BroadcastToDims(head.number(k), n)), n, 1))
	}
	return graph.Reshape(graph.Concatenate(all, 1), n*heads)
}
