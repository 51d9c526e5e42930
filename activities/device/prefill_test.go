package device

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Runs whose groups share the prefill of their first prompt: whole and in chunks, in pieces, with kept
// values, in blocks, in a search, and in an evaluation of several samples. Passes begin in the middle of a
// group. A state is rebuilt from the batches, and another worker samples the same.
func TestSharedPrompts(t *testing.T) {
	t.Parallel()
	play := func(edits ...string) *testRun {
		r := fresh(t, append([]string{
			`rollout.prefill="groups"`, "rollout.groups=4", "rollout.group_size=6", "rollout.pass_rows=4", "rollout.max_new_tokens=6",
			"evaluation.every=1", "evaluation.instances=3", "evaluation.samples=4", "iterations=2",
		}, edits...)...)
		r.iterate(t)
		r.iterate(t)
		return r
	}
	same := func(a, b *testRun) {
		t.Helper()
		for i := range a.commits {
			require.Equal(t, a.commits[i].Trajectories.Digest, b.commits[i].Trajectories.Digest)
			require.Equal(t, a.commits[i].StateAfter, b.commits[i].StateAfter)
			require.Equal(t, a.commits[i].Evaluations[0].Trajectories.Digest, b.commits[i].Evaluations[0].Trajectories.Digest)
		}
	}
	whole := play()
	rc := whole.context(t)
	require.Equal(t, 2, rc.Shapes(rc.Training, 1).SharedPrompts, "of 24 rows, 4 are in a pass")
	require.Zero(t, rc.Shapes(rc.Training, 2).SharedPrompts)
	require.Equal(t, 2, rc.Shapes(rc.Suites[0], 1).SharedPrompts)
	same(whole, play("rollout.chunk_tokens=2", "limits.generate_rows=8"))
	whole.rebuilt(t)

	// The rows sample what they sample with a prefill of their own.
	apart := play(`rollout.prefill="rows"`)
	want := apart.generated(t, apart.commits[0].Turns[:1])
	for i, row := range whole.generated(t, whole.commits[0].Turns[:1]) {
		require.Equal(t, want[i].SampledIDs, row.SampledIDs)
		require.InDeltaSlice(t, want[i].RolloutLogProbs, row.RolloutLogProbs, 1e-4)
	}

	kept := play("rollout.keep_values=true")
	same(kept, play("rollout.keep_values=true", "rollout.chunk_tokens=3"))
	kept.rebuilt(t)
	blocks := play("rollout.block_rows=8")
	same(blocks, play("rollout.block_rows=8", "rollout.chunk_tokens=1"))
	blocks.rebuilt(t)
	play(`rollout.search="beam"`, "rollout.candidates=2")

	// The result of an evaluation says what its bits depend on.
	for r, prompts := range map[*testRun]int{whole: 2, apart: 0, blocks: 2} {
		require.Equal(t, prompts, evaluated(t, r).SharedPrompts)
	}
}
