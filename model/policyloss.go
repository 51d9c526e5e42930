package model

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
)

// LossOptions select the parts of the policy's loss. They are compiled into the programs,
// which compute only the selected parts. The coefficient of each part is a knob
// (Settings).
type LossOptions struct {
	// Surrogate is loss.Clip if empty.
	Surrogate loss.Surrogate
	// Ratio is loss.TokenRatio if empty, the only one of surrogates other than loss.Clip.
	// For loss.SequenceRatio a sequence is a row of the micro-batch.
	Ratio loss.Ratio
	// Turns is the largest turn for loss.TurnRatio, else 0.
	Turns int
	// KL estimates the distance from the reference policy; empty means no KL term.
	KL loss.KLEstimator
	// KLByToken gives each token a coefficient of its own, batch.KLCoefficients, instead of
	// Settings.KLCoefficient.
	KLByToken bool
	// DualClip bounds the loss of tokens with a negative advantage; only for loss.Clip.
	DualClip bool
	// OffPolicyMask drops the tokens with a negative advantage of rows that the policy has
	// moved away from (OPSM); see Settings.OffPolicyLimit.
	OffPolicyMask bool
	// Supervised adds the negative log-likelihood of the tokens that batch.Supervised
	// marks, which have no part in the other terms.
	Supervised bool
	// Promises is a critic's: its values are logits of a chance, and its loss is the cross-entropy
	// with Returns from 0 to 1 (promiseLoss).
	Promises bool
}

func (o LossOptions) check() error {
	switch {
	case !o.Surrogate.Valid():
		return fmt.Errorf("%w: surrogate %q", ErrInput, o.Surrogate)
	case o.Ratio != "" && o.Ratio != loss.TokenRatio && o.Ratio != loss.SequenceRatio && o.Ratio != loss.TurnRatio:
		return fmt.Errorf("%w: ratio %q", ErrInput, o.Ratio)
	case !o.Surrogate.Clips() && (o.DualClip || o.Ratio == loss.SequenceRatio || o.Ratio == loss.TurnRatio):
		return fmt.Errorf("%w: a dual clip or a ratio of more than a token with surrogate %q", ErrInput, o.Surrogate)
	case (o.Ratio == loss.TurnRatio) != (o.Turns > 0):
		return fmt.Errorf("%w: %d turns with ratio %q", ErrInput, o.Turns, o.Ratio)
	case o.KLByToken && o.KL == "":
		return fmt.Errorf("%w: a coefficient for each token without a KL estimator", ErrInput)
	case o.KL != "" && !o.KL.Valid():
		return fmt.Errorf("%w: KL estimator %q", ErrInput, o.KL)
	}
	return nil
}

// reads are the columns that the policy's loss reads, in the order of its program's inputs. A supervised
// step uses none of them.
func (o LossOptions) reads(k Settings, supervised bool) []read {
	out := []read{
		{of: batch.OldLogProbs, required: true}, {of: batch.Advantages, required: true},
		{of: batch.ClipLow, otherwise: k.ClipLow}, {of: batch.ClipHigh, otherwise: k.ClipHigh},
	}
	if o.KL != "" {
		out = append(out, read{of: batch.RefLogProbs, required: true})
	}
	if o.Ratio == loss.TurnRatio {
		out = append(out, read{of: batch.Turns, required: true, most: float32(o.Turns)})
	}
	if o.Supervised {
		out = append(out, read{of: batch.Supervised})
	}
	if o.KLByToken {
		out = append(out, read{of: batch.KLCoefficients, required: true})
	}
	for i := range out {
		out[i].unused = supervised
	}
	return out
}

// Places in the metrics vector that the micro-batches add up. Every loss's own
// metrics come after metricLoss.
const (
	metricLoss = iota
	metricPolicy
	metricEntropy
	metricKL
	metricClip
	metricDualClip
	metricBehaviourKL
	metricApproxKL
	metricRatio // a maximum, not a sum
	metricCount
	metricDropped = metricCount // if the loss has an off-policy mask
)

// metricSupervised is the place of the supervised part of the loss, which is the last.
func (o LossOptions) metricSupervised() int {
	if o.OffPolicyMask {
		return metricDropped + 1
	}
	return metricCount
}

// Places in the policy loss's knobs vector.
const (
	knobEntropy = iota
	knobKL
	knobDualClip
	knobSupervised // 1 or 0
	knobCount
	// Of losses that LossOptions.more is true for.
	knobTauPositive = iota - 1
	knobTauNegative
	knobRatioCap
	knobOffPolicyLimit
	knobCountMore
)

// more reports whether the loss has the knobs after knobCount.
func (o LossOptions) more() bool {
	return o.Surrogate == loss.SAPO || o.Surrogate == loss.DPPOTV || o.OffPolicyMask
}

func (o LossOptions) knobCount() int {
	if o.more() {
		return knobCountMore
	}
	return knobCount
}

