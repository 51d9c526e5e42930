package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/store"
)

// kind is what artifacts are called whose role in a manifest begins with role.
type kind struct{ role, what string }

// kinds are in the order in which what is missing of them is told.
var kinds = []kind{
	{"spec", "resolved spec"},
	{"base.files", "base model's files"},
	{"turns", "turn files"},
	{"trajectories", "trajectories"},
	{"scores", "scores"},
	{"batch", "batches"},
	{"snapshot.files", "snapshots' files"},
	{"evaluations", "evaluations' files"},
	{"artifacts", "further artifacts"},
}

// findMissing compares what the manifests name with what the bucket lists: nothing
// is read or hashed, which is verify's work.
func (r *Run) findMissing(ctx context.Context, s store.Store) error {
	there, prefix := map[string]bool{}, store.RunDir(r.ID)+"/"
	for o, err := range s.List(ctx, prefix) {
		if err != nil {
			return err
		}
		there[o.Key] = true
	}
	removed, outside := map[string]bool{}, map[string]bool{}
	for _, it := range r.all() {
		for _, t := range it.Manifest.Tombstones {
			removed[t.Key] = true
		}
		for _, named := range it.Manifest.Refs() {
			if !strings.HasPrefix(named.Key, prefix) {
				outside[named.Key] = true
			}
		}
	}
	// These are few: the base model's files, which are outside the runs.
	for _, key := range sortedKeys(outside) {
		_, err := s.Stat(ctx, key)
		if err == nil {
			there[key] = true
		} else if reason(err) != store.ErrNotFound.Error() {
			return err
		}
	}
	var lost missingCounts
	seen := map[string]bool{}
	for _, it := range r.all() {
		for _, named := range it.Manifest.Refs() {
			if there[named.Key] || seen[named.Key] || named.Role == "parent" {
				continue
			}
			seen[named.Key] = true
			why := "missing"
			if removed[named.Key] {
				why = "removed by retention"
			}
			lost.add(kindOf(named.Role), why, named.Key)
		}
	}
	place := func(what string) int {
		return slices.IndexFunc(kinds, func(k kind) bool { return k.what == what })
	}
	slices.SortFunc(lost, func(a, b Missing) int {
		return cmp.Or(cmp.Compare(place(a.What), place(b.What)), cmp.Compare(a.Why, b.Why))
	})
	r.Missing = append(r.Missing, lost...)
	r.findGaps()
	return nil
}

// missingCounts counts what is missing by what it is and why.
type missingCounts []Missing

func (c *missingCounts) add(what, why, key string) {
	at := slices.IndexFunc(*c, func(m Missing) bool { return m.What == what && m.Why == why })
	if at < 0 {
		at = len(*c)
		*c = append(*c, Missing{What: what, Why: why, Key: key})
	}
	(*c)[at].Count++
}

func kindOf(role string) string {
	for _, k := range kinds {
		if strings.HasPrefix(role, k.role) {
			return k.what
		}
	}
	return kinds[len(kinds)-1].what
}

// findGaps notes iterations of which not even a folder is left, and what was begun.
func (r *Run) findGaps() {
	for _, b := range r.Branches {
		for k := 1; k < len(b.Iterations); k++ {
			from, to := b.Iterations[k-1].Manifest.Iteration, b.Iterations[k].Manifest.Iteration
			named := slices.ContainsFunc(r.Missing, func(m Missing) bool {
				return m.Key == store.ManifestKey(r.ID, b.Number, from+1)
			})
			if to > from+1 && !named {
				r.lacks(Missing{What: fmt.Sprintf("iterations %d to %d of branch %d", from+1, to-1, b.Number), Why: "missing", Count: to - from - 1,
					Key: store.ManifestKey(r.ID, b.Number, from+1)})
			}
		}
		if first := b.Iterations[0].Manifest; first.Parent != nil && b.Fork == nil {
			r.lacks(Missing{What: fmt.Sprintf("the beginning of branch %d", b.Number), Why: "missing", Count: 1, Key: first.Parent.Key})
		}
		for _, n := range b.Uncommitted {
			r.lacks(Missing{What: fmt.Sprintf("iteration %d of branch %d", n, b.Number), Why: "begun and not committed"})
		}
	}
}
