package activities

import (
	"encoding/json"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Head is the newest committed iteration of a branch.
type Head struct {
	Manifest    store.Ref     `json:"manifest"`
	Branch      int           `json:"branch"`
	Iteration   int           `json:"iteration"`
	State       string        `json:"state"` // state fingerprint of version Iteration+1
	Fingerprint string        `json:"fingerprint"`
	Base        store.Ref     `json:"base"`
	Settings    spec.Settings `json:"settings"`
	Metrics     Metrics       `json:"metrics,omitempty"`
	// Snapshot is the version of the newest snapshot at or before Iteration+1; 0 is the base model.
	Snapshot int `json:"snapshot"`
	// Passes is how many more updates than iterations have followed on that snapshot, because
	// iterations have several passes.
	Passes int `json:"passes,omitempty"`
	// Tables are those that the next iteration begins with.
	Tables Tables `json:"tables,omitempty"`
	// Rolled is the rollout that the next iteration also learns from. Batches are the
	// batches of the newest iterations, newest first, that a replay buffer draws from.
	Rolled  *Rolled     `json:"rolled,omitempty"`
	Batches []store.Ref `json:"batches,omitempty"`
	// NextRollout is the next iteration's, if it was made before the update.
	NextRollout *NextRollout `json:"next_rollout,omitempty"`
	// First and Last are the branch's first and newest evaluation.
	First *store.EvaluationRef `json:"first,omitempty"`
	Last  *store.EvaluationRef `json:"last,omitempty"`
	// Device is the fingerprint's fields.
	Device json.RawMessage `json:"device,omitempty"`
	// Detected is the detectors' result for the iteration.
	Detected *Detected `json:"detected,omitempty"`
	// Programs are the hashes of the programs that computed it.
	Programs map[string]string `json:"programs,omitempty"`
}

// HeadOf is the head after a commit, whose manifest is m. What is counted over the chain is left to
// the caller: the newest snapshot and the passes since, the batches of a replay buffer, and the
// evaluations.
func HeadOf(c CommitInput, m store.Ref) *Head {
	h := &Head{
		Manifest: m, Branch: c.Branch, Iteration: c.Iteration, State: c.StateAfter, Fingerprint: c.Fingerprint, Base: c.Run.Base,
		Settings: c.Settings, Metrics: c.Metrics, Tables: c.Tables.OfNext(), Rolled: c.Next(), NextRollout: c.NextRollout,
		Device: c.Device, Detected: c.Detected, Programs: c.Programs,
	}
	if ref := ReferenceAfter(c.Settings, c.Snapshot, m, c.Tables.Ref(ReferenceTable)); ref != nil {
		h.Tables = h.Tables.With(Tables{ReferenceTable.Name: *ref})
	}
	return h
}

// Forked is the head for another run that begins after it, with settings of its own: its policy alone
// counts.
func (h Head) Forked(settings spec.Settings) *Head {
	return &Head{
		Manifest: h.Manifest, Iteration: h.Iteration, State: h.State, Fingerprint: h.Fingerprint, Device: h.Device, Base: h.Base,
		Settings: settings, Snapshot: h.Snapshot, Passes: h.Passes,
	}
}

// Carried is the head without what a run that continues after it carries by itself.
func (h Head) Carried() *Head {
	h.Metrics, h.First, h.Last, h.Device, h.Detected, h.Programs = nil, nil, nil, nil, nil, nil
	return &h
}

// ReferenceAfter is the manifest whose snapshot is the reference of the iteration after another: that
// one's, if a stage of spec.Update.ReferenceEvery iterations begins with the version that it has made,
// else the one that it used. settings, snapshot and m are its settings, its snapshot and its manifest.
func ReferenceAfter(settings spec.Settings, snapshot *store.SnapshotRef, m store.Ref, used *store.Ref) *store.Ref {
	if every := settings.Update.ReferenceEvery; every > 0 && snapshot != nil && snapshot.Version%every == 0 {
		return &m
	}
	return used
}
