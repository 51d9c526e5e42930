package device

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
)

// enginesOf are workers with numbers of devices.
func enginesOf(t *testing.T, counts ...int) map[int]*Engine {
	t.Helper()
	out := map[int]*Engine{}
	for _, n := range counts {
		options := compiling
		options.VirtualDevices = n
		out[n] = opened(t, options)
		require.Equal(t, n, out[n].device.Count())
	}
	return out
}

// moveTo has another worker continue the run.
func (r *testRun) moveTo(t *testing.T, e *Engine) {
	t.Helper()
	r.Device = &Device{Store: r.store, Engine: e}
	restored := r.restore(t, activities.RestoreInput{})
	r.state, r.programs, r.frozen = restored.State, restored.Programs, restored.Frozen
}

// A run has the same bytes on one, two and four devices, and where their number changes between
// iterations: all weights trained, sampled in blocks, and adapters in shards and widths, with a critic and a reference. A worker with another
// number of devices applies the updates before again.
func TestDevices(t *testing.T) {
	t.Parallel()
	engines := enginesOf(t, 1, 2, 4)
	for _, e := range engines {
		require.Equal(t, engines[1].Info(), e.Info(), "the fingerprint does not name the devices")
	}
	edits := []string{
		`environment.name="` + walkName + `"`, "rollout.turns=2", "rollout.group_size=4", "rollout.pass_rows=2", "evaluation.every=0",
	}
	for name, document := range map[string]json.RawMessage{
		"full":   tinySpec(t, append(edits, `credit.algorithm="gae"`, `update.kl_in="loss"`, "update.kl_coefficient=0.1", "update.micro_batch=2", "rollout.block_rows=4")...),
		"shards": adapted(t, append(edits, "update.micro_batch=1", "update.shards=3", "update.widths=3", "update.minibatch=5", "limits.update_rows=3")...),
	} {
		t.Run(name, func(t *testing.T) {
			runs := func(counts ...int) *testRun {
				r := resolved(t, name, document)
				for _, n := range counts {
					r.moveTo(t, engines[n])
					r.iterate(t)
				}
				return r
			}
			want := runs(1, 1, 1)
			for _, counts := range [][]int{{2, 2, 2}, {4, 1, 2}} {
				got := runs(counts...)
				require.Equal(t, want.commits[2].StateAfter, got.commits[2].StateAfter, "%v devices", counts)
				require.Equal(t, want.head, got.head, "%v devices", counts)
				require.Equal(t, want.objects(t), got.objects(t), "%v devices", counts)
			}
			for n, e := range engines {
				for k, worked := range e.device.Busy() {
					require.Positive(t, worked, "device %d of %d", k, n)
				}
			}
		})
	}
}

// sameOnDevices runs two iterations, on one device and with the first on two, and demands the same bytes. It gives the metrics of
// the last iteration.
func sameOnDevices(t *testing.T, document []byte) activities.Metrics {
	t.Helper()
	engines := enginesOf(t, 1, 2)
	var metrics activities.Metrics
	runs := func(counts ...int) *testRun {
		r := resolved(t, "devices", document)
		for _, n := range counts {
			r.moveTo(t, engines[n])
			metrics = r.iterate(t).Metrics
		}
		return r
	}
	want, got := runs(1, 1), runs(2, 1)
	require.Equal(t, want.head, got.head)
	require.Equal(t, want.objects(t), got.objects(t))
	return metrics
}
