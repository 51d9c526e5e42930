package host

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func TestExpired(t *testing.T) {
	versions := func(of []*store.SnapshotRef) (out []int) {
		for _, s := range of {
			out = append(out, s.Version)
		}
		return out
	}
	older := []*store.SnapshotRef{{Version: 16}, {Version: 12}, {Version: 8}, {Version: 4}}
	plain := spec.Train{Collapse: collapse.Defaults()}
	back := plain
	back.Collapse.OnDetection = collapse.RollBack
	reach := back.Collapse.Reach(0)
	require.Equal(t, 10, reach, "two rows of five iterations")
	for _, c := range []struct {
		train spec.Train
		keep  int
		want  []int
	}{
		{plain, 1, []int{16, 12, 8, 4}}, {plain, 2, []int{12, 8, 4}}, {plain, 5, nil}, {plain, 9, nil},
		{back, 1, []int{4}}, // version 10 may be gone back to, and 8 is the newest at or before it
		{back, 4, []int{4}}, {back, 5, nil},
	} {
		c.train.Snapshot.Retain = c.keep
		require.Equal(t, c.want, versions(expired(c.train, 20, older)), fmt.Sprint(c.keep))
	}
}