// knobs are the inputs of the loss.
func (o LossOptions) knobs(k Settings, supervised bool) []float32 {
	v := make([]float32, o.knobCount())
	v[knobEntropy], v[knobKL], v[knobDualClip] = k.EntropyCoefficient, k.KLCoefficient, k.DualClip
	if supervised {
		v[knobSupervised] = 1
	}
	if o.more() {
		v[knobTauPositive], v[knobTauNegative] = k.TauPositive, k.TauNegative
		v[knobRatioCap], v[knobOffPolicyLimit] = k.RatioCap, k.OffPolicyLimit
	}
	return v
}

// Bounds on the logarithm of the ratio, the same as in the tests' reference.
const (
	maxLogRatio         = 20
	maxSequenceLogRatio = 10
)

// element returns the value of a vector at index i, as a scalar.
func element(v *graph.Node, i int) *graph.Node {
	return graph.Reshape(graph.Slice(v, graph.AxisRange(i, i+1)))
}

// tokenLoss is the loss of the tokens and its derivatives by log-prob and entropy.
type tokenLoss struct {
	byLogProb, byEntropy *graph.Node // [n]
	metrics              *graph.Node // [Programs.metricCount]
}

// policyLoss is the loss that trains the policy: the surrogate with its entropy and KL
// terms or, if the knob knobSupervised is 1, the negative log-likelihood. Its
// reference on plain numbers is referencePolicy in the tests. Log-probs, entropies and
// columns are [n] each. Tokens that are not trained on have no effect on the
// results, even if their numbers are not finite.
func (p *Programs) policyLoss(lp, entropy *graph.Node, columns columnNodes, knobs *graph.Node) tokenLoss {
	o := p.sh.Loss
	zero, one := scalar(lp, 0), scalar(lp, 1)
	weight, share := columns.weight, columns.share
	used := graph.GreaterThan(share, zero)
	supervised := graph.GreaterThan(element(knobs, knobSupervised), zero)
	unlessSupervised := func(x *graph.Node) *graph.Node {
		return graph.Where(graph.BroadcastToShape(supervised, x.Shape()), zero, x)
	}
	var marked *graph.Node // supervised tokens
	if o.Supervised {
		marked = graph.GreaterThan(columns.own[batch.Supervised], zero)
		all := graph.LogicalOr(marked, graph.BroadcastToShape(supervised, marked.Shape()))
		unlessSupervised = func(x *graph.Node) *graph.Node { return graph.Where(all, zero, x) }
	}
	whereUsed := func(x *graph.Node) *graph.Node { return graph.Where(used, x, zero) }
	sum := func(x, weights *graph.Node) *graph.Node {
		return graph.Reshape(graph.ReduceAllSum(graph.Mul(whereUsed(x), weights)), 1)
	}
	flag := func(x *graph.Node) *graph.Node { return unlessSupervised(graph.ConvertDType(x, p.net.wide)) }

	lp, entropy = whereUsed(lp), whereUsed(entropy)
	plainLogRatio := unlessSupervised(whereUsed(graph.Sub(lp, columns.own[batch.OldLogProbs])))
	logRatio, inside := within(plainLogRatio, -maxLogRatio, maxLogRatio)
	ratio := graph.Exp(logRatio)
	off := graph.Sub(ratio, one)
	behaviour, approximate, most := graph.Neg(logRatio), graph.Sub(off, logRatio), graph.ReduceAllMax(graph.Abs(off))
	switch o.Ratio {
	case loss.SequenceRatio:
		ratio, inside = p.sequenceRatio(plainLogRatio, used)
	case loss.TurnRatio:
		ratio, inside = p.turnRatio(plainLogRatio, used, columns.own[batch.Turns])
	}

	advantage := columns.own[batch.Advantages]
	value, slope, clipped := p.surrogate(ratioNodes{ratio: ratio, inside: inside, logProb: lp, zero: zero, one: one}, columns, knobs)
	dual := graph.Reshape(zero, 1)
	if o.DualClip {
		bound := graph.Neg(graph.Mul(advantage, element(knobs, knobDualClip)))
		over := graph.LogicalAnd(graph.LessThan(advantage, zero), graph.GreaterThan(value, bound))
		value, slope = graph.Where(over, bound, value), graph.Where(over, zero, slope)
		dual = sum(flag(over), share)
	}
	var dropped *graph.Node
	if o.OffPolicyMask {
		drops := p.offPolicy(plainLogRatio, used, advantage, element(knobs, knobOffPolicyLimit))
		value, slope = graph.Where(drops, zero, value), graph.Where(drops, zero, slope)
		dropped = sum(flag(drops), share)
	}
	pick := func(ifSupervised, otherwise *graph.Node) *graph.Node {
		return graph.Where(graph.BroadcastToShape(supervised, otherwise.Shape()), ifSupervised, otherwise)
	}
	value = pick(graph.Neg(lp), value)
	var likelihood *graph.Node // the loss of supervised tokens
	if o.Supervised {
		likelihood = sum(graph.Where(marked, graph.Neg(lp), zero), weight)
		value, entropy = graph.Where(marked, zero, value), graph.Where(marked, zero, entropy)
	}
	surrogate := sum(value, weight)
	slope = pick(graph.Neg(one), slope)
	if o.Supervised {
		slope = graph.Where(marked, graph.Neg(one), slope)
	}

	uncertainty := sum(entropy, weight)
	total := graph.Sub(surrogate, graph.Mul(element(knobs, knobEntropy), uncertainty))
	if o.Supervised {
		total = graph.Add(total, likelihood)
	}
	distance := graph.Reshape(zero, 1)
	if o.KL != "" {
		kl, by := estimateKL(o.KL, whereUsed(graph.Sub(lp, columns.own[batch.RefLogProbs])))
		distance = sum(unlessSupervised(kl), weight)
		if o.KLByToken {
			own := columns.own[batch.KLCoefficients]
			total = graph.Add(total, sum(graph.Mul(own, unlessSupervised(kl)), weight))
			slope = graph.Add(slope, graph.Mul(own, unlessSupervised(by)))
		} else {
			total = graph.Add(total, graph.Mul(element(knobs, knobKL), distance))
			slope = graph.Add(slope, graph.Mul(element(knobs, knobKL), unlessSupervised(by)))
		}
	}
	byLogProb, byEntropy := graph.Mul(whereUsed(slope), weight), graph.Neg(graph.Mul(weight, element(knobs, knobEntropy)))
	if o.Supervised {
		byEntropy = graph.Where(marked, zero, byEntropy)
	}
	metrics := []*graph.Node{
		total, surrogate, uncertainty, distance, sum(flag(clipped), share), dual,
		sum(behaviour, share), sum(approximate, share), graph.Reshape(most, 1),
	}
	if o.OffPolicyMask {
		metrics = append(metrics, dropped)
	}
	if o.Supervised {
		metrics = append(metrics, likelihood)
	}
	return tokenLoss{byLogProb: byLogProb, byEntropy: byEntropy, metrics: graph.Concatenate(metrics, 0)}
}

