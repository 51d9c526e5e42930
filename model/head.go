package model

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// floor replaces the −Inf logit of an illegal id where it is multiplied by the id's
// probability, which is 0: −Inf times 0 would be NaN.
const floor = -1e30

// chunks divides n positions into chunks [from, to) whose logits fit the limit, so that no
// tensor of [rows, tokens, vocabulary] is ever in memory.
func (t network) chunks(n int) [][2]int {
	size := min(n, max(1, t.limits.logits/t.c.VocabSize))
	var out [][2]int
	for from := 0; from < n; from += size {
		out = append(out, [2]int{from, min(from+size, n)})
	}
	return out
}

// head scores hidden states against the vocabulary.
type head struct {
	t       network
	weight  *graph.Node // [V, d]
	legal   *graph.Node // [V] wide: 0, or −Inf for ids the tokenizer lacks
	inverse *graph.Node // scalar, 1 / temperature
	squares bool        // score computes sums of squares too
}

// products computes the logits of h [n, d] before temperature, wide [n, V].
func (hd head) products(h *graph.Node) *graph.Node {
	n := h.Shape().Dimensions[0]
	return onlyFirst(dot(hd.t.twice(h, 0), hd.weight).WithOutputDType(hd.t.wide).General([]int{1}, nil, []int{1}, nil), 0, n)
}

// tempered are the logits of products at the temperature, with −Inf for illegal ids.
func (hd head) tempered(products *graph.Node) *graph.Node {
	return graph.Add(graph.Mul(products, hd.inverse), graph.Reshape(hd.legal, 1, hd.t.c.VocabSize))
}

// logits are tempered of the products of h.
func (hd head) logits(h *graph.Node) *graph.Node { return hd.tempered(hd.products(h)) }

// oneHot is [n, V] and true at each position's target; targets are [n] int32.
func (hd head) oneHot(target *graph.Node) *graph.Node {
	n := target.Shape().Dimensions[0]
	shape := shapes.Make(dtypes.Int32, n, hd.t.c.VocabSize)
	ids := graph.Iota(target.Graph(), shape, 1)
	return graph.Equal(ids, graph.BroadcastToShape(graph.Reshape(target, n, 1), shape))
}

// score computes log p(target), the entropy in nats, the logarithm of the softmax's
// denominator and, with squares, Σp² of the softmax, each [n], from the final hidden states x
// [n, d] before their norm and the ids that follow them, target. products are those of its only
// chunk, of the last one if there are several.
func (hd head) score(x, norm, target *graph.Node) (scores []*graph.Node, products *graph.Node) {
	var lps, ents, sums, squares []*graph.Node
	for _, c := range hd.t.chunks(x.Shape().Dimensions[0]) {
		part := graph.Slice(x, graph.AxisRange(c[0], c[1]))
		if len(lps) > 0 {
			part = hd.t.after(part, lps[len(lps)-1], ents[len(ents)-1])
		}
		products = hd.products(hd.t.norm(part, norm))
		l := hd.tempered(products)
		d := distributionOf(l)
		hot := hd.oneHot(graph.Slice(target, graph.AxisRange(c[0], c[1])))
		lps = append(lps, d.logProb(graph.ReduceSum(graph.Where(hot, l, scalar(l, 0)), -1)))
		ents = append(ents, d.entropy())
		sums = append(sums, d.logSum())
		if hd.squares {
			squares = append(squares, d.sumSquares())
		}
	}
	scores = []*graph.Node{join(lps), join(ents), join(sums)}
	if hd.squares {
		scores = append(scores, join(squares))
	}
	return scores, products
}

// pull is the backward pass of score. From the derivatives of the loss by log p(target) and by
// the entropy, each [n], it computes the derivative by the final hidden states, and adds those
// by the norm's and the head's weight to the gradients. It computes the logits again unless
// they were kept. With p the softmax and H its entropy,
//
//	∂ log p(target) / ∂ logit_i = [i = target] − p_i
//	∂ H / ∂ logit_i             = −p_i (log p_i + H)
func (hd head) pull(grads gradientNodes, norm *graph.Node, saved saved, target, entropy, logSum, byLogProb,
	byEntropy *graph.Node) *graph.Node {
	x := saved.last
	var dhs []*graph.Node
	var dweight *graph.Node // nil if the head is frozen
	t := hd.t
	for _, c := range t.chunks(x.Shape().Dimensions[0]) {
		n := c[1] - c[0]
		column := func(v *graph.Node) *graph.Node {
			return graph.Reshape(graph.Slice(v, graph.AxisRange(c[0], c[1])), n, 1)
		}
		part := graph.Slice(x, graph.AxisRange(c[0], c[1]))
		if len(dhs) > 0 {
			before := dhs[len(dhs)-1:]
			if dweight != nil {
				before = append([]*graph.Node{dweight}, before...)
			}
			part = t.after(part, before...)
		}
		h := t.norm(part, norm)
		products := saved.logits
		if products == nil {
			products = hd.products(h)
		}
		logP := graph.Sub(hd.tempered(products), column(logSum))
		p := graph.Exp(logP)
		logP = graph.Max(logP, scalar(logP, floor))
		hot := graph.ConvertDType(hd.oneHot(graph.Slice(target, graph.AxisRange(c[0], c[1]))), t.wide)
		dl := graph.Sub(
			graph.Mul(column(byLogProb), graph.Sub(hot, p)),
			graph.Mul(column(byEntropy), graph.Mul(p, graph.Add(logP, column(entropy)))))
		dl = t.cast(graph.Mul(dl, hd.inverse))
		dh := dot(dl, hd.weight).General([]int{1}, nil, []int{0}, nil)
		dhs = append(dhs, dh)
		if !grads.has(hd.weight) {
			continue
		}
		dw := dot(dl, h).WithOutputDType(t.wide).General([]int{0}, nil, []int{0}, nil)
		if dweight == nil {
			dweight = dw
		} else {
			dweight = graph.Add(dweight, dw)
		}
	}
	if dweight != nil {
		grads.add(hd.weight, dweight)
	}
	return t.cast(t.pullNorm(grads, norm, x, join(dhs)))
}

func join(parts []*graph.Node) *graph.Node {
	if len(parts) == 1 {
		return parts[0]
	}
	return graph.Concatenate(parts, 0)
}
