package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sort"
)

// Link is a committed iteration: a manifest and the ref that names it.
type Link struct {
	Ref      Ref
	Manifest *Manifest
}

// Chain is the committed history of a state, oldest first: iteration 0 and every
// one after it, across forks, up to a head. Chain[i] is iteration i's, unless the
// chain was loaded in part.
type Chain []Link

// ErrBroken: a chain does not hold together though each manifest is sound.
var ErrBroken = errors.New("broken chain")

// Branches lists a run's branches that have anything stored, in order.
func Branches(ctx context.Context, s Store, run string) ([]int, error) {
	var out []int
	for name, err := range s.Folders(ctx, RunDir(run)+"/") {
		if err != nil {
			return nil, err
		}
		if b, ok := parseBranch(name); ok {
			out = append(out, b)
		}
	}
	sort.Ints(out)
	return out, nil
}

// Iterations lists the iterations of a branch that have anything stored, committed
// or not, in order.
func Iterations(ctx context.Context, s Store, run string, branch int) ([]int, error) {
	var out []int
	for name, err := range s.Folders(ctx, IterationsDir(run, branch)+"/") {
		if err != nil {
			return nil, err
		}
		if n, ok := parseNumber(name); ok {
			out = append(out, n)
		}
	}
	sort.Ints(out)
	return out, nil
}

// Head finds the newest committed iteration of a run: of its last branch that has
// one. [ErrNotFound] where nothing is committed.
func Head(ctx context.Context, s Store, run string) (Link, error) {
	branches, err := Branches(ctx, s, run)
	if err != nil {
		return Link{}, err
	}
	for i := len(branches) - 1; i >= 0; i-- {
		link, err := HeadOf(ctx, s, run, branches[i])
		if !errors.Is(err, ErrNotFound) {
			return link, err
		}
	}
	return Link{}, &Error{Op: "find the head of", Where: s.Location(RunDir(run)), Kind: ErrNotFound, Detail: "no iteration is committed"}
}

// HeadOf finds the newest committed iteration of one branch, or [ErrNotFound].
func HeadOf(ctx context.Context, s Store, run string, branch int) (Link, error) {
	iterations, err := Iterations(ctx, s, run, branch)
	if err != nil {
		return Link{}, err
	}
	// Behind the head lies at most what was begun and not committed.
	for i := len(iterations) - 1; i >= 0; i-- {
		m, ref, err := ReadManifestAt(ctx, s, run, branch, iterations[i])
		if errors.Is(err, ErrNotFound) {
			continue
		}
		return Link{Ref: ref, Manifest: m}, err
	}
	return Link{}, &Error{Op: "find the head of", Where: s.Location(BranchDir(run, branch)), Kind: ErrNotFound, Detail: "no iteration is committed"}
}

// Walk yields the chain from head backwards, newest first, each manifest verified
// against the ref that names it and checked against its child (see [Follows]). After
// an error it ends.
func Walk(ctx context.Context, s Store, head Ref) iter.Seq2[Link, error] {
	return func(yield func(Link, error) bool) {
		var child *Manifest
		for next := &head; next != nil; {
			m, err := ReadManifest(ctx, s, *next)
			if err == nil && child != nil {
				err = Follows(child, m)
			}
			if err != nil {
				yield(Link{}, err)
				return
			}
			if !yield(Link{Ref: *next, Manifest: m}, nil) {
				return
			}
			child, next = m, m.Parent
		}
	}
}

// Follows checks that child may name parent as the manifest before it: the iteration
// before, the state it left, the same spec and base, and within a run no later
// branch. [ErrBroken] says what does not fit.
func Follows(child, parent *Manifest) error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("iteration %d of branch %d: "+format+": %w", append([]any{child.Iteration, child.Branch}, append(args, ErrBroken)...)...))
	}
	if child.Iteration != parent.Iteration+1 {
		bad("its parent is iteration %d", parent.Iteration)
	}
	if child.StateBefore != parent.StateAfter {
		bad("it began with state %s, its parent left %s", clip(child.StateBefore), clip(parent.StateAfter))
	}
	if child.Run == parent.Run {
		if child.Branch < parent.Branch {
			bad("its parent is of the later branch %d", parent.Branch)
		}
		if child.Spec != parent.Spec {
			bad("its spec is %s, its parent's %s", child.Spec.Digest, parent.Spec.Digest)
		}
	}
	if child.Base.Digest != parent.Base.Digest {
		bad("its base model is %s, its parent's %s", child.Base.Digest, parent.Base.Digest)
	}
	return errors.Join(problems...)
}

