package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// ForksDir holds what forks of a run begin with: "runs/RUN/forks". It is outside the chain: a run's manifests do not depend on
// who was forked from it.
func ForksDir(run string) string { return RunDir(run) + "/forks" }

// fork says that a run begins with a snapshot of another one.
type fork struct {
	Run string `json:"run"`
	// Snapshot is the snapshot's folder.
	Snapshot string `json:"snapshot"`
}

// KeepFor records that a run was forked, and begins with a snapshot: retention of the run that made it leaves it there.
func KeepFor(ctx context.Context, s Store, run string, snapshot SnapshotRef) error {
	rest, ok := strings.CutPrefix(snapshot.Dir, RunsDir+"/")
	segment, _, inRun := strings.Cut(rest, "/")
	if !ok || !inRun {
		return fmt.Errorf("keep the snapshot %s for run %q: it is no run's: %w", snapshot.Dir, run, ErrInvalid)
	}
	b, err := canon.Marshal(fork{Run: run, Snapshot: snapshot.Dir})
	if err != nil {
		return err
	}
	// A fork that is started again may find that the snapshot is gone, and begin with an earlier one: both are kept.
	name := EscapeSegment(run)
	if _, err := PutArtifact(ctx, s, RunsDir+"/"+segment+"/forks", name, "json", b); err != nil {
		return fmt.Errorf("keep the snapshot %s for run %q: %w", snapshot.Dir, run, err)
	}
	return nil
}

// KeptForForks are the folders of a run's snapshots that forks begin with. A fork that was removed keeps none.
func KeptForForks(ctx context.Context, s Store, run string) (map[string]bool, error) {
	out := map[string]bool{}
	for o, err := range s.List(ctx, ForksDir(run)+"/") {
		if err != nil {
			return nil, fmt.Errorf("list the forks of run %q: %w", run, err)
		}
		b, _, err := ReadFixed(ctx, s, o.Key, maxFixed)
		if err != nil {
			return nil, fmt.Errorf("read a fork of run %q: %w", run, err)
		}
		var f fork
		if json.Unmarshal(b, &f) != nil {
			continue // damage beside the chain ends no run: the fork rebuilds from batches
		}
		removed, err := ReadRemoved(ctx, s, RunDir(f.Run))
		if err != nil {
			return nil, err
		}
		if removed == nil {
			out[f.Snapshot] = true
		}
	}
	return out, nil
}
