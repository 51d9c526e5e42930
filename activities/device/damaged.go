package device

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// folderOf is where a snapshot's files are.
func folderOf(s *store.SnapshotRef) string {
	for _, name := range slices.Sorted(maps.Keys(s.Files)) {
		return path.Dir(s.Files[name].Key)
	}
	return ""
}

// badReads is how often a snapshot has to be unreadable to count as damaged: one bad read may be the network's.
const badReads = 2

// isDamaged reports whether this worker could not read a snapshot.
func (d *Device) isDamaged(s *store.SnapshotRef) bool {
	return d.Engine.damaged[folderOf(s)] >= badReads
}

// passOver reports whether err says that the log's snapshot could not be read, and notes it for as long as the worker lives. It is
// read again, and then counts as removed: the policy is rebuilt from the one before.
func (d *Device) passOver(log updateLog, err error) bool {
	if log.snapshot == nil || !errors.Is(err, store.ErrAltered) && !errors.Is(err, store.ErrNotFound) {
		return false
	}
	folder := folderOf(log.snapshot)
	if !strings.Contains(err.Error(), folder) {
		return false // the base model, or another object
	}
	if d.Engine.damaged == nil {
		d.Engine.damaged = map[string]int{}
	}
	d.Engine.damaged[folder]++
	return true
}

// fittingLog is log, of updates that these programs may apply again.
func (d *Device) fittingLog(ctx context.Context, in activities.RestoreInput, programs map[string]string) (string, updateLog, error) {
	goal, log, err := d.log(ctx, in)
	if err != nil {
		return "", updateLog{}, err
	}
	return goal, log, log.fit(in, programs)
}
