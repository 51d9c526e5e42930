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
	States *store.Ref   `json:"states,omitempty"`
	// Components and Texts are side tables of the rollout, as [SelectResult] has them.
	Components *store.Ref `json:"components,omitempty"`
	Texts      *store.Ref `json:"texts,omitempty"`
	// Broken and Branches are tables of [SelectResult].
	Broken   *store.Ref `json:"broken,omitempty"`
	Branches *store.Ref `json:"branches,omitempty"`
	// Pivots are the newest ones of the branch.
	Pivots *store.Ref `json:"pivots,omitempty"`
	// Reference is the manifest whose snapshot the scores are relative to, as [ScoreInput] has it.
	Reference *store.Ref `json:"reference,omitempty"`
	// Agents is the table of [CreditResult].
	Agents *store.Ref `json:"agents,omitempty"`
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

// Next is what the iteration after a commit learns from, where it shares the
// rollout; nil if it rolls out itself.
func (c CommitInput) Next() *Rolled {
	return rolledOf(c.Rollout, Rolled{Trajectories: c.Trajectories, Scores: c.Scores, Components: c.Components})
}

// RolledOf is the rollout that the iteration after m learns from too, nil if it
// rolls out itself.
func RolledOf(m *store.Manifest) *Rolled {
	if m.Trajectories == nil {
		return nil
	}
	now := Rolled{Trajectories: *m.Trajectories, Scores: m.Scores}
	if ref, ok := m.Artifacts[ComponentsArtifact]; ok {
		now.Components = &ref
	}
	return rolledOf(m.Rollout, now)
}

// rolledOf is now, as the next iteration that learns from the rollout finds it; nil if none
// does.
func rolledOf(rollout *store.RolloutRef, now Rolled) *Rolled {
	if rollout == nil || !rollout.Left() {
		return nil
	}
	now.RolloutRef = *rollout
	now.Update++
	return &now
}

// NextRollout is the rollout of the next iteration, which a version has made before its update.
type NextRollout struct {
	// Settings are those of the next iteration: they are fixed when its rollout begins.
	Settings spec.Settings    `json:"settings"`
	Turns    []store.TurnRefs `json:"turns"`
	By       store.VersionRef `json:"by"`
}

// NextRolloutOf is the rollout that m's version made for the next iteration; nil without one.
func NextRolloutOf(m *store.Manifest) (*NextRollout, error) {
	if m.NextRollout == nil {
		return nil, nil
	}
	out := &NextRollout{Turns: m.NextRollout.Turns, By: store.VersionRef{Version: m.Iteration, State: m.StateBefore}}
	if err := json.Unmarshal(m.NextRollout.Settings, &out.Settings); err != nil {
		return nil, fmt.Errorf("settings of the rollout that iteration %d made for the next: %w: %w", m.Iteration, err, store.ErrInvalid)
	}
	return out, nil
}

// ComponentsArtifact is the table of rewards in parts among a manifest's further artifacts.
const ComponentsArtifact = "components"

// Rolled is a rollout that several iterations learn from, as the next of them finds
// it.
type Rolled struct {
	store.RolloutRef
	Trajectories store.Ref `json:"trajectories"`
	// Scores are absent if no row was selected.
	Scores *store.Ref `json:"scores,omitempty"`
	// Components are absent in a run without rewards in parts.
	Components *store.Ref `json:"components,omitempty"`
}

// Shared names the rollout if several iterations learn from it, as in the iteration that
// rolled out; nil if only this one does.
func (s SelectResult) Shared(branch, iteration int) *store.RolloutRef {
	if s.Parts == nil {
		return nil
	}
	return &store.RolloutRef{Branch: branch, Iteration: iteration, Updates: len(s.Parts), Rows: s.Parts}
}
