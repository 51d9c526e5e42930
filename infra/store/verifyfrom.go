package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// findRebuilds collects what every fork point in another run is rebuilt from (see
// [FindRebuild]). Later versions without a snapshot of their own need all of it, and a
// run has no other record of its beginning. A snapshot there that is gone is passed over,
// as when a version is rebuilt.
func (w *walk) findRebuilds(ctx context.Context) error {
	seen := map[string]bool{}
	for _, link := range w.links {
		parent := link.Manifest.Parent
		if parent == nil || seen[parent.Key] || w.damaged[parent.Key] {
			continue // damage of the fork point itself is reported already
		}
		if _, own := w.byKey[parent.Key]; own {
			continue
		}
		seen[parent.Key] = true
		if err := w.findRebuild(ctx, *parent, link.Manifest.Key()); err != nil {
			return err
		}
	}
	return nil
}

// findRebuild is findRebuilds for the fork point head, which the manifest by names.
func (w *walk) findRebuild(ctx context.Context, head Ref, by string) error {
	var newestFirst Chain
	next := head
	for link, err := range Walk(ctx, w.s, head) {
		if err != nil {
			return w.damagedRebuild(next, by, err)
		}
		m := link.Manifest
		newestFirst = append(newestFirst, link)
		w.rebuild = append(w.rebuild, artifactUse{NamedRef{Role: "rebuild.manifest", Ref: link.Ref}, by})
		by = m.Key()
		begins, err := rebuildBegins(ctx, w.s, newestFirst, nil)
		if err != nil {
			return err
		}
		if begins {
			for _, name := range slices.Sorted(maps.Keys(m.Snapshot.Files)) {
				w.rebuild = append(w.rebuild, artifactUse{NamedRef{Role: fmt.Sprintf("rebuild.snapshot.files[%q]", name), Ref: m.Snapshot.Files[name]}, by})
			}
			return nil
		}
		for i, u := range m.Updates() { // what is applied again
			if i == 0 {
				w.rebuild = append(w.rebuild, artifactUse{NamedRef{Role: "rebuild.spec", Ref: m.Spec}, by})
			}
			w.rebuild = append(w.rebuild, artifactUse{NamedRef{Role: "rebuild.batch", Ref: u.Batch}, by})
		}
		if m.Parent != nil {
			next = *m.Parent
		}
	}
	return nil
}

// damagedRebuild records, once, why the walk ended at a manifest. It returns the error if
// it is about the store.
func (w *walk) damagedRebuild(ref Ref, by string, err error) error {
	if w.damaged[ref.Key] {
		return nil
	}
	if errors.Is(err, ErrBroken) {
		w.problem(ProblemBroken, by, err.Error())
	} else if !w.damage(ref, "rebuild.manifest", by, err) {
		return err
	}
	w.damaged[ref.Key] = true
	return nil
}
