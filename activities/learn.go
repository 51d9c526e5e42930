package activities

import (
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// ScoreInput asks for the old log-probs of the selected rows.
type ScoreInput struct {
	Policy       Version       `json:"policy"`
	Iteration    int           `json:"iteration"`
	Settings     spec.Settings `json:"settings"`
	Trajectories store.Ref     `json:"trajectories"`
	// Pieces are the tables of the pieces that are done, in their order; see spec.Limits.
	Pieces []store.Ref `json:"pieces,omitempty"`
	// Reference is the manifest whose snapshot is the reference; nil is version 0.
	Reference *store.Ref `json:"reference,omitempty"`
	// Under asks for the log-probs of the rows by another model besides, or under another context; nil is neither.
	Under *Under `json:"under,omitempty"`
}

// Under is by what else rows are scored than by the policy that learns. One of its fields is set.
type Under struct {
	// Model is the digest of a model's folder in the store: the spec's teacher.
	Model string `json:"model,omitempty"`
	// Context is what the policy is shown before the rows, as spec.Teacher has it.
	Context string `json:"context,omitempty"`
}

// ScoreResult names the scores table.
type ScoreResult struct {
	// Scores has all selected rows, or what a piece scored if More. Metrics are of all.
	Scores  store.Ref `json:"scores"`
	Metrics Metrics   `json:"metrics"`
	// More says that another piece follows.
	More      bool      `json:"more,omitempty"`
	Telemetry Telemetry `json:"telemetry"`
}

// DiagnoseInput requests how much information the reasonings of a rollout have about
// their prompts.
type DiagnoseInput struct {
	Policy       Version       `json:"policy"`
	Iteration    int           `json:"iteration"`
	Settings     spec.Settings `json:"settings"`
	Trajectories store.Ref     `json:"trajectories"`
	// Before are the moving averages so far, by their names.
	Before Metrics `json:"before,omitempty"`
	// Pieces are the tables of the pieces that are done, in their order; see spec.Limits.
	Pieces []store.Ref `json:"pieces,omitempty"`
}

// DiagnoseResult is the figures by RAGEN-2's names, or a piece on the way to them.
type DiagnoseResult struct {
	Metrics Metrics `json:"metrics"`
	// Piece is the table of a piece, after which another follows; nil with the figures.
	Piece     *store.Ref `json:"piece,omitempty"`
	Telemetry Telemetry  `json:"telemetry"`
}

// CreditInput asks for advantages and the batch.
type CreditInput struct {
	Run          Run           `json:"run"`
	Branch       int           `json:"branch"`
	Iteration    int           `json:"iteration"`
	Settings     spec.Settings `json:"settings"`
	Trajectories store.Ref     `json:"trajectories"`
	// Tables are those of the trajectories, ComponentsTable, BranchesTable and OpenTable, and those of the iteration
	// before: StatesTable, if the algorithm keeps one.
	Tables Tables `json:"tables,omitempty"`
	// Scores is nil if nothing was selected.
	Scores *store.Ref `json:"scores"`
	// Rollout says which part of the trajectories this iteration learns from; nil for
	// all.
	Rollout *store.RolloutRef `json:"rollout,omitempty"`
	// RolledOutBy is the version that sampled the trajectories; nil is the one that learns.
	RolledOutBy *store.VersionRef `json:"rolled_out_by,omitempty"`
	// Replay are the batches that the replay buffer draws from.
	Replay []store.Ref `json:"replay,omitempty"`
	// Pass asks for the batch of a pass after the first; nil for that of the first, or of the one
	// update.
	Pass *CreditPass `json:"pass,omitempty"`
}

// Of is the input with what was selected, and with the part of the rollout that the iteration
// learns from; nil is all of it.
func (in CreditInput) Of(selected SelectResult, part *store.RolloutRef) CreditInput {
	in.Trajectories, in.Tables, in.Rollout = selected.Trajectories, in.Tables.With(selected.Tables), part
	if selected.Scored != nil {
		in.Scores = &selected.Scored.Scores
	}
	return in
}

// Due reports whether advantages are computed for an iteration that learns from so many rows. A
// baseline by state sees all trajectories of a rollout, even if no row is selected.
func (in CreditInput) Due(rows int) bool { return rows > 0 || in.Settings.Credit.ObservesStates() }

// CreditPass says which pass of an update a batch is for, and what the pass before it changed.
type CreditPass struct {
	// Turn is the turn that the pass updates, Updated that of the pass before, from 1.
	Turn    int `json:"turn"`
	Updated int `json:"updated"`
	// Before and After are the scores of the selected rows before the pass before, and after it.
	Before store.Ref `json:"before"`
	After  store.Ref `json:"after"`
	// Corrections are those of the pass before; nil if it was the first.
	Corrections *store.Ref `json:"corrections,omitempty"`
}

// CreditResult names the batch: all that Update reads.
type CreditResult struct {
	// Batch is nil if the iteration has no row to learn from.
	Batch *store.Ref `json:"batch"`
	// Tables are StatesTable after the iteration and AgentsTable, each if the algorithm reads it.
	Tables Tables `json:"tables,omitempty"`
	// Turns are the turns that the iteration updates in passes, in their order: Batch is that of
	// the first. It is nil if the iteration has one update.
	Turns []int `json:"turns,omitempty"`
	// Corrections are those of a pass after the first.
	Corrections *store.Ref `json:"corrections,omitempty"`
	Metrics     Metrics    `json:"metrics"`
	Telemetry   Telemetry  `json:"telemetry"`
}

// UpdateInput asks for policy n+1.
type UpdateInput struct {
	Policy   Version       `json:"policy"`
	Batch    store.Ref     `json:"batch"`
	Settings spec.Settings `json:"settings"`
	// Begun is how far the pieces before it are; nil for the first.
	Begun *BegunUpdate `json:"begun,omitempty"`
	// MaxSeconds bounds a piece: it ends with the first micro-batch after them. 0 is the
	// whole update in one.
	MaxSeconds int `json:"max_seconds,omitempty"`
}

// BegunUpdate is an update of which not all pieces are made. Its sums, and the state that its
// optimizer steps have made so far, are in the memory of the worker alone.
type BegunUpdate struct {
	// Done is how many of its micro-batches are done, and Of how many it has: those of all
	// optimizer steps in their order, where each goes through the critic and the policy by
	// itself.
	Done int `json:"done"`
	Of   int `json:"of"`
	// Lost is how many a worker had done that was lost, or whose session ended: perhaps with
	// what they left in its memory.
	Lost int `json:"lost,omitempty"`
}

// Again is the update from its beginning, for another session. A worker that still has the
// pieces in memory does not make them again.
func (b BegunUpdate) Again() *BegunUpdate { return &BegunUpdate{Of: b.Of, Lost: max(b.Lost, b.Done)} }

// UpdateResult is the new state's fingerprint and the update's figures, or how far it is.
type UpdateResult struct {
	State string `json:"state"`
	// Counts are this update's; Skipped says that the loss or the gradients
	// were not finite, and then the state is the one before.
	Counts  store.UpdateCounts `json:"counts"`
	Metrics Metrics            `json:"metrics"`
	// Begun is set if another piece follows; State, Counts and Metrics are of the whole.
	Begun     *BegunUpdate `json:"begun,omitempty"`
	Telemetry Telemetry    `json:"telemetry"`
}
