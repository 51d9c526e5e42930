package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// verifyStreams is how many objects are hashed at once.
const verifyStreams = 8

// The kinds of damage that verify finds.
const (
	// ProblemAltered: the bytes are not those that were committed.
	ProblemAltered = "altered"
	// ProblemMissing: no object has the key, and no tombstone explains it.
	ProblemMissing = "missing"
	// ProblemInvalid: a manifest that cannot be read as one.
	ProblemInvalid = "invalid"
	// ProblemBroken: sound objects that contradict each other.
	ProblemBroken = "broken chain"
)

// Problem is one thing that is wrong, by name.
type Problem struct {
	// Kind is one of the Problem… constants.
	Kind string `json:"kind"`
	// Key is the object's key. Role is its part in the manifest NamedBy, if one names it;
	// it begins with "rebuild." if the object belongs to the other run of a fork.
	Key     string `json:"key"`
	Role    string `json:"role,omitempty"`
	NamedBy string `json:"named_by,omitempty"`
	// Detail says what was wanted and what was found.
	Detail string `json:"detail"`
}

// String is the problem as one line.
func (p Problem) String() string {
	s := p.Kind + ": " + p.Key
	if p.Role != "" {
		s += " (" + p.Role + " of " + p.NamedBy + ")"
	}
	return s + ": " + p.Detail
}

// BranchReport is the result for one branch.
type BranchReport struct {
	Branch int `json:"branch"`
	// First and Last are its committed iterations, -1 if there are none.
	First int `json:"first"`
	Last  int `json:"last"`
	// Parent is the fork point: the manifest that the first one follows, of another
	// branch, or of another run. Nil if the run begins with this branch.
	Parent *Ref `json:"parent,omitempty"`
	// Opened is why the branch was opened, as its first manifest says.
	Opened json.RawMessage `json:"opened,omitempty"`
	// Head names the newest manifest.
	Head Ref `json:"head"`
	// State is the state fingerprint of the newest version.
	State string `json:"state"`
	// Uncommitted are iterations after the head that were begun.
	Uncommitted []int `json:"uncommitted,omitempty"`
}

// Report is the outcome of [Verify], in a fixed order: the same store gives the same
// report.
type Report struct {
	Run      string         `json:"run"`
	Branches []BranchReport `json:"branches"`
	// Manifests is how many commits of the run were read; Objects and Bytes how much
	// was hashed, they included.
	Manifests int   `json:"manifests"`
	Objects   int   `json:"objects"`
	Bytes     int64 `json:"bytes"`
	// Problems are sorted by key.
	Problems []Problem `json:"problems"`
	// Removed are keys that are gone as a tombstone says, in order, and Reasons how
	// many of them each retention rule has removed.
	Removed []string       `json:"removed,omitempty"`
	Reasons map[string]int `json:"reasons,omitempty"`
	// Orphans are objects of the run that no manifest names, in key order.
	Orphans []Object `json:"orphans,omitempty"`
}

// OK says whether all that was committed is there and unaltered.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// CheckNewest adds a problem unless the manifest is there that somebody else than the store knows as the run's newest. A store that
// has lost its newest commits looks whole by itself.
func (r *Report) CheckNewest(ctx context.Context, s Store, newest Ref) error {
	w := &walk{report: *r}
	_, err := ReadManifest(ctx, s, newest)
	if err != nil && !w.damage(newest, "newest manifest", "the run's memo", err) {
		return fmt.Errorf("verify run %q: %w", r.Run, err)
	}
	r.Problems = w.report.Problems
	sort.SliceStable(r.Problems, func(i, j int) bool { return r.Problems[i].Key < r.Problems[j].Key })
	return nil
}

// Progress receives how far a long walk is: done of total objects and bytes. It is called
// from several goroutines, one at a time; nil is fine.
type Progress func(doneObjects, totalObjects int, doneBytes, totalBytes int64)

// Verify walks every branch of a run and re-hashes every artifact that a manifest names.
// If the run was forked from another, it also re-hashes what the fork point is rebuilt
// from: manifests, specs, batches and the snapshot they begin at. Damage is in the
// report. The error says only why the walk could not be made ([ErrNotFound] if the run
// has no commit, [ErrUnavailable], [ErrDenied], …).
func Verify(ctx context.Context, s Store, run string, progress Progress) (Report, error) {
	w, err := loadRun(ctx, s, run)
	if err != nil {
		return Report{Run: run}, fmt.Errorf("verify run %q: %w", run, err)
	}
	if err := w.checkParents(ctx); err != nil {
		return Report{Run: run}, fmt.Errorf("verify run %q: %w", run, err)
	}
	if err := w.findRebuilds(ctx); err != nil {
		return Report{Run: run}, fmt.Errorf("verify run %q: %w", run, err)
	}
	w.gatherRefs()
	if err := w.hashAll(ctx, progress); err != nil {
		return Report{Run: run}, fmt.Errorf("verify run %q: %w", run, err)
	}
	if err := w.findOrphans(ctx); err != nil {
		return Report{Run: run}, fmt.Errorf("verify run %q: %w", run, err)
	}
	sort.SliceStable(w.report.Problems, func(i, j int) bool { return w.report.Problems[i].Key < w.report.Problems[j].Key })
	return w.report, nil
}