// within clamps x to [low, high] and marks where it was inside. NaN stays NaN and counts
// as inside.
func within(x *graph.Node, low, high float32) (bounded, inside *graph.Node) {
	under, over := graph.LessThan(x, scalar(x, low)), graph.GreaterThan(x, scalar(x, high))
	bounded = graph.Where(under, scalar(x, low), graph.Where(over, scalar(x, high), x))
	return bounded, graph.LogicalNot(graph.LogicalOr(under, over))
}

// sequenceRatio computes the ratio of each token's row, [n], which is the exponential of
// the mean of the row's log-ratios, and marks where that mean was within its bound.
// logRatio is 0 at unused tokens.
func (p *Programs) sequenceRatio(logRatio, used *graph.Node) (ratio, inside *graph.Node) {
	rows, width := p.sh.MicroBatch, p.sh.Sequence
	perRow := func(x *graph.Node) *graph.Node { return graph.ReduceSum(graph.Reshape(x, rows, width), -1) }
	count := graph.Max(perRow(graph.ConvertDType(used, p.net.wide)), scalar(logRatio, 1))
	mean := graph.Div(perRow(logRatio), count)
	over := graph.GreaterThan(mean, scalar(mean, maxSequenceLogRatio))
	spread := func(x *graph.Node) *graph.Node {
		return graph.Reshape(graph.BroadcastToDims(graph.Reshape(x, rows, 1), rows, width), rows*width)
	}
	ratio = graph.Exp(graph.Where(over, scalar(mean, maxSequenceLogRatio), mean))
	return spread(ratio), graph.LogicalNot(spread(over))
}

// estimateKL computes loss.KLEstimator's Estimate from d = log π − log π_ref, [n].
func estimateKL(e loss.KLEstimator, d *graph.Node) (kl, byLogProb *graph.Node) {
	zero, one := scalar(d, 0), scalar(d, 1)
	switch e {
	case loss.K2:
		return graph.Mul(scalar(d, 0.5), graph.Mul(d, d)), d
	case loss.K3:
		ratio := graph.Exp(graph.Neg(d))
		kl = graph.Sub(graph.Add(ratio, d), one)
		over := graph.GreaterThan(kl, scalar(d, maxK3))
		return graph.Where(over, scalar(d, maxK3), kl), graph.Where(over, zero, graph.Sub(one, ratio))
	case loss.KAbs:
		return graph.Abs(d), graph.Sign(d)
	default: // K1
		return d, graph.OnesLike(d)
	}
}

// maxK3 bounds K3, as in package loss.
const maxK3 = 10
