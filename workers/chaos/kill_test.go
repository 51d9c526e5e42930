package chaos

import (
	"testing"
)

// TestChaosKills kills a worker in each kind of activity, the phases in turn.
// Each list is one run: every process dies of the next fault.
func TestChaosKills(t *testing.T) {
	want := reference(t)
	for _, c := range []struct {
		name    string
		starter bool // warm start was done before
		faults  []string
	}{
		{"first", false, []string{
			"Resolve/inside/1", "WarmStart/written/1", "Restore/inside/1", "Generate/begin/1", "Measure/written/1", "Commit/written/1",
		}},
		{"second", true, []string{
			"Step/written/2", "Select/inside/1", "Score/written/1", "Credit/inside/1", "Update/written/1", "Snapshot/inside/1",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLane(t, sharedStack(t))
			if c.starter {
				l.withStarter()
			}
			stop := l.keep(c.faults...)
			l.start(chaosRun, preset(t, "chaos", nil))
			l.completes(chaosRun)
			stop()
			l.verifies(chaosRun)
			same(t, want, reach(t, l.store, chaosRun))
		})
	}
}
