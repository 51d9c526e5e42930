package iteration

import (
	"maps"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// State is how far an iteration is: a run carries it across continue-as-new. A step
// whose result is set is done, on whatever worker the run continues.
type State struct {
	Settings    spec.Settings                   `json:"settings"` // fixed when the iteration begins
	Baseline    *Measured                       `json:"baseline,omitempty"`
	Published   *activities.Published           `json:"published,omitempty"` // if blocks of the rollout go to other workers, too
	Turns       []store.TurnRefs                `json:"turns,omitempty"`     // of the rollout's rounds that are done
	Round       int                             `json:"round,omitempty"`     // the running one
	Rollout     Rolled                          `json:"rollout"`
	RolledOutBy *store.VersionRef               `json:"rolled_out_by,omitempty"` // the version that sampled Rollout; nil is the iteration's
	Next        *Next                           `json:"next,omitempty"`          // the next iteration's rollout, if it is made before the update
	Shared      *store.RolloutRef               `json:"shared,omitempty"`        // if several iterations learn from the rollout
	Everything  *activities.SelectResult        `json:"everything,omitempty"`    // all groups, if they are scored before the selection
	Selected    *activities.SelectResult        `json:"selected,omitempty"`
	Scoring     []store.Ref                     `json:"scoring,omitempty"` // pieces of Score, until it is done
	Scored      *activities.ScoreResult         `json:"scored,omitempty"`
	Diagnosing  []store.Ref                     `json:"diagnosing,omitempty"` // pieces of Diagnose, until it is done
	Diagnosed   bool                            `json:"diagnosed,omitempty"`
	Credited    *activities.CreditResult        `json:"credited,omitempty"`
	Passes      []Pass                          `json:"passes,omitempty"`   // those that are done, until the last one is
	Passing     *Passing                        `json:"passing,omitempty"`  // the running one, after the first
	Updating    *activities.BegunUpdate         `json:"updating,omitempty"` // until it is updated
	Updated     *activities.UpdateResult        `json:"updated,omitempty"`
	Storing     *activities.BegunSnapshot       `json:"storing,omitempty"` // until the snapshot is stored
	Snapshot    *store.SnapshotRef              `json:"snapshot,omitempty"`
	Final       *Measured                       `json:"final,omitempty"`
	Evaluations []store.EvaluationRef           `json:"evaluations,omitempty"`
	Metrics     activities.Metrics              `json:"metrics"`
	Detected    *activities.Detected            `json:"detected,omitempty"`
	Timings     map[string]activities.Telemetry `json:"timings"`
	Lost        int                             `json:"lost"` // sessions lost in the iteration
}

// Rolled is a rollout's progress: the turns that are done, and the generate table of the
// running turn, or the pieces of it so far, or its blocks, with the answers of foreign environments.
type Rolled struct {
	Turns    []store.TurnRefs `json:"turns,omitempty"`
	Pieces   []store.Ref      `json:"pieces,omitempty"`
	Blocks   []store.Ref      `json:"blocks,omitempty"` // of the running turn; one that is not done has no key
	Generate *store.Ref       `json:"generate,omitempty"`
	Opening  *store.Ref       `json:"opening,omitempty"` // of foreign environments, until the first turn is done
	Answers  *store.Ref       `json:"answers,omitempty"` // of foreign environments, in the running turn
	Calls    *store.Ref       `json:"calls,omitempty"`   // of tools, in the running turn
	// Taken are the calls of agents that were taken and answered, Running those that are not answered yet. Waits counts how often
	// none came in time.
	Taken   []activities.Taken `json:"taken,omitempty"`
	Running *activities.Taken  `json:"running,omitempty"`
	Playing bool               `json:"playing,omitempty"` // episodes of agents go on after Running
	Waits   int                `json:"waits,omitempty"`
	Alive   int                `json:"alive"`          // episodes that continue
	Over    bool               `json:"over,omitempty"` // no turn follows, and the last choice of a search does
	Done    bool               `json:"done"`
	// Wave is the running one, from 0. It has Before turns less than are recorded: those of the waves
	// before, from the turn on with which it began.
	Wave   int `json:"wave,omitempty"`
	Before int `json:"before,omitempty"`
}

// Next is the progress of the next iteration's rollout, with that iteration's settings.
type Next struct {
	Settings spec.Settings `json:"settings"`
	Rollout  Rolled        `json:"rollout"`
}

// turn is the running turn of the episodes, from 1.
func (r *Rolled) turn() int { return len(r.Turns) - r.Before + 1 }

// Measured is an evaluation's progress: how many suites are done, and the running one.
type Measured struct {
	Suites int    `json:"suites"`
	Rolled Rolled `json:"rolled"`
}

// covers reports whether all suites are measured.
func (m *Measured) covers(suites []activities.PlanSuite) bool {
	return m != nil && m.Suites >= len(suites)
}

// Begin is the state of an iteration that begins with the given settings. shared is the
// rollout that it learns from; nil if it rolls out itself.
func Begin(settings spec.Settings, shared *activities.Rolled) *State {
	s := &State{Settings: settings, Metrics: activities.Metrics{}, Timings: map[string]activities.Telemetry{}}
	if shared == nil {
		return s
	}
	s.Shared, s.Rollout.Done = &shared.RolloutRef, true
	s.Selected = &activities.SelectResult{Trajectories: shared.Trajectories, Tables: shared.Tables}
	if shared.Scores != nil {
		s.Scored = &activities.ScoreResult{Scores: *shared.Scores}
	}
	return s
}

// BeginAfter is the state of an iteration after head, nil for none, with the settings of now: it
// rolls out, or it continues learning from head's rollout. Then it has the settings by which that
// was rolled out, rewarded and selected. If head has made its rollout, it has the settings of then.
func BeginAfter(head *activities.Head, now spec.Settings) *State {
	if head != nil && head.NextRollout != nil {
		s := Begin(head.NextRollout.Settings, nil)
		s.Rollout, s.RolledOutBy = Rolled{Turns: slices.Clone(head.NextRollout.Turns), Done: true}, &head.NextRollout.By
		return s
	}
	if head == nil || head.Rolled == nil {
		return Begin(now, nil)
	}
	now.Rollout, now.Selection, now.Weights = head.Settings.Rollout, head.Settings.Selection, head.Settings.Weights
	return Begin(now, head.Rolled)
}

// Record adds what an attempt of a step measured; steps of several turns add up.
func (s *State) Record(step string, t activities.Telemetry) {
	s.Timings[step] = s.Timings[step].Plus(t)
}

// add moves a step's metrics to the iteration's: kept twice they would be carried
// twice.
func (s *State) add(m *activities.Metrics) {
	maps.Copy(s.Metrics, *m)
	*m = nil
}

// rows is how many trajectories the iteration learns from.
func (s *State) rows() int {
	if s.Shared != nil {
		return s.Shared.Rows[s.Shared.Update]
	}
	return s.Selected.Rows
}

// scores are the selected rows' old log-probs; nil if none was selected.
func (s *State) scores() *store.Ref {
	if s.Scored == nil {
		return nil
	}
	return &s.Scored.Scores
}

// turns are the turns of all rounds.
func (s *State) turns() []store.TurnRefs {
	return append(s.Turns[:len(s.Turns):len(s.Turns)], s.Rollout.Turns...)
}

// stops reports whether the detectors end the run after the iteration, which then has a
// snapshot. It counts only once the iteration is committed: an iteration that is
// abandoned before stops nothing.
func (s *State) stops() bool { return s.Detected != nil && s.Detected.Decision.Action == collapse.Stop }

// leaves reports whether the detectors end the run after the iteration, or go back.
func (s *State) leaves() bool {
	return s.stops() || s.Detected != nil && s.Detected.Decision.Action == collapse.RollBack
}

// evaluation is the evaluation of a version on a suite; nil while it is not measured.
func (s *State) evaluation(version int, suite string) *store.EvaluationRef {
	for i := range s.Evaluations {
		if e := &s.Evaluations[i]; e.Version == version && e.Suite == suite {
			return e
		}
	}
	return nil
}
