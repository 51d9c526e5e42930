package workflows

import (
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// While a run works, its details say where the Web UI shows what is tried again; one that rests or has ended tries nothing.
func TestDetailsSayWhereAttemptsAre(t *testing.T) {
	r := &train{phase: "iteration 3 · commit"}
	require.Contains(t, r.details(), "**iteration 3 · commit**\n\n"+PendingHint+"\n\n")
	for _, rest := range []*train{{phase: "done"}, {phase: "ended: no"}, {phase: "paused", resting: true}} {
		require.NotContains(t, rest.details(), PendingHint)
	}
}

// The memo names the manifest of each commit, so that reprise verify knows which is the newest though no worker answers.
func TestMemoNamesTheNewestManifest(t *testing.T) {
	s := &stage{plan: testPlan()}
	p := newPlay(t, s)
	var named []store.Ref
	p.OnUpsertMemo(mock.MatchedBy(func(fields map[string]any) bool {
		if ref, ok := fields[MemoManifest]; ok {
			named = append(named, ref.(store.Ref))
		}
		return true
	})).Return(nil)
	p.train(nil)
	r := p.result()
	require.Len(t, s.commits, 3)
	require.Len(t, named, 3)
	require.Equal(t, *r.Manifest, named[2])
}
