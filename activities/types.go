package activities

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Names, digests and small numbers: these types are all that enters a
// workflow's history (design law 2). Numbers that may not be finite travel as
// canon.Float.

// Metrics are named numbers; they are deterministic if they enter a manifest.
type Metrics = map[string]canon.Float

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
	// Passed are the passes of the uncommitted iteration that were made before Pending and
	// Updating, to be applied first.
	Passed []PendingUpdate `json:"passed,omitempty"`
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
	// Whole says that a damaged snapshot is an error, as replay wants it: else the one before is taken.
	Whole bool `json:"whole,omitempty"`
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
	// Damaged are the versions of snapshots that could not be read, so that an earlier one was taken.
	Damaged []int `json:"damaged,omitempty"`
	// Load is how busy the worker's machine is; nil where that is not known.
	Load *Load `json:"load,omitempty"`
}

// Load is how busy a machine is.
type Load struct {
	// Average is the mean number of processes that computed or wanted to, over the last minute.
	Average float64 `json:"average"`
	// Cores is how many processors the worker may use.
	Cores int `json:"cores"`
}

// String says it to people.
func (l Load) String() string { return fmt.Sprintf("load %.0f on %d cores", l.Average, l.Cores) }

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
	// Busy is the run that has the device; "" while it is free.
	Busy string `json:"busy,omitempty"`
	// Line is the runs that stand in line for a device of this fingerprint, the first one first; nil where it is not known.
	Line []string `json:"line,omitempty"`
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
