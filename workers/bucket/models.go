package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// modelsOf are the folders under models/ that the given runs need and no other run or sweep of the bucket. A run that has
// committed nothing may need any, so then there are none.
func modelsOf(ctx context.Context, s store.Store, of who) ([]string, error) {
	mine, err := modelsNamed(ctx, s, func(segment string) bool { return of.runs[segment] })
	if err != nil || len(mine.dirs) == 0 {
		return nil, err
	}
	others, err := modelsNamed(ctx, s, func(segment string) bool { return !of.runs[segment] })
	if err != nil || others.unknown {
		return nil, err
	}
	for segment, err := range s.Folders(ctx, topSweeps+"/") {
		if err != nil {
			return nil, err
		}
		if segment == of.sweep {
			continue
		}
		definitions, err := definitionsOf(ctx, s, segment)
		if err != nil {
			return nil, err
		}
		for _, d := range definitions {
			for _, t := range d.Trials {
				others.origin(t.Spec)
			}
		}
	}
	var out []string
	for dir := range mine.dirs {
		if !others.dirs[dir] {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return out, nil
}

// modelNames are the models that runs name.
type modelNames struct {
	dirs    map[string]bool
	unknown bool // one has committed nothing yet
}

// origin notes the models that a trial's spec begins with, learns from and is judged by.
func (m *modelNames) origin(text []byte) {
	var t struct {
		Policy  spec.Policy   `json:"policy"`
		Teacher spec.Frozen   `json:"teacher"`
		Rewards []spec.Reward `json:"rewards"`
	}
	if len(text) == 0 || json.Unmarshal(text, &t) != nil {
		return
	}
	origins := []func() (spec.Origin, error){t.Policy.Origin, t.Teacher.Origin}
	if judge := (spec.Train{Rewards: t.Rewards}).JudgeModel(); judge != nil {
		origins = append(origins, judge.Origin)
	}
	for _, of := range origins {
		if o, err := of(); err == nil && o.Kind == spec.OriginModel {
			m.dirs[store.ModelPrefix+o.Name] = true
		}
	}
}

// modelsNamed reads the first manifest of each wanted run: a run has one base model, and at most one teacher and one judge.
func modelsNamed(ctx context.Context, s store.Store, wanted func(segment string) bool) (modelNames, error) {
	out := modelNames{dirs: map[string]bool{}}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for segment, err := range s.Folders(ctx, topRuns+"/") {
		if err != nil {
			return out, errors.Join(err, group.Wait())
		}
		if !wanted(segment) {
			continue
		}
		group.Go(func() error {
			dir := topRuns + "/" + segment
			m, err := firstOf(ctx, s, dir)
			if err != nil && !errors.Is(err, store.ErrInvalid) {
				return fmt.Errorf("base model of run %q: %w", shown(segment), err)
			}
			var removed *store.Removed
			if m == nil {
				if removed, err = store.ReadRemoved(ctx, s, dir); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case m != nil:
				for _, of := range []*store.ModelRef{&m.Base, m.Teacher, m.Judge} {
					if of == nil {
						continue
					}
					out.dirs[of.Dir] = true
					for _, ref := range of.Files { // adapters' files are beside those of the model under them
						out.dirs[store.ModelPrefix+placeOf(ref.Key).segment] = true
					}
				}
			case removed == nil:
				out.unknown = true
			}
			return nil
		})
	}
	return out, group.Wait()
}