// LoadChain walks from head to the run's beginning.
func LoadChain(ctx context.Context, s Store, head Ref) (Chain, error) {
	return loadUntil(ctx, s, head, func(Chain) bool { return false })
}

// LoadRebuild loads as much of the chain as rebuilding the version after head needs:
// back to the newest snapshot that was not removed, or to the beginning.
func LoadRebuild(ctx context.Context, s Store, head Ref) (Chain, error) {
	return loadUntil(ctx, s, head, func(newestFirst Chain) bool {
		last := newestFirst[len(newestFirst)-1].Manifest
		return last.Snapshot != nil && !removed(newestFirst, last.Snapshot)
	})
}

func loadUntil(ctx context.Context, s Store, head Ref, enough func(newestFirst Chain) bool) (Chain, error) {
	var chain Chain
	for link, err := range Walk(ctx, s, head) {
		if err != nil {
			return nil, fmt.Errorf("load chain: %w", err)
		}
		chain = append(chain, link)
		if enough(chain) {
			break
		}
	}
	for i, j := 0, len(chain)-1; i < j; i, j = i+1, j-1 {
		chain[i], chain[j] = chain[j], chain[i]
	}
	return chain, nil
}

// Version is the policy version that the chain's head made; 0 for an empty chain.
func (c Chain) Version() int {
	if len(c) == 0 {
		return 0
	}
	return c[len(c)-1].Manifest.Version()
}

// At finds an iteration in the chain.
func (c Chain) At(iteration int) (Link, bool) {
	if len(c) == 0 {
		return Link{}, false
	}
	i := iteration - c[0].Manifest.Iteration
	if i < 0 || i >= len(c) {
		return Link{}, false
	}
	return c[i], true
}

// SnapshotAtOrBefore finds where a rebuild of a version begins: the newest snapshot
// at or before it that no tombstone removed, and the iterations to apply again after
// it, oldest first. No snapshot (nil) means version 0: the base model with zero
// moments; a chain loaded in part answers [ErrNotFound] then. A snapshot that turns
// out to be missing after all (removed by another branch) is left out by asking for
// the version before it.
func (c Chain) SnapshotAtOrBefore(version int) (*SnapshotRef, []Link, error) {
	if version < 0 || version > c.Version() {
		return nil, nil, fmt.Errorf("find a snapshot for version %d: the chain ends at version %d: %w", version, c.Version(), ErrNotFound)
	}
	for v := version; v > 0; v-- {
		link, ok := c.At(v - 1)
		if !ok {
			return nil, nil, fmt.Errorf("find a snapshot for version %d: the chain is loaded from version %d on, without one: %w", version, v, ErrNotFound)
		}
		if snapshot := link.Manifest.Snapshot; snapshot != nil && !removed(c, snapshot) {
			return snapshot, c.between(v, version), nil
		}
	}
	return nil, c.between(0, version), nil
}

// between are the iterations that turn version from into version to.
func (c Chain) between(from, to int) []Link {
	var out []Link
	for n := from; n < to; n++ {
		link, _ := c.At(n)
		out = append(out, link)
	}
	return out
}

// removed says whether a tombstone names any of a snapshot's files.
func removed(links []Link, snapshot *SnapshotRef) bool {
	keys := make(map[string]bool, len(snapshot.Files))
	for _, ref := range snapshot.Files {
		keys[ref.Key] = true
	}
	for _, link := range links {
		for _, t := range link.Manifest.Tombstones {
			if keys[t.Key] {
				return true
			}
		}
	}
	return false
}
