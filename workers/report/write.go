package report

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/report/episodes"
)

// Sink takes the files of a report: the name is relative and '/'-separated, as
// "data/index.js". It is called by one goroutine at a time, in no fixed order but
// that index.html comes last; an error of its own ends the report.
type Sink func(name string, body []byte) error

// IntoFolder writes a report's files below a folder, and none outside of it.
func IntoFolder(dir string) Sink {
	return func(name string, body []byte) error {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("write the report's file %q: the name leads out of %s", name, dir)
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		if err := os.WriteFile(path, body, 0o644); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		return nil
	}
}

// Summary is what a report shows, in numbers.
type Summary struct {
	// Iterations and Branches are of the run, or of all runs of a sweep together.
	Iterations, Branches int
	// Episodes can be looked at, of Rollouts rollouts and evaluations.
	Episodes, Rollouts int
	// Files and Bytes were written.
	Files int
	Bytes int64
	// Missing is listed on the page.
	Missing []Missing
}

// readers is the most rollouts that are read at once: each reader has a tokenizer.
const readers = 4

// Write reads a run from its store and writes its report. Errors: as of [Load], or
// the sink's.
func Write(ctx context.Context, s store.Store, run string, sink Sink) (Summary, error) {
	r, err := Load(ctx, s, run)
	if err != nil {
		return Summary{}, err
	}
	w := &writer{sink: sink}
	if err := w.run(ctx, s, r); err != nil {
		return Summary{}, fmt.Errorf("report of run %q: %w", run, err)
	}
	w.summary.Missing = r.Missing
	return w.summary, nil
}

// writer counts what it writes.
type writer struct {
	mu      sync.Mutex
	sink    Sink
	summary Summary
}

func (w *writer) put(f file) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.summary.Files++
	w.summary.Bytes += int64(len(f.body))
	return w.sink(f.name, f.body)
}

func (w *writer) run(ctx context.Context, s store.Store, r *Run) error {
	all, suites := r.rollouts()
	missing, err := w.rollouts(ctx, s, all)
	if err != nil {
		return err
	}
	r.Missing = append(r.Missing, unreadable(missing)...)
	x := index{ID: "index", Suites: suites, Rollouts: []rolloutPage{}}
	x.number(all)
	for _, rollout := range x.Rollouts {
		w.summary.Episodes += len(rollout.Flags)
	}
	w.summary.Rollouts = len(x.Rollouts)
	body, err := json.Marshal(x)
	if err != nil {
		return fmt.Errorf("encode the index: %w", err)
	}
	if err := w.put(file{name: "data/index.js", body: call(body)}); err != nil {
		return err
	}
	w.count(r)
	return w.page(page{Kind: "run", Title: r.ID, Run: runPageOf(r)})
}

// count adds a run's iterations and branches to the summary.
func (w *writer) count(r *Run) {
	w.summary.Branches += len(r.Branches)
	for _, b := range r.Branches {
		w.summary.Iterations += len(b.Iterations)
	}
}

// rollouts writes the trajectories, several rollouts at once.
func (w *writer) rollouts(ctx context.Context, s store.Store, all []rollout) ([][]episodes.Missing, error) {
	missing := make([][]episodes.Missing, len(all))
	next := make(chan int)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(next)
		for i := range all {
			select {
			case next <- i:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range min(readers, runtime.GOMAXPROCS(0)) {
		group.Go(func() error {
			reader := episodes.NewReader(s)
			for i := range next {
				read, err := reader.Read(ctx, all[i].source)
				if err != nil {
					return fmt.Errorf("trajectories %s: %w", all[i].page.ID, err)
				}
				missing[i] = read.Missing
				all[i].describe(read.Episodes)
				files, first, err := parts(all[i].page.ID, read.Episodes)
				if err != nil {
					return fmt.Errorf("encode trajectories %s: %w", all[i].page.ID, err)
				}
				all[i].page.First = first
				for _, f := range files {
					if err := w.put(f); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	return missing, group.Wait()
}

// page writes index.html.
func (w *writer) page(p page) error {
	body, err := p.html()
	if err != nil {
		return err
	}
	return w.put(file{name: "index.html", body: body})
}
