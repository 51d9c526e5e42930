package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/report/episodes"
)

// dataset writes the trajectories of several iterations: a file each into the folder w.out or, without one, as JSON lines
// to out. A file is there whole or not at all.
func (w wantedTrajectories) dataset(ctx context.Context, s store.Store, run string, out, errOut io.Writer) error {
	first, last, err := iterationsOf(w.iterations)
	if err != nil {
		return err
	}
	found, err := w.manifests(ctx, s, run, first, last)
	if err != nil {
		return err
	}
	if len(found) == 0 && w.suite != "" {
		return fmt.Errorf("trajectories: no evaluation on %q was made in iterations %s%s: %w", w.suite, w.iterations, evaluatedIn(ctx, s, run), store.ErrNotFound)
	}
	if w.out != "" {
		if err := os.MkdirAll(w.out, 0o755); err != nil {
			return fmt.Errorf("make the dataset's folder: %w", err)
		}
	}
	reader := episodes.NewReader(s)
	said := time.Now()
	for i, m := range found {
		body, err := w.encode(ctx, s, reader, run, m, errOut)
		if err != nil {
			return err
		}
		if w.out == "" {
			_, err = out.Write(body)
		} else {
			err = renameio.WriteFile(filepath.Join(w.out, fmt.Sprintf("%06d.%s", m.Iteration, w.format)), body, 0o644)
		}
		if err != nil {
			return fmt.Errorf("write the trajectories of iteration %d: %w", m.Iteration, err)
		}
		if time.Since(said) > 2*time.Second {
			fmt.Fprintf(errOut, "%d of %d iterations\n", i+1, len(found))
			said = time.Now()
		}
	}
	if w.out != "" {
		fmt.Fprintf(errOut, "%d iterations of run %s in %s\n", len(found), run, w.out)
	}
	return nil
}

// manifests are those of the iterations from first to last, in their order: on the way to the newest version, or of w.branch.
// With a suite they are those that evaluated it.
func (w wantedTrajectories) manifests(ctx context.Context, s store.Store, run string, first, last int) ([]*store.Manifest, error) {
	read := store.Head
	if w.branch >= 0 {
		read = func(ctx context.Context, s store.Store, run string) (store.Link, error) {
			return store.HeadOf(ctx, s, run, w.branch)
		}
	}
	head, err := read(ctx, s, run)
	if err != nil {
		return nil, err
	}
	if first > head.Manifest.Iteration {
		return nil, notCommitted(run, first, head.Manifest.Iteration)
	}
	var found []*store.Manifest
	for link, err := range store.Walk(ctx, s, head.Ref) {
		if err != nil {
			return nil, err
		}
		m := link.Manifest
		if m.Iteration < first || w.branch >= 0 && m.Branch != w.branch {
			break
		}
		evaluated := slices.ContainsFunc(m.Evaluations, func(e store.EvaluationRef) bool { return e.Suite == w.suite })
		if m.Iteration <= last && (w.suite == "" || evaluated) {
			found = append(found, m)
		}
	}
	slices.Reverse(found)
	return found, nil
}

// iterationsOf reads a range of iterations: all, FIRST-LAST, or FIRST- up to the newest.
func iterationsOf(text string) (first, last int, err error) {
	const newest = 1<<31 - 1
	if text == "all" {
		return 0, newest, nil
	}
	low, high, ok := strings.Cut(text, "-")
	a, errLow := strconv.ParseUint(low, 10, 31)
	b, errHigh := uint64(newest), error(nil)
	if high != "" {
		b, errHigh = strconv.ParseUint(high, 10, 31)
	}
	if !ok || errLow != nil || errHigh != nil || b < a {
		return 0, 0, fmt.Errorf("trajectories: --iterations %q: allowed: all, or a range as 0-79 or 10-", text)
	}
	return int(a), int(b), nil
}
