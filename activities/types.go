package activities

import (
	"cmp"
	"encoding/json"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Names, digests and small numbers: these types are all that enters a
// workflow's history (design law 2). Numbers that may not be finite travel as
// canon.Float.

// Metrics are named numbers; they are deterministic if they enter a manifest.
type Metrics = map[string]canon.Float

// Telemetry is what an attempt measured about itself. It stays outside the chain.
type Telemetry struct {
	// Seconds is the time the activity's own work took.
	Seconds float64 `json:"seconds"`
	// WaitSeconds is the time it waited for the device to be free.
	WaitSeconds float64 `json:"wait_seconds,omitempty"`
	// CompileSeconds is the part of Seconds spent on programs: lowering, compiling, taking
	// them from the cache, and testing them.
	CompileSeconds float64 `json:"compile_seconds,omitempty"`
	// LowerSeconds and SelfTestSeconds are the parts of CompileSeconds spent lowering and
	// testing the programs.
	LowerSeconds    float64 `json:"lower_seconds,omitempty"`
	SelfTestSeconds float64 `json:"self_test_seconds,omitempty"`
	// CompiledPrograms and CachedPrograms count the programs that were compiled, and those
	// that came from the worker's cache.
	CompiledPrograms int `json:"compiled_programs,omitempty"`
	CachedPrograms   int `json:"cached_programs,omitempty"`
	// CachedSeconds is the time that those from the cache took.
	CachedSeconds float64 `json:"cached_seconds,omitempty"`
	// CacheFaults counts programs whose file in the cache could not be used or written.
	CacheFaults int `json:"cache_faults,omitempty"`
	// LoadSeconds is the part of Seconds spent loading a stored model.
	LoadSeconds float64 `json:"load_seconds,omitempty"`
	// ReadSeconds, HashSeconds, UploadSeconds and FingerprintSeconds are the times for which
	// the model was read, hashed, copied to the device and fingerprinted. Reading and hashing
	// run ahead of the rest, so that all may be more than LoadSeconds together. Files of up to
	// 8 MiB are not in the first two.
	ReadSeconds        float64 `json:"read_seconds,omitempty"`
	HashSeconds        float64 `json:"hash_seconds,omitempty"`
	UploadSeconds      float64 `json:"upload_seconds,omitempty"`
	FingerprintSeconds float64 `json:"fingerprint_seconds,omitempty"`
	// Tokens counts the tokens computed or sampled.
	Tokens int `json:"tokens,omitempty"`
	// Recomputed counts updates applied again to rebuild a policy version, and those begun
	// again because their worker was lost between two pieces.
	Recomputed int `json:"recomputed,omitempty"`
	// RecomputeSeconds is the part of Seconds spent on what had been computed before.
	RecomputeSeconds float64 `json:"recompute_seconds,omitempty"`
	// PriceHour is the price of an hour of the device, in the worker's own currency; 0:
	// the worker was given none.
	PriceHour float64 `json:"price_hour,omitempty"`
}

// Plus is the sum of two attempts or of several steps; the price is the later one's.
func (t Telemetry) Plus(u Telemetry) Telemetry {
	t.Seconds += u.Seconds
	t.WaitSeconds += u.WaitSeconds
	t.CompileSeconds += u.CompileSeconds
	t.LowerSeconds += u.LowerSeconds
	t.SelfTestSeconds += u.SelfTestSeconds
	t.CompiledPrograms += u.CompiledPrograms
	t.CachedPrograms += u.CachedPrograms
	t.CachedSeconds += u.CachedSeconds
	t.CacheFaults += u.CacheFaults
	t.LoadSeconds += u.LoadSeconds
	t.ReadSeconds += u.ReadSeconds
	t.HashSeconds += u.HashSeconds
	t.UploadSeconds += u.UploadSeconds
	t.FingerprintSeconds += u.FingerprintSeconds
	t.Tokens += u.Tokens
	t.Recomputed += u.Recomputed
	t.RecomputeSeconds += u.RecomputeSeconds
	t.PriceHour = cmp.Or(u.PriceHour, t.PriceHour)
	return t
}

// Version addresses a policy version of a run: the state before an iteration.
type Version struct {
	Run    Run `json:"run"`
	Branch int `json:"branch"`
	// Version is the number of iterations whose updates it has seen.
	Version int `json:"version"`
	// State is its state fingerprint; empty for a version 0 nobody has loaded yet.
	State string `json:"state"`
}

// RestoreInput asks a device worker to hold a policy version.
type RestoreInput struct {
	Version Version `json:"version"`
	// Head is the manifest of iteration Version-1; nil for version 0.
	Head *store.Ref `json:"head,omitempty"`
	// Pending is the update of the uncommitted iteration, to be applied on top.
	Pending *PendingUpdate `json:"pending,omitempty"`
	// Updating is the update of the uncommitted iteration if only pieces of it were made;
	// its State is empty. A worker that has the pieces in memory holds enough.
	Updating *PendingUpdate `json:"updating,omitempty"`
	// MaxSeconds bounds one call; the result says whether another is needed.
	MaxSeconds int `json:"max_seconds"`
	// Evaluate says that the version is not trained further: training's programs are
	// compiled only if the version must be rebuilt.
	Evaluate bool `json:"evaluate,omitempty"`
	// Adopt says that the version is the fork point of a branch that continues under other
	// programs: a snapshot is loaded whatever programs made it, and no update that other
	// programs made is applied again.
	Adopt bool `json:"adopt,omitempty"`
}

// PendingUpdate is an update that was made and not yet committed.
type PendingUpdate struct {
	Batch    store.Ref     `json:"batch"`
	Settings spec.Settings `json:"settings"`
	State    string        `json:"state"`
}

// RestoreResult says what the worker holds now.
type RestoreResult struct {
	// State is empty while the worker holds a part of an update, and so no version.
	State string `json:"state"`
	// Reached is the version held; Done is false if the bound came first.
	Reached int  `json:"reached"`
	Done    bool `json:"done"`
	// Resident is true if the worker held the version already.
	Resident bool `json:"resident"`
	// Begun is how far the update is that the bound has cut; nil if none was.
	Begun *BegunUpdate `json:"begun,omitempty"`
	// Before is the state fingerprint of the version asked for, without the pending update.
	Before string `json:"before"`
	// Frozen is the fingerprint of the base model below adapters, as it is on the device;
	// empty without.
	Frozen    string            `json:"frozen,omitempty"`
	From      int               `json:"from"` // version of the snapshot it was rebuilt from
	Programs  map[string]string `json:"programs,omitempty"`
	Telemetry Telemetry         `json:"telemetry"`
}

// WarmStartInput asks for a chunk of a warm start.
type WarmStartInput struct {
	Run  string    `json:"run"`
	Spec store.Ref `json:"spec"`
	// Base is the model that is trained; nil for a starter, which is made here.
	Base *store.Ref `json:"base,omitempty"`
	// From is the snapshot that the chunk continues from; nil at the beginning.
	From *store.SnapshotRef `json:"from,omitempty"`
	// Steps is the number of updates of the chunk, at most.
	Steps int `json:"steps"`
}

// WarmStartResult is the chunk's snapshot, or the finished model.
type WarmStartResult struct {
	Steps     int                `json:"steps"` // supervised updates done so far
	Snapshot  *store.SnapshotRef `json:"snapshot,omitempty"`
	Base      *store.Ref         `json:"base,omitempty"`
	Shared    bool               `json:"shared"` // the store had it already
	Loss      canon.Float        `json:"loss"`
	Telemetry Telemetry          `json:"telemetry"`
}

// Rollout names a set of episodes: an iteration's, or an evaluation's.
type Rollout struct {
	// Evaluation is nil for training.
	Evaluation *EvaluationOf `json:"evaluation,omitempty"`
	Iteration  int           `json:"iteration"`
	// Round counts the rounds of the iteration's rollout, from 0; each has other
	// groups.
	Round int `json:"round,omitempty"`
}

// EvaluationOf says which suite is rolled out and where its artifacts go.
type EvaluationOf struct {
	// Suite is the name of one of the spec's suites.
	Suite string `json:"suite"`
	// Apart is the id of the Evaluate workflow that evaluates; empty for an evaluation
	// that is part of the run and named by its manifest. The artifacts of an Evaluate
	// workflow are outside the runs, where gc does not look.
	Apart string `json:"apart,omitempty"`
}

// GenerateInput asks for one turn's samples.
type GenerateInput struct {
	Policy   Version          `json:"policy"`
	Rollout  Rollout          `json:"rollout"`
	Settings spec.Settings    `json:"settings"`
	Turn     int              `json:"turn"`            // from 1
	Turns    []store.TurnRefs `json:"turns,omitempty"` // the turns before it
	// Pieces are the tables of the pieces of this turn that are done, in their order; see
	// spec.Limits.
	Pieces []store.Ref `json:"pieces,omitempty"`
}

// GenerateResult names the turn's generate table.
type GenerateResult struct {
	// Table has all rows of the turn, or those of a piece if More.
	Table store.Ref `json:"table"`
	// More says that another piece follows.
	More      bool      `json:"more,omitempty"`
	Telemetry Telemetry `json:"telemetry"`
}

// StepInput asks for the environment's answer to a turn.
type StepInput struct {
	Run      Run              `json:"run"`
	Branch   int              `json:"branch"`
	Rollout  Rollout          `json:"rollout"`
	Turn     int              `json:"turn"`
	Turns    []store.TurnRefs `json:"turns,omitempty"` // the turns before it
	Generate store.Ref        `json:"generate"`
	// TurnLimit ends episodes after a turn before the last one of their task; 0 is no such.
	TurnLimit int `json:"turn_limit,omitempty"`
}

// StepResult names the turn's step table.
type StepResult struct {
	Table     store.Ref `json:"table"`
	Alive     int       `json:"alive"` // episodes that continue
	Telemetry Telemetry `json:"telemetry"`
}

// SelectInput asks for the trajectories of a rollout and the groups to keep.
type SelectInput struct {
	Run      Run              `json:"run"`
	Branch   int              `json:"branch"`
	Rollout  Rollout          `json:"rollout"`
	Settings spec.Settings    `json:"settings"`
	Turns    []store.TurnRefs `json:"turns"` // of all rounds
	// Texts are those that were frequent in the iteration before, if a reward reads them.
	Texts *store.Ref `json:"texts,omitempty"`
	// Everything asks for the trajectories of all groups as if they were selected, for Score:
	// the selection ranks by exact entropies. Scores are then its table, for the selection itself.
	Everything bool       `json:"everything,omitempty"`
	Scores     *store.Ref `json:"scores,omitempty"`
}

// SelectResult names the trajectories and counts what was kept.
type SelectResult struct {
	// More asks for another round of the rollout: too few groups vary. Nothing is
	// stored then.
	More         bool      `json:"more,omitempty"`
	Trajectories store.Ref `json:"trajectories"`
	// Components is the table of the rewards in parts, and Texts the table of the frequent
	// texts. Each is nil if the spec asks for no such rewards.
	Components *store.Ref `json:"components,omitempty"`
	Texts      *store.Ref `json:"texts,omitempty"`
	Rows       int        `json:"rows"` // rows selected; 0: the update is skipped
	// Parts are the rows for each of the iterations that learn from the rollout;
	// absent if there is one.
	Parts     []int     `json:"parts,omitempty"`
	Metrics   Metrics   `json:"metrics"`
	Telemetry Telemetry `json:"telemetry"`
}

// MeasureInput asks for an evaluation's figures.
type MeasureInput struct {
	Run     Run     `json:"run"`
	Branch  int     `json:"branch"`
	Rollout Rollout `json:"rollout"`
	Version int     `json:"version"`
	State   string  `json:"state"` // the version's state fingerprint
	// Fingerprint is the fingerprint of the device: the bits belong to it.
	Fingerprint string           `json:"fingerprint"`
	Turns       []store.TurnRefs `json:"turns"`
}

// MeasureResult is an evaluation as a manifest names it.
type MeasureResult struct {
	Evaluation store.EvaluationRef `json:"evaluation"`
	Telemetry  Telemetry           `json:"telemetry"`
}

// ScoreInput asks for the old log-probs of the selected rows.
type ScoreInput struct {
	Policy       Version       `json:"policy"`
	Iteration    int           `json:"iteration"`
	Settings     spec.Settings `json:"settings"`
	Trajectories store.Ref     `json:"trajectories"`
	// Pieces are the tables of the pieces that are done, in their order; see spec.Limits.
	Pieces []store.Ref `json:"pieces,omitempty"`
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
	// Components belong to the trajectories, in a run with rewards in parts.
	Components *store.Ref `json:"components,omitempty"`
	// Scores is nil if nothing was selected.
	Scores *store.Ref `json:"scores"`
	// Rollout says which part of the trajectories this iteration learns from; nil for
	// all.
	Rollout *store.RolloutRef `json:"rollout,omitempty"`
	// Replay are the batches that the replay buffer draws from.
	Replay []store.Ref `json:"replay,omitempty"`
	// States is the table of initial states' values before the iteration, if the
	// algorithm keeps one.
	States *store.Ref `json:"states,omitempty"`
}

// CreditResult names the batch: all that Update reads.
type CreditResult struct {
	// Batch is nil if the iteration has no row to learn from.
	Batch *store.Ref `json:"batch"`
	// States is the table after the iteration.
	States *store.Ref `json:"states,omitempty"`
	// Agents is the table of who acted in each turn, if the algorithm reads it.
	Agents    *store.Ref `json:"agents,omitempty"`
	Metrics   Metrics    `json:"metrics"`
	Telemetry Telemetry  `json:"telemetry"`
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
func (b BegunUpdate) Again() *BegunUpdate {
	return &BegunUpdate{Of: b.Of, Lost: max(b.Lost, b.Done)}
}

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

// SnapshotInput asks for the full training state to be stored.
type SnapshotInput struct {
	Policy Version `json:"policy"`
	// Begun is how far the pieces before it are; nil for the first, or for all in one.
	Begun *BegunSnapshot `json:"begun,omitempty"`
}

// BegunSnapshot is a snapshot of which not all files are stored. A piece before any file is
// sent finds out their names and digests, because the folder's name has them all.
type BegunSnapshot struct {
	Snapshot store.SnapshotRef `json:"snapshot"`
	// Sent is the number of files that are stored, in the order of their names.
	Sent int `json:"sent"`
}

// SnapshotResult names the stored state, or says how far it is stored.
type SnapshotResult struct {
	Snapshot store.SnapshotRef `json:"snapshot"`
	// Begun is set if another piece follows.
	Begun     *BegunSnapshot `json:"begun,omitempty"`
	Telemetry Telemetry      `json:"telemetry"`
}

// DeviceInfo describes a device worker's device, as its fingerprint does.
type DeviceInfo struct {
	Fingerprint string          `json:"fingerprint"`
	Fields      json.RawMessage `json:"fields"`
}

// ReportInput asks for a run's page.
type ReportInput struct {
	Run string `json:"run"`
}

// ReportResult says where the page is.
type ReportResult struct {
	Location  string    `json:"location"`
	Files     int       `json:"files"`
	Telemetry Telemetry `json:"telemetry"`
}
