package device

import (
	"errors"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/xla/failure"
)

// sampler is what another worker published of a version, in this one's memory.
type sampler struct {
	fingerprint string // model.Sampler.Fingerprint
	policy      *model.State
}

// frozenBase is the weights of a run's base model, which its adapters are over.
type frozenBase struct {
	*model.Base
	fingerprint string // of the weights as they are on the device
}

// resident checks that the policy version is the one in memory, for work on it. That needs
// the memory of an update that was begun on it, and of what was published of the version before.
func (e *Engine) resident(v activities.Version) error {
	if e.state == nil || e.fingerprint != v.State {
		held := "nothing"
		if e.state != nil {
			held = e.fingerprint
		}
		return fmt.Errorf("version %d of run %s has state %s, in memory is %s: %w", v.Version, v.Run.ID, v.State, held, activities.ErrNotResident)
	}
	e.dropBegun()
	e.dropSampler()
	return nil
}

// computeFingerprint computes the fingerprint of the state in memory and stores it.
func (e *Engine) computeFingerprint() error {
	fingerprint, err := model.PairFingerprint(e.state, e.second)
	if err != nil {
		return fmt.Errorf("state fingerprint: %w", err)
	}
	e.fingerprint = fingerprint
	return nil
}

// hold replaces the policy and the second network in memory, which is nil if there is none. Until
// fingerprint is called they are not a version.
func (e *Engine) hold(policy, second *model.State) {
	e.dropSampler()
	e.dropBegun()
	e.dropKept()
	if e.state != nil && e.state != policy {
		e.state.Free()
	}
	if e.second != nil && e.second != second {
		e.second.Free()
	}
	e.state, e.second, e.fingerprint = policy, second, ""
}

// drop frees the policy and the second network in memory. The programs, the reference and a frozen base
// model stay.
func (e *Engine) drop() { e.hold(nil, nil) }

// dropAll also frees the reference and a frozen base model.
func (e *Engine) dropAll() {
	e.drop()
	if e.frozen != nil {
		e.dropReference()
	}
	e.dropFrozen()
}

// dropReference gives up the reference.
func (e *Engine) dropReference() {
	if e.reference != nil {
		e.reference.Free()
		e.reference, e.referenceOf = nil, ""
	}
}

// dropSampler frees what another worker published.
func (e *Engine) dropSampler() {
	if e.sampler != nil {
		e.sampler.policy.Free()
		e.sampler = nil
	}
}

// dropFrozen gives up the frozen base model. States that are over it keep its memory.
func (e *Engine) dropFrozen() {
	if e.frozen != nil {
		e.frozen.Free()
		e.frozen = nil
	}
}

// frozenFingerprint is the fingerprint of the frozen base model, empty without one.
func (e *Engine) frozenFingerprint() string {
	if e.frozen == nil {
		return ""
	}
	return e.frozen.fingerprint
}

// abandon drops the policy and the second network after an error if they are no version any more: an
// update was under way, of which an optimizer step was made or failed while it wrote. It
// tells whether that is so.
func (e *Engine) abandon(err error) bool {
	if e.fingerprint != "" && !errors.Is(err, model.ErrConsumed) {
		return false
	}
	if !errors.Is(err, failure.ErrDeviceFailed) { // else the device may not answer
		e.drop()
	}
	e.fingerprint = ""
	return true
}

// forget frees the policy in memory.
func (e *Engine) forget() {
	e.dropSampler()
	e.dropBegun()
	e.dropKept()
	for _, s := range []*model.State{e.state, e.second, e.reference} {
		if s != nil {
			s.Free()
		}
	}
	e.dropFrozen()
	e.state, e.second, e.reference, e.fingerprint, e.owner = nil, nil, nil, "", activities.Run{}
	clear(e.updates)
	clear(e.own)
	e.trim(maxPrograms)
}