// walk is a run as it is stored: all its manifests and all that they name.
type walk struct {
	s      Store
	report Report
	links  []Link // by branch, then iteration
	byKey  map[string]Link
	// damaged are manifests that could not be read as such, by key.
	damaged    map[string]bool
	tombstones map[string]string // reasons by key
	rebuild    []artifactUse     // of other runs: see findRebuilds
	refs       map[string]artifactUse
	keys       []string // of refs, sorted
	listed     []Object // all under the run's folder, in key order
}

// artifactUse is a ref and the first manifest that names it.
type artifactUse struct {
	NamedRef
	by string
}

func (w *walk) problem(kind, key, detail string) {
	w.report.Problems = append(w.report.Problems, Problem{Kind: kind, Key: key, Detail: detail})
}

// loadRun reads every manifest of a run. Those that are damaged become problems.
func loadRun(ctx context.Context, s Store, run string) (*walk, error) {
	w := &walk{s: s, report: Report{Run: run}, byKey: map[string]Link{}, damaged: map[string]bool{}, tombstones: map[string]string{},
		refs: map[string]artifactUse{}}
	branches, err := Branches(ctx, s, run)
	if err != nil {
		return nil, err
	}
	for _, branch := range branches {
		if err := w.loadBranch(ctx, run, branch); err != nil {
			return nil, err
		}
	}
	if len(w.links) == 0 && len(w.damaged) == 0 {
		return nil, &Error{Op: "read", Where: s.Location(RunDir(run)), Kind: ErrNotFound, Detail: "no iteration is committed", Hint: "check the run's id and the store's prefix; or the run has not committed yet: reprise watch " + run}
	}
	for _, link := range w.links {
		for _, t := range link.Manifest.Tombstones {
			w.tombstones[t.Key] = t.Reason
		}
	}
	return w, nil
}

