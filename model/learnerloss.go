package model

import (
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// metricCount is the number of metrics of the loss.
func (l *Learner) metricCount() int { return len(l.layout.Metrics) }

// reads are the columns that the policy's loss reads, in the order of its program's inputs. A supervised
// step uses none of them.
func (k Settings) reads(o LossOptions, supervised bool) []read {
	out := readsOf(o.PolicyLayout())
	for i, r := range out {
		out[i].unused = supervised
		switch r.of {
		case batch.ClipLow:
			out[i].otherwise, out[i].required = k.ClipLow, false
		case batch.ClipHigh:
			out[i].otherwise, out[i].required = k.ClipHigh, false
		case batch.Supervised:
			out[i].required = false
		case batch.Turns:
			out[i].most = float32(o.Turns)
		}
	}
	return out
}

// readsOf are the columns of a layout, all required.
func readsOf(l terms.Layout) []read {
	var out []read
	for _, c := range l.Columns {
		out = append(out, read{of: c, required: true})
	}
	return out
}

// knobs are the inputs of the loss.
func (k Settings) knobs(o LossOptions, supervised bool) []float32 {
	of := k.Knobs.With(terms.EntropyCoefficient, k.EntropyCoefficient).With(terms.KLCoefficient, k.KLCoefficient)
	if supervised {
		of = of.With(terms.AllSupervised, 1)
	}
	return o.PolicyLayout().Pack(of)
}

// checkTerms returns an error unless the terms of the loss have their knobs, and no others are given.
func (k Settings) checkTerms(o LossOptions) error {
	if o.KL == "" && k.KLCoefficient != 0 {
		return fmt.Errorf("%w: a KLCoefficient, but the programs were prepared without a KL", ErrInput)
	}
	own := o.Own()
	for name, v := range k.Knobs {
		if _, ok := own[name]; !ok && v != 0 {
			return fmt.Errorf("%w: %s is %v, but the programs were prepared without its term", ErrInput, name, v)
		}
	}
	for name, about := range own {
		if v := float64(k.Knobs[name]); !(v > about.Low && v <= math.MaxFloat32) {
			return fmt.Errorf("%w: %s is %v, must be above %v", ErrInput, name, v, about.Low)
		}
	}
	return nil
}

// forSupervised gives the knobs of the terms, which are not computed, values that are in
// their ranges.
func (k Settings) forSupervised(o LossOptions) Settings {
	for name, about := range o.Own() {
		if k.Knobs[name] != 0 {
			continue
		}
		v := about.Default
		if v == 0 {
			v = about.High
		}
		k.Knobs = k.Knobs.With(name, float32(v))
	}
	return k
}
