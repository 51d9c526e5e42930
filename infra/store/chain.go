package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
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
// one. [ErrNotFound] if nothing is committed.
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
	// After the head there is at most an iteration that was begun and not committed.
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

// openedAfter is the spec at the fork point of a branch that has another one, with an environment's new description; "" if
// it has the same.
func (m *Manifest) openedAfter() string {
	var opened struct {
		Spec string `json:"spec"`
	}
	if len(m.Opened) > 0 && json.Unmarshal(m.Opened, &opened) != nil {
		return "" // then the specs must be the same
	}
	return opened.Spec
}

// Follows checks that child may name parent as the manifest before it: the iteration
// before, the state it left, the same base, within a run no later branch and the same spec, except for a branch that
// says that it has another one, and within a branch the rollout that the parent made for it. [ErrBroken] says what does not fit.
func Follows(child, parent *Manifest) error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("iteration %d of branch %d: "+format+": %w", append([]any{child.Iteration, child.Branch}, append(args, ErrBroken)...)...))
	}
	if child.Iteration != parent.Iteration+1 {
		bad("its parent is iteration %d", parent.Iteration)
	}
	if child.StateBefore != parent.StateAfter {
		bad("it began with state %s, its parent left %s", Clip(child.StateBefore), Clip(parent.StateAfter))
	}
	if child.Run == parent.Run {
		if child.Branch < parent.Branch {
			bad("its parent is of the later branch %d", parent.Branch)
		}
		if child.Spec != parent.Spec && !(child.Branch > parent.Branch && child.openedAfter() == parent.Spec.Digest) {
			bad("its spec is %s, its parent's %s", child.Spec.Digest, parent.Spec.Digest)
		}
	}
	made := parent.NextRollout != nil && child.Run == parent.Run && child.Branch == parent.Branch
	switch by := child.RolledOutBy; {
	case made && by == nil:
		bad("it does not learn from the rollout that its parent made for it")
	case !made && by != nil:
		bad("version %d has rolled out, and its parent has no rollout for it", by.Version)
	case made && by.State != parent.StateBefore:
		bad("state %s has rolled out; its parent made the rollout with %s", Clip(by.State), Clip(parent.StateBefore))
	case made && !sameTables(child.Turns, parent.NextRollout.Turns):
		bad("its turns are not those of the rollout that its parent made for it")
	}
	if child.Base.Digest != parent.Base.Digest {
		bad("its base model is %s, its parent's %s", child.Base.Digest, parent.Base.Digest)
	}
	return errors.Join(problems...)
}

// sameTables reports whether turns have the same samples and answers.
func sameTables(a, b []TurnRefs) bool {
	return slices.EqualFunc(a, b, func(a, b TurnRefs) bool { return a.Generate == b.Generate && a.Step == b.Step })
}

// LoadChain walks from head to the run's beginning.
func LoadChain(ctx context.Context, s Store, head Ref) (Chain, error) {
	return loadUntil(ctx, s, head, func(Chain) bool { return false })
}

// Rebuild is what a version is rebuilt from.
type Rebuild struct {
	// Head is the version's own manifest.
	Head *Manifest
	// Snapshot is where it begins; nil is version 0, the base model with zero moments.
	Snapshot *SnapshotRef
	// Again are the iterations to apply again after it, oldest first.
	Again []Link
}

// FindRebuild finds what the version after head is rebuilt from: the newest snapshot
// on the way back that is there, and the iterations since. A snapshot that retention has
// removed is passed over, even if the tombstone is not on this chain: a run that was
// rolled back reads manifests from before the removal. So is one that damaged, unless nil, says it of: what is damaged
// counts as removed.
func FindRebuild(ctx context.Context, s Store, head Ref, damaged func(*SnapshotRef) bool) (Rebuild, error) {
	var found *SnapshotRef
	var asked error
	chain, err := loadUntil(ctx, s, head, func(newestFirst Chain) bool {
		begins, err := rebuildBegins(ctx, s, newestFirst, damaged)
		if asked = err; begins {
			found = newestFirst[len(newestFirst)-1].Manifest.Snapshot
		}
		return begins || err != nil
	})
	if err = errors.Join(err, asked); err != nil {
		return Rebuild{}, err
	}
	out := Rebuild{Head: chain[len(chain)-1].Manifest, Snapshot: found, Again: chain}
	if found != nil {
		out.Again = chain[1:] // the first one made the snapshot
	}
	return out, nil
}

// rebuildBegins reports whether a version is rebuilt from the snapshot of the oldest of
// the manifests on the way back from it.
func rebuildBegins(ctx context.Context, s Store, newestFirst Chain, damaged func(*SnapshotRef) bool) (bool, error) {
	snapshot := newestFirst[len(newestFirst)-1].Manifest.Snapshot
	if snapshot == nil || removed(newestFirst, snapshot) || damaged != nil && damaged(snapshot) {
		return false, nil
	}
	return present(ctx, s, snapshot)
}

// present reports whether all files of a snapshot are there.
func present(ctx context.Context, s Store, snapshot *SnapshotRef) (bool, error) {
	for _, name := range slices.Sorted(maps.Keys(snapshot.Files)) {
		if _, err := s.Stat(ctx, snapshot.Files[name].Key); errors.Is(err, ErrNotFound) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

// KeptSnapshots are the run's snapshots on the chain that ends at head which no
// tombstone has removed, newest first. Retention removes the oldest first, so the walk
// ends at a removed one. It also ends where the run was forked from another run, whose
// snapshots are not its own.
func KeptSnapshots(ctx context.Context, s Store, head Ref) ([]*SnapshotRef, error) {
	var out []*SnapshotRef
	_, err := loadUntil(ctx, s, head, func(newestFirst Chain) bool {
		last := newestFirst[len(newestFirst)-1].Manifest
		if last.Run != newestFirst[0].Manifest.Run {
			return true
		}
		if last.Snapshot == nil {
			return false
		}
		if removed(newestFirst, last.Snapshot) {
			return true
		}
		out = append(out, last.Snapshot)
		return false
	})
	return out, err
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
	slices.Reverse(chain)
	return chain, nil
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
