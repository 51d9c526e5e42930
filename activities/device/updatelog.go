package device

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// updateLog is the part of the write-ahead log after a stored state.
type updateLog struct {
	from     int                // version of the stored state
	snapshot *store.SnapshotRef // nil: the base model with zero moments
	updates  []logEntry         // of iterations from, from+1, …; an iteration has one, several or none
	programs map[string]string  // hashes recorded last; nil if nothing is committed under the run's spec
	frozen   string             // fingerprint of the base model below adapters, if one is recorded
}

// logEntry is a recorded update: enough to apply it again.
type logEntry struct {
	run           activities.Run // whose update it was
	programs      map[string]string
	branch        int
	iteration     int
	before, after string
	batch         store.Ref
	settings      spec.Settings
}

// input is what Update was called with.
func (u logEntry) input() activities.UpdateInput {
	return activities.UpdateInput{
		Policy: activities.Version{Run: u.run, Branch: u.branch, Version: u.iteration, State: u.before}, Batch: u.batch, Settings: u.settings,
	}
}

// log finds what the goal version is rebuilt from, and the goal's fingerprint.
func (d *Device) log(ctx context.Context, in activities.RestoreInput) (goal string, log updateLog, err error) {
	goal = in.Version.State
	if in.Head != nil {
		found, err := store.FindRebuild(ctx, d.Store, *in.Head, func(s *store.SnapshotRef) bool {
			return d.isDamaged(s) || d.Engine.nearer(in, s)
		})
		if err != nil {
			return "", log, err
		}
		if found.Head.Run == in.Version.Run.ID && (in.Evaluate || found.Head.Spec == in.Version.Run.Spec) {
			log.programs = found.Head.Programs
		}
		log.frozen = found.Head.Base.Frozen
		if log.snapshot = found.Snapshot; log.snapshot != nil {
			log.from = log.snapshot.Version
		}
		for _, link := range found.Again {
			m := link.Manifest
			e := logEntry{
				run: activities.Run{ID: m.Run, Spec: m.Spec, Base: in.Version.Run.Base}, programs: m.Programs,
				branch: m.Branch, iteration: m.Iteration, after: m.StateBefore,
			}
			if err := json.Unmarshal(m.Settings, &e.settings); err != nil {
				return "", log, fmt.Errorf("settings of iteration %d: %w", m.Iteration, err)
			}
			for _, u := range m.Updates() { // none if no row was selected: the state stayed
				e.before, e.after, e.batch = e.after, u.State, u.Batch
				log.updates = append(log.updates, e)
			}
		}
	}
	made := in.Passed
	if in.Pending != nil {
		made = append(made[:len(made):len(made)], *in.Pending)
	}
	for _, p := range made {
		log.updates = append(log.updates, logEntry{run: in.Version.Run, branch: in.Version.Branch, iteration: in.Version.Version,
			before: goal, after: p.State, batch: p.Batch, settings: p.Settings})
		goal = p.State
	}
	return goal, log, nil
}

// fit checks that this build's programs may continue: they are the programs recorded last, except at
// the fork point of a branch that adopts others; and those of every update of this run that
// would be applied again, which no other program may do.
func (l updateLog) fit(in activities.RestoreInput, present map[string]string) error {
	if !in.Adopt {
		if err := activities.SamePrograms(l.programs, present); err != nil {
			return err
		}
	}
	for _, u := range l.updates {
		if u.run.ID != in.Version.Run.ID || !in.Evaluate && u.run.Spec != in.Version.Run.Spec {
			continue // lend checks those of another run or of another description of the environment
		}
		if err := activities.SamePrograms(u.programs, present); err != nil {
			return fmt.Errorf("the update of iteration %d cannot be applied again: %w", u.iteration, err)
		}
	}
	return nil
}

// begunOf finds the update that is in memory in part: its place in the log, the log's length
// if it follows the version that is asked for, -1 if it is neither.
func (e *Engine) begunOf(in activities.RestoreInput, log updateLog) (int, error) {
	if e.begun == nil {
		return -1, nil
	}
	wanted := make([]activities.UpdateInput, 0, len(log.updates)+1)
	for _, u := range log.updates {
		wanted = append(wanted, u.input())
	}
	if u := in.Updating; u != nil {
		of := in.Version
		if n := len(in.Passed); n > 0 {
			of.State = in.Passed[n-1].State
		}
		wanted = append(wanted, activities.UpdateInput{Policy: of, Batch: u.Batch, Settings: u.Settings})
	}
	for at, u := range wanted {
		key, err := keyOf(u)
		if err != nil {
			return -1, err
		}
		if key == e.begun.key {
			return at, nil
		}
	}
	return -1, nil
}
