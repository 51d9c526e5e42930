package report

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/infra/store"
)

// LinkStored gives the trials the pages that host workers have written of their runs,
// as seen from the sweep's page in the same store ([store.SweepReportDir]).
func (s *Sweep) LinkStored(ctx context.Context, in store.Store) error {
	up := strings.Repeat("../", 1+strings.Count(store.SweepReportDir(s.ID), "/"))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(streams)
	for i := range s.Trials {
		t := &s.Trials[i]
		if t.Run == nil {
			continue
		}
		group.Go(func() error {
			key := store.ReportDir(t.Run.ID) + "/index.html"
			switch _, err := in.Stat(ctx, key); {
			case errors.Is(err, store.ErrNotFound):
				return nil
			case err != nil:
				return fmt.Errorf("look for the pages of sweep %q: %w", s.ID, err)
			}
			t.Page = up + key
			return nil
		})
	}
	return group.Wait()
}

// TrialDir is the folder of a trial's report beside its sweep's page:
// "trials/LABEL", the label as one safe segment.
func TrialDir(label string) string { return path.Join("trials", store.EscapeSegment(label)) }

// href is a link to a file by its path from the page. Whatever the path is, the link
// stays below the page's own scheme and host: each segment is percent-encoded, and the
// first one is a dot or two.
func href(to string) string {
	segments := strings.Split(to, "/")
	for i, segment := range segments {
		segments[i] = url.PathEscape(segment)
	}
	if segments[0] != ".." {
		segments = append([]string{"."}, segments...)
	}
	return strings.Join(segments, "/")
}
