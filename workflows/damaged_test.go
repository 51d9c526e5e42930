package workflows

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// Whichever step finds an artifact of its iteration damaged or gone, the iteration is done again, once: the run commits what an
// undisturbed one commits, and warns. If that does not help, or the artifact is of a committed iteration, the run ends.
func TestDamagedAtEveryPlace(t *testing.T) {
	s := everything()
	p := newPlay(t, s)
	p.train(nil)
	p.result()
	want, order := manifests(s.commits), p.order
	places, number := map[string]int{}, 0
	for _, name := range order {
		places[name]++
		n, of := places[name], number
		if name == "Commit" {
			number++
		}
		if places["Step"] == 0 {
			continue // nothing is stored of an iteration
		}
		t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
			for _, kind := range []string{activities.KindArtifactAltered, activities.KindArtifactMissing} {
				s := everything()
				s.attributes = true
				s.errors = map[string][]error{name: append(make([]error, n-1), damagedIn(of, kind))}
				p := newPlay(t, s)
				p.train(nil)
				p.result()
				require.Equal(t, want, manifests(s.commits))
				require.Equal(t, p.opened, p.closed)
				require.Zero(t, p.status().LostDevices)
				warning := fmt.Sprintf("iteration %d is done again, since an artifact of it was damaged or gone: get bucket/%s", of, damagedKey(of))
				require.Len(t, p.status().Warnings, 1)
				require.Contains(t, p.status().Warnings[0], warning)
			}
		})
	}
	for name, errs := range map[string][]error{
		"twice":     {damagedIn(0, activities.KindArtifactAltered), damagedIn(0, activities.KindArtifactAltered)},
		"committed": append(make([]error, places["Score"]-1), damagedIn(0, activities.KindArtifactAltered)),
	} {
		t.Run(name, func(t *testing.T) {
			s := everything()
			s.errors = map[string][]error{"Score": errs}
			p := newPlay(t, s)
			p.train(nil)
			require.ErrorContains(t, p.GetWorkflowError(), "not what its digest says")
		})
	}
}

func damagedKey(iteration int) string {
	return store.IterationDir(testRun, 0, iteration) + "/turn-1.generate.0123456789abcdef.parquet"
}

// damagedIn is what a step says that finds an artifact of an iteration damaged or gone.
func damagedIn(iteration int, kind string) error {
	return temporal.NewNonRetryableApplicationError("get bucket/"+damagedKey(iteration)+": not what its digest says", kind, nil)
}
