package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// ErrRemoved: a person has removed what had this id (reprise rm), and the id is used up.
var ErrRemoved = errors.New("removed")

// Removed is what stays of a run, a sweep or an evaluation that a person has removed, at [RemovedKey] of its folder: the
// id would otherwise be used again with other bytes, and whoever has a digest of the old ones could not tell. It is written
// before the first object is deleted and never replaced. No manifest names it, so unlike an artifact it may have a time.
type Removed struct {
	// Kind is what was removed: "run", "sweep" or "evaluation".
	Kind string `json:"kind"`
	// ID is its id.
	ID string `json:"id"`
	// Sweep is the sweep with which a trial was removed.
	Sweep string `json:"sweep,omitempty"`
	// At is when the removal began.
	At time.Time `json:"at"`
	// Objects and Bytes are how much there was.
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
	// Heads are the newest manifests of the branches, of a run.
	Heads []RemovedHead `json:"heads,omitempty"`
}

// MeasuredName is the name of the artifact in an evaluation's folder that says whose policy it measures.
const MeasuredName = "policy"

// Measured is the policy of an evaluation apart from its run.
type Measured struct {
	Run     string `json:"run"`
	Version int    `json:"version"`
	// State is the state fingerprint of the version.
	State string `json:"state"`
}

// RemovedHead is the newest commit of a branch of a removed run.
type RemovedHead struct {
	Branch    int `json:"branch"`
	Iteration int `json:"iteration"`
	// Manifest is the manifest's digest, State the fingerprint of the version that it made.
	Manifest string `json:"manifest"`
	State    string `json:"state"`
}

// RemovedKey is the marker's fixed key in the folder of a run, a sweep or an evaluation: "runs/RUN/removed.json".
func RemovedKey(dir string) string { return dir + "/removed.json" }

// String says when it was removed.
func (r Removed) String() string {
	with := ""
	if r.Sweep != "" {
		with = fmt.Sprintf(" with sweep %q", r.Sweep)
	}
	return fmt.Sprintf("%s %q was removed on %s%s", r.Kind, r.ID, r.At.UTC().Format("2006-01-02 at 15:04 UTC"), with)
}

// MarkRemoved writes a marker into a folder, and gives the one that is there: an earlier one stays.
func MarkRemoved(ctx context.Context, s Store, dir string, r Removed) (Removed, error) {
	r.At = r.At.UTC().Truncate(time.Second)
	b, _, err := First(ctx, s, RemovedKey(dir), func() ([]byte, error) { return canon.Marshal(r) })
	if err != nil {
		return r, fmt.Errorf("mark %s as removed: %w", dir, err)
	}
	return decodeRemoved(s, dir, b)
}

// ReadRemoved reads the marker of a folder; nil if it was not removed.
func ReadRemoved(ctx context.Context, s Store, dir string) (*Removed, error) {
	b, _, err := ReadFixed(ctx, s, RemovedKey(dir), maxFixed)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := decodeRemoved(s, dir, b)
	return &r, err
}

func decodeRemoved(s Store, dir string, b []byte) (Removed, error) {
	var r Removed
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("read %s: %w: %w", s.Location(RemovedKey(dir)), ErrInvalid, err)
	}
	return r, nil
}

// FindRemoved finds the marker of an id: of a run, a sweep or an evaluation; nil if none was removed.
func FindRemoved(ctx context.Context, s Store, id string) (*Removed, error) {
	for _, dir := range []string{RunDir(id), SweepDir(id), ApartDir(id)} {
		if r, err := ReadRemoved(ctx, s, dir); err != nil || r != nil {
			return r, err
		}
	}
	return nil, nil
}

// RefuseRemoved is an [ErrRemoved] if the run, the sweep or the evaluation of an id was removed: nothing is written under it
// again, and nothing begins with what it had.
func RefuseRemoved(ctx context.Context, s Store, id string) error {
	r, err := FindRemoved(ctx, s, id)
	if err != nil || r == nil {
		return err
	}
	return fmt.Errorf("%w: %s (%s is what stays of it), and its id is not used again: use another one",
		ErrRemoved, r, s.Location(RemovedKey(r.dir())))
}

// dir is the folder of what was removed.
func (r Removed) dir() string {
	switch r.Kind {
	case "sweep":
		return SweepDir(r.ID)
	case "evaluation":
		return ApartDir(r.ID)
	}
	return RunDir(r.ID)
}
