package device

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A run that keeps values between turns has the same bits where they are dropped between any two
// turns, as by another worker, on two devices: all weights trained with a critic, and adapters
// in bfloat16, sampled in pieces and in chunks. The memory is freed when a rollout is over.
func TestKeepValues(t *testing.T) {
	t.Parallel()
	engines := enginesOf(t, 1, 2)
	edits := []string{
		`environment.name="` + walkName + `"`, "rollout.turns=3", "rollout.group_size=4", "rollout.pass_rows=2", "evaluation.every=0", "rollout.keep_values=true",
	}
	for name, document := range map[string]json.RawMessage{
		"full":     tinySpec(t, append(edits, `credit.algorithm="gae"`, "update.micro_batch=2")...),
		"adapters": adapted(t, append(edits, `policy.compute_dtype="bfloat16"`, "rollout.chunk_tokens=3", "limits.generate_rows=4")...),
	} {
		t.Run(name, func(t *testing.T) {
			runs := func(drop bool, n int) *testRun {
				r := resolved(t, name, document)
				e, most := engines[n], int64(0)
				e.Watch = func(context.Context) func() {
					if drop {
						e.dropKept()
					}
					return func() { most = max(most, e.keptBytes()) }
				}
				r.moveTo(t, e)
				r.iterate(t)
				e.Watch = nil
				require.Positive(t, most)
				require.Zero(t, e.keptBytes(), "the rollout is over")
				return r
			}
			want := runs(false, 1)
			got := runs(true, 2)
			require.Equal(t, want.commits[0].StateAfter, got.commits[0].StateAfter)
			require.Equal(t, want.head, got.head)
			require.Equal(t, want.objects(t), got.objects(t))
		})
	}
}

// keptBytes is the device memory of what is kept between turns.
func (e *Engine) keptBytes() (n int64) {
	if e.kept != nil {
		for _, piece := range e.kept.pieces {
			n += piece.values.Bytes()
		}
	}
	return n
}
