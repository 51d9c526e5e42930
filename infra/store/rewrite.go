package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// dropDamaged deletes an artifact that is damaged in the bucket if it is of a run and no manifest of any of the run's branches names it:
// nobody relies on it, and whoever has its bytes writes it again. It says whether it did. A named one stays, for a copy to be put
// in its place. damage is what a read found; a second read has to find the same, because the first may be the network's.
func dropDamaged(ctx context.Context, s Store, ref Ref, damage error) (bool, error) {
	again := VerifyArtifact(ctx, s, ref)
	if again == nil || errors.Is(again, ErrNotFound) {
		return true, nil // it is as it should be, or gone already: the PUT finds out
	}
	if !errors.Is(again, ErrAltered) || again.Error() != damage.Error() {
		return false, again
	}
	named, err := isNamed(ctx, s, ref.Key)
	if err != nil || named {
		return false, err
	}
	if err := s.Delete(ctx, ref.Key); err != nil {
		return false, fmt.Errorf("delete what is damaged: %w", err)
	}
	if n, ok := s.(notifier); ok {
		n.rewritten(ref, damage)
	}
	return true, nil
}

// notifier is a store that is told of artifacts that were damaged, and are written again.
type notifier interface {
	rewritten(ref Ref, damage error)
}

// isNamed reports whether a manifest names a key, as far as that can be known: what is not a branch's, or of a run with a
// damaged manifest, counts as named.
func isNamed(ctx context.Context, s Store, key string) (bool, error) {
	parts := strings.Split(key, "/")
	if len(parts) < 4 || parts[0] != RunsDir {
		return true, nil
	}
	run, known := UnescapeSegment(parts[1])
	if _, branch := parseBranch(parts[2]); !known || !branch {
		return true, nil
	}
	w, err := loadRun(ctx, s, run)
	if errors.Is(err, ErrNotFound) {
		return false, nil // nothing is committed
	}
	if err != nil {
		return true, err
	}
	if w.refuseDamage() != nil {
		return true, nil
	}
	w.gatherRefs()
	_, named := w.refs[key]
	return named, nil
}
