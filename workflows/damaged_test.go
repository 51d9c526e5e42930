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
		key := store.IterationDir(testRun, 0, of) + "/turn-1.generate.0123456789abcdef.parquet"
		damaged := func(kind, key string) error {
			return temporal.NewNonRetryableApplicationError("get bucket/"+key+": not what its digest says", kind, nil)
		}
		t.Run(fmt.Sprintf("%s %d", name, n), func(t *testing.T) {
			for _, kind := range []string{activities.KindArtifactAltered, activities.KindArtifactMissing} {
				s := everything()
				s.attributes = true
				s.errors = map[string][]error{name: append(make([]error, n-1), damaged(kind, key))}
				p := newPlay(t, s)
				p.train(nil)
				p.result()
				require.Equal(t, want, manifests(s.commits))
				require.Equal(t, p.opened, p.closed)
				require.Zero(t, p.status().LostDevices)
				warning := fmt.Sprintf("iteration %d is done again, since an artifact of it was damaged or gone: get bucket/%s", of, key)
				require.Len(t, p.status().Warnings, 1)
				require.Contains(t, p.status().Warnings[0], warning)
			}
		})
	}
	for name, errs := range map[string][]error{
		"twice":     {damagedIn(0), damagedIn(0)},
		"committed": append(make([]error, places["Score"]-1), damagedIn(0)),
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

func damagedIn(iteration int) error {
	return temporal.NewNonRetryableApplicationError("get bucket/"+store.IterationDir(testRun, 0, iteration)+"/turn-1.x.parquet: not what its digest says",
		activities.KindArtifactAltered, nil)
}
