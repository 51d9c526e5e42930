package iterations

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/infra/store"
)

// streams is how many manifests are read at once.
const streams = 8

// Load reads every committed manifest of a run, by branch and then by iteration.
// Iterations that were begun and not committed are left out. A manifest that is damaged
// is an error ([store.ErrInvalid]), and so is a run without any ([store.ErrNotFound]).
func Load(ctx context.Context, s store.Store, run string) ([]store.Link, error) {
	branches, err := store.Branches(ctx, s, run)
	if err != nil {
		return nil, fmt.Errorf("list the branches of run %q: %w", run, err)
	}
	var links []store.Link
	for _, branch := range branches {
		of, err := loadBranch(ctx, s, run, branch)
		if err != nil {
			return nil, fmt.Errorf("read branch %d of run %q: %w", branch, run, err)
		}
		links = append(links, of...)
	}
	if len(links) == 0 {
		return nil, &store.Error{
			Op: "read", Where: s.Location(store.RunDir(run)), Kind: store.ErrNotFound,
			Detail: "no iteration is committed", Hint: "check the run's id and the store's prefix; or the run has not committed yet: reprise watch " + run,
		}
	}
	return links, nil
}

func loadBranch(ctx context.Context, s store.Store, run string, branch int) ([]store.Link, error) {
	iterations, err := store.Iterations(ctx, s, run, branch)
	if err != nil {
		return nil, err
	}
	read := make([]store.Link, len(iterations))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(streams)
	for i, n := range iterations {
		group.Go(func() error {
			m, ref, err := store.ReadManifestAt(ctx, s, run, branch, n)
			if errors.Is(err, store.ErrNotFound) {
				return nil // begun, or missing: then the next one shows it
			}
			read[i] = store.Link{Ref: ref, Manifest: m}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var links []store.Link
	for _, link := range read {
		if link.Manifest != nil {
			links = append(links, link)
		}
	}
	return links, nil
}
