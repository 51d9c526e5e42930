package workflows

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities"
)

// rebuilding is how long the run's device took for the parts of rebuilding a policy, as its
// steps have reported last; 0: not known.
type rebuilding struct {
	// Load is the seconds of loading a stored version.
	Load float64 `json:"load,omitempty"`
	// Update is the seconds of one update, or of applying one again.
	Update float64 `json:"update,omitempty"`
}

// restored notes what a restore took, with all its calls.
func (r *rebuilding) restored(took activities.Telemetry) {
	if took.LoadSeconds > 0 {
		r.Load = took.LoadSeconds
	}
	if took.Recomputed > 0 {
		r.Update = took.RecomputeSeconds / float64(took.Recomputed)
	}
}

// updated notes what an iteration's update took, if there was one: each of its passes so much.
func (r *rebuilding) updated(took activities.Telemetry, passes int) {
	if seconds := took.Seconds - took.CompileSeconds; seconds > 0 {
		r.Update = seconds / float64(max(passes, 1))
	}
}

// atRisk is how many updates would be applied again if the device died now.
func (t *train) atRisk() int {
	updates := t.Next - t.Snapshot
	if t.Head != nil {
		updates += t.Head.Passes
	}
	return updates
}

// rebuildSeconds estimates how long rebuilding the policy would take then, once its programs
// are there; 0 while the device has not loaded a version.
func (t *train) rebuildSeconds() float64 {
	if t.Rebuilding.Load == 0 {
		return 0
	}
	return t.Rebuilding.Load + float64(t.atRisk())*t.Rebuilding.Update
}

// riskText says what a kill would cost.
func (t *train) riskText() string {
	if s := t.rebuildSeconds(); s > 0 {
		return fmt.Sprintf("%d, about %s to load and apply again", t.atRisk(), span(s))
	}
	return fmt.Sprint(t.atRisk())
}
