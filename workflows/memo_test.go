package workflows

import (
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

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
