package device

import (
	"errors"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/xla/failure"
)

// held is what the memory of a device has of one run.
type held struct {
	owner       activities.Run // whose policy it is; two of one id may differ in spec and base
	state       *model.State
	second      *model.State         // the critic or the process reward model; nil without
	fingerprint string               // fingerprint of both
	reference   *model.State         // parameters alone; nil until it is needed
	referenceOf string               // digest of the manifest whose snapshot it is; empty: version 0
	teacher     *model.State         // as its programs read it; nil until it is needed
	judge       *model.State         // the model that judges, likewise; nil where the policy judges
	frozen      *frozenBase          // below adapters; nil until it is needed
	followed    followed             // zero of a run that is not followed
	bytes       int64                // an estimate of what its weights need, of a run that is followed
	passedOver  []int                // the versions of damaged snapshots that following the run has met
	own         map[programsKey]bool // the run's programs
	updates     map[updateKey]activities.UpdateResult
	begun       *begunUpdate // of the state in memory; nil without
	kept        *keptRollout // between the turns of a rollout; nil without
	sampler     *sampler     // of another worker's version; nil without
}

func newHeld() held {
	return held{own: map[programsKey]bool{}, updates: map[updateKey]activities.UpdateResult{}}
}

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

// drop frees the policy and the second network in memory. The programs, the reference, the teacher, the judge and
// a frozen base model stay.
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
func (h *held) dropReference() {
	if h.reference != nil {
		h.reference.Free()
		h.reference, h.referenceOf = nil, ""
	}
}

// dropSampler frees what another worker published.
func (h *held) dropSampler() {
	if h.sampler != nil {
		h.sampler.policy.Free()
		h.sampler = nil
	}
}

// dropFrozen gives up the frozen base model. States that are over it keep its memory.
func (h *held) dropFrozen() {
	if h.frozen != nil {
		h.frozen.Free()
		h.frozen = nil
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

// free frees what the device has of it.
func (h *held) free() {
	h.dropSampler()
	h.dropBegun()
	h.dropKept()
	for _, s := range []*model.State{h.state, h.second, h.reference, h.teacher, h.judge} {
		if s != nil {
			s.Free()
		}
	}
	h.dropFrozen()
}

// forget frees the policy in memory.
func (e *Engine) forget() {
	e.free()
	e.held = newHeld()
	e.trim(maxPrograms)
}

// turnTo makes the memory that of a run: what is there of the run already, or nothing. What is there of other runs is freed; but
// ahead, for a run that nobody asks for yet, those that are followed too stay.
func (e *Engine) turnTo(run activities.Run, ahead bool) {
	if e.owner != run {
		if e.fingerprint != "" && ahead && e.follows[e.owner.ID] {
			e.dropSampler()
			e.dropKept()
			e.aside[e.owner], e.held = e.held, newHeld()
		} else {
			e.forget()
		}
		e.owner = run
		if there, ok := e.aside[run]; ok {
			e.held = there
			delete(e.aside, run)
		}
	}
	for other, there := range e.aside {
		if !ahead || !e.follows[other.ID] {
			there.free()
			delete(e.aside, other)
		}
	}
}
