package activities

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// CommitInput is everything an iteration's manifest says.
type CommitInput struct {
	Run         Run               `json:"run"`
	Branch      int               `json:"branch"`
	Iteration   int               `json:"iteration"`
	Parent      *store.Ref        `json:"parent,omitempty"`
	Settings    spec.Settings     `json:"settings"`
	Fingerprint string            `json:"fingerprint"`
	Device      json.RawMessage   `json:"device"`
	Programs    map[string]string `json:"programs"`
	// Frozen is the fingerprint of the base model below adapters; empty without.
	Frozen      string            `json:"frozen,omitempty"`
	StateBefore string            `json:"state_before"`
	StateAfter  string            `json:"state_after"`
	Turns       []store.TurnRefs  `json:"turns"`
	Rollout     *store.RolloutRef `json:"rollout,omitempty"`
	// RolledOutBy and NextRollout are as in a manifest.
	RolledOutBy  *store.VersionRef `json:"rolled_out_by,omitempty"`
	NextRollout  *NextRollout      `json:"next_rollout,omitempty"`
	Trajectories store.Ref         `json:"trajectories"`
	Scores       *store.Ref        `json:"scores,omitempty"`
	Batch        *store.Ref        `json:"batch,omitempty"`
	// Passes are as in a manifest: Batch is nil with them.
	Passes []store.Pass `json:"passes,omitempty"`
	// Tables are all that the iteration has: a manifest's further artifacts.
	Tables Tables `json:"tables,omitempty"`
	// Update counts this iteration's update alone, totals too; the manifest adds the
	// totals of the branch so far.
	Update      store.UpdateCounts    `json:"update"`
	Snapshot    *store.SnapshotRef    `json:"snapshot,omitempty"`
	Evaluations []store.EvaluationRef `json:"evaluations,omitempty"`
	Metrics     Metrics               `json:"metrics"`
	Detected    *Detected             `json:"detected,omitempty"`
	Opened      *Opened               `json:"opened,omitempty"`
	// Timings go to telemetry, not to the manifest.
	Timings map[string]Telemetry `json:"timings"`
	// Lost counts the sessions lost in this iteration so far: telemetry too.
	Lost int `json:"lost"`
	// Costs are those since the last commit, and LostSessions the sessions lost since
	// then: telemetry too.
	Costs        []Cost        `json:"costs,omitempty"`
	LostSessions []LostSession `json:"lost_sessions,omitempty"`
}

// CommitResult names the manifest.
type CommitResult struct {
	Manifest  store.Ref `json:"manifest"`
	Telemetry Telemetry `json:"telemetry"`
}

// Recorded is what a manifest says to the iterations after it, as the input of its commit said it. base
// names the model in the store.
func Recorded(m *store.Manifest, base store.Ref) (CommitInput, error) {
	c := CommitInput{
		Run: Run{ID: m.Run, Spec: m.Spec, Base: base}, Branch: m.Branch, Iteration: m.Iteration,
		Fingerprint: m.Fingerprint, Device: m.Device, Programs: m.Programs, StateBefore: m.StateBefore, StateAfter: m.StateAfter,
		Rollout: m.Rollout, Scores: m.Scores, Batch: m.Batch, Passes: m.Passes, Tables: m.Artifacts, Snapshot: m.Snapshot, Metrics: m.Metrics,
	}
	if m.Trajectories != nil {
		c.Trajectories = *m.Trajectories
	}
	if err := json.Unmarshal(m.Settings, &c.Settings); err != nil {
		return c, fmt.Errorf("settings of iteration %d: %w: %w", m.Iteration, err, store.ErrInvalid)
	}
	if next := m.NextRollout; next != nil {
		c.NextRollout = &NextRollout{Turns: next.Turns, By: store.VersionRef{Version: m.Iteration, State: m.StateBefore}}
		if err := json.Unmarshal(next.Settings, &c.NextRollout.Settings); err != nil {
			return c, fmt.Errorf("settings of the rollout that iteration %d made for the next: %w: %w", m.Iteration, err, store.ErrInvalid)
		}
	}
	if m.Detected != nil {
		c.Detected = &Detected{}
		if err := json.Unmarshal(m.Detected, c.Detected); err != nil {
			return c, fmt.Errorf("what was detected in iteration %d: %w: %w", m.Iteration, err, store.ErrInvalid)
		}
	}
	return c, nil
}

// NextRollout is the rollout of the next iteration, which a version has made before its update.
type NextRollout struct {
	// Settings are those of the next iteration: they are fixed when its rollout begins.
	Settings spec.Settings    `json:"settings"`
	Turns    []store.TurnRefs `json:"turns"`
	By       store.VersionRef `json:"by"`
}

// Rolled is a rollout that several iterations learn from, as the next of them finds
// it.
type Rolled struct {
	store.RolloutRef
	Trajectories store.Ref `json:"trajectories"`
	// Scores are absent if no row was selected.
	Scores *store.Ref `json:"scores,omitempty"`
	// Tables are those of the rollout.
	Tables Tables `json:"tables,omitempty"`
}

// Next is the rollout as the iteration after a commit finds it, where it learns from it too; nil if
// it rolls out itself.
func (c CommitInput) Next() *Rolled {
	if c.Rollout == nil || !c.Rollout.Left() {
		return nil
	}
	next := &Rolled{RolloutRef: *c.Rollout, Trajectories: c.Trajectories, Scores: c.Scores, Tables: c.Tables.OfRollout()}
	next.Update++
	return next
}

// Shared names the rollout if several iterations learn from it, as in the iteration that
// rolled out; nil if only this one does.
func (s SelectResult) Shared(branch, iteration int) *store.RolloutRef {
	if s.Parts == nil {
		return nil
	}
	return &store.RolloutRef{Branch: branch, Iteration: iteration, Updates: len(s.Parts), Rows: s.Parts}
}