func (w *walk) loadBranch(ctx context.Context, run string, branch int) error {
	iterations, err := Iterations(ctx, w.s, run, branch)
	if err != nil {
		return err
	}
	report := BranchReport{Branch: branch, First: -1, Last: -1}
	links := make([]Link, len(iterations))
	errs := make([]error, len(iterations))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(verifyStreams)
	for i, n := range iterations {
		group.Go(func() error {
			m, ref, err := ReadManifestAt(groupCtx, w.s, run, branch, n)
			links[i], errs[i] = Link{Ref: ref, Manifest: m}, err
			if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTooLarge) {
				return err
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var absent []int
	for i, n := range iterations {
		key := ManifestKey(run, branch, n)
		switch {
		case errs[i] == nil:
			if report.First < 0 {
				report.First, report.Parent, report.Opened = n, links[i].Manifest.Parent, links[i].Manifest.Opened
			}
			report.Last, report.Head, report.State = n, links[i].Ref, links[i].Manifest.StateAfter
			w.links = append(w.links, links[i])
			w.byKey[key] = links[i]
		case errors.Is(errs[i], ErrNotFound):
			absent = append(absent, n)
		default:
			w.damaged[key] = true
			w.problem(ProblemInvalid, key, errs[i].Error())
			report.Last = max(report.Last, n)
		}
	}
	for _, n := range absent {
		// Before the head a missing manifest is named by its child: see checkParents.
		if n > report.Last {
			report.Uncommitted = append(report.Uncommitted, n)
		}
	}
	w.report.Branches = append(w.report.Branches, report)
	w.report.Manifests = len(w.links)
	return nil
}

// checkParents checks that every manifest's parent is there, is the one it names, and
// fits. A parent in another run is read from there.
func (w *walk) checkParents(ctx context.Context) error {
	for _, link := range w.links {
		m := link.Manifest
		if m.Parent == nil || w.damaged[m.Parent.Key] {
			continue // damage is reported already, under the parent's own name
		}
		parent, ok := w.byKey[m.Parent.Key]
		if !ok {
			pm, err := ReadManifest(ctx, w.s, *m.Parent)
			if err != nil && !w.damage(*m.Parent, "parent", m.Key(), err) {
				return err
			}
			if err != nil {
				w.damaged[m.Parent.Key] = true
				continue
			}
			parent = Link{Ref: *m.Parent, Manifest: pm}
		}
		if parent.Ref != *m.Parent {
			w.add(ProblemAltered, m.Parent.Key, "parent", m.Key(), fmt.Sprintf("want SHA-256 %s, have %s", m.Parent.Digest, parent.Ref.Digest))
			continue
		}
		if err := Follows(m, parent.Manifest); err != nil {
			w.problem(ProblemBroken, m.Key(), err.Error())
		}
	}
	return nil
}

func (w *walk) add(kind, key, role, by, detail string) {
	w.report.Problems = append(w.report.Problems, Problem{Kind: kind, Key: key, Role: role, NamedBy: by, Detail: detail})
}

// damage records what an error says about an object, or answers false if the error
// is about the store instead.
func (w *walk) damage(ref Ref, role, by string, err error) bool {
	switch {
	case errors.Is(err, ErrAltered):
		w.add(ProblemAltered, ref.Key, role, by, err.Error())
	case errors.Is(err, ErrNotFound):
		w.add(ProblemMissing, ref.Key, role, by, fmt.Sprintf("%d bytes with SHA-256 %s are gone", ref.Size, ref.Digest))
	case errors.Is(err, ErrInvalid) || errors.Is(err, ErrTooLarge):
		w.add(ProblemInvalid, ref.Key, role, by, err.Error())
	default:
		return false
	}
	return true
}

// gatherRefs collects each artifact once, under the first manifest that names it.
func (w *walk) gatherRefs() {
	for _, link := range w.links {
		for _, named := range link.Manifest.Refs() {
			if named.Role == "parent" {
				continue // manifests are checked as such
			}
			w.gather(artifactUse{NamedRef: named, by: link.Manifest.Key()})
		}
	}
	for _, use := range w.rebuild {
		w.gather(use)
	}
	w.keys = slices.Sorted(maps.Keys(w.refs))
}

func (w *walk) gather(use artifactUse) {
	have, ok := w.refs[use.Key]
	if !ok {
		w.refs[use.Key] = use
	} else if have.Digest != use.Digest || have.Size != use.Size {
		w.problem(ProblemBroken, use.Key, fmt.Sprintf("%s of %s names SHA-256 %s, %s of %s names %s", have.Role, have.by, have.Digest, use.Role, use.by, use.Digest))
	}
}

// hashAll reads everything, several at a time, and judges in the order of the keys.
func (w *walk) hashAll(ctx context.Context, progress Progress) error {
	w.report.Objects = len(w.links)
	var total, done int64
	for _, link := range w.links {
		w.report.Bytes += link.Ref.Size
	}
	for _, key := range w.keys {
		total += w.refs[key].Size
	}
	var mu sync.Mutex
	finished := 0
	errs := make([]error, len(w.keys))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(verifyStreams)
	for i, key := range w.keys {
		group.Go(func() error {
			ref := w.refs[key].Ref
			err := VerifyArtifact(groupCtx, w.s, ref)
			errs[i] = err
			if err != nil && !errors.Is(err, ErrAltered) && !errors.Is(err, ErrNotFound) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			finished++
			done += ref.Size
			if progress != nil {
				progress(finished, len(w.keys), done, total)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for i, key := range w.keys {
		use := w.refs[key]
		switch {
		case errs[i] == nil:
			w.report.Objects++
			w.report.Bytes += use.Size
		case errors.Is(errs[i], ErrNotFound) && w.buried(key):
			w.report.Removed = append(w.report.Removed, key)
			if w.report.Reasons == nil {
				w.report.Reasons = map[string]int{}
			}
			w.report.Reasons[w.tombstones[key]]++
		default:
			w.damage(use.Ref, use.Role, use.by, errs[i])
		}
	}
	return nil
}

// buried reports whether a tombstone explains the absence of an object.
func (w *walk) buried(key string) bool {
	_, ok := w.tombstones[key]
	return ok
}

// findOrphans lists the run's folder for what no manifest names.
func (w *walk) findOrphans(ctx context.Context) error {
	run := w.report.Run
	for o, err := range w.s.List(ctx, RunDir(run)+"/") {
		if err != nil {
			return err
		}
		w.listed = append(w.listed, o)
		if w.isOrphan(o.Key) {
			w.report.Orphans = append(w.report.Orphans, o)
		}
	}
	return nil
}

// isOrphan says that no manifest names the key, that it is not a manifest itself, and
// that it is not in a folder outside the chain.
func (w *walk) isOrphan(key string) bool {
	run := w.report.Run
	if _, named := w.refs[key]; named || key == SpecKey(run) || strings.HasSuffix(key, "/manifest.json") {
		return false
	}
	for _, branch := range w.report.Branches {
		if strings.HasPrefix(key, BranchDir(run, branch.Branch)+"/") {
			return true
		}
	}
	return false
}
