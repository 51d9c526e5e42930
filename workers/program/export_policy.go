package program

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

// foundPolicy is a policy version of a run.
type foundPolicy struct {
	// files are the files of a stored folder, nil if the version must be rebuilt. origin
	// describes them.
	files  map[string]store.Ref
	origin string
	// state is the version's state fingerprint, version the input of Restore, and head the
	// manifest of the iteration that made it.
	state       string
	version     activities.Version
	head        *store.Ref
	fingerprint string // the fingerprint of the device that can rebuild it
	// spec is the run's resolved spec, and base its base model.
	spec store.Ref
	base store.ModelRef
}

// findPolicy finds a version among the ancestors of the newest one.
func findPolicy(ctx context.Context, s store.Store, run string, version int) (foundPolicy, error) {
	head, err := store.Head(ctx, s, run)
	if err != nil {
		return foundPolicy{}, err
	}
	if newest := head.Manifest.Version(); version > newest {
		return foundPolicy{}, fmt.Errorf("version %d of run %q is not committed; the newest is %d: %w", version, run, newest, store.ErrNotFound)
	}
	removed := map[string]bool{}
	for link, err := range store.Walk(ctx, s, head.Ref) {
		if err != nil {
			return foundPolicy{}, err
		}
		m := link.Manifest
		for _, t := range m.Tombstones {
			removed[t.Key] = true
		}
		switch {
		case version == 0 && m.Parent == nil:
			return foundPolicy{files: m.Base.Files, origin: "the base model", state: m.StateBefore, spec: m.Spec, base: m.Base}, nil
		case m.Version() != version || version == 0:
			continue
		}
		p := foundPolicy{
			spec: m.Spec, base: m.Base, state: m.StateAfter, head: &link.Ref, fingerprint: m.Fingerprint, origin: "rebuilt",
			version: activities.Version{Run: activities.Run{ID: run, Spec: m.Spec}, Branch: m.Branch, Version: version, State: m.StateAfter},
		}
		if m.Snapshot != nil && whole(ctx, s, m.Snapshot, removed) {
			p.files, p.origin = m.Snapshot.Files, "its snapshot"
		}
		return p, nil
	}
	return foundPolicy{}, fmt.Errorf("version %d of run %q: %w", version, run, store.ErrNotFound)
}

// whole reports whether all files of a snapshot's policy exist.
func whole(ctx context.Context, s store.Store, snapshot *store.SnapshotRef, removed map[string]bool) bool {
	for _, ref := range policyFiles(snapshot.Files) {
		if removed[ref.Key] {
			return false
		}
		if _, err := s.Stat(ctx, ref.Key); err != nil {
			return false
		}
	}
	return true
}

// rebuild computes the version on this machine's device as a resumed run would. It writes
// to a memory overlay of the run's store.
func (p foundPolicy) rebuild(
	ctx context.Context, s store.Store, open func() (*model.Device, error), say func(string),
) (store.Store, map[string]store.Ref, error) {
	opened, err := open()
	if err != nil {
		return nil, nil, err
	}
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	if err != nil {
		return nil, nil, err
	}
	if have := engine.Info().Fingerprint; have != p.fingerprint {
		say(fmt.Sprintf("this device has fingerprint %s, the run %s: other bits are to be expected, which are refused", have, p.fingerprint))
	}
	over := store.NewOverlay(s)
	host, worker := &host.Host{Store: over}, &device.Device{Store: over, Engine: engine}
	found, err := host.Find(ctx, activities.FindInput{Run: p.version.Run.ID, Version: &p.version.Version})
	if err != nil {
		return nil, nil, err
	}
	p.version.Run = found.Run
	say(fmt.Sprintf("no snapshot of version %d is kept: rebuilding it", p.version.Version))
	restored, err := worker.Restore(ctx, activities.RestoreInput{Version: p.version, Head: p.head})
	if err != nil {
		return nil, nil, err
	}
	say(fmt.Sprintf("rebuilt from version %d by %s", restored.From, human.Plural(restored.Telemetry.Recomputed, "recorded update")))
	in := activities.SnapshotInput{Policy: p.version}
	for {
		taken, err := worker.Snapshot(ctx, in)
		if err != nil {
			return nil, nil, err
		}
		if in.Begun = taken.Begun; in.Begun == nil {
			return over, taken.Snapshot.Files, nil
		}
	}
}

// policyFiles returns the files of the policy itself, without moments and critic.
func policyFiles(files map[string]store.Ref) map[string]store.Ref {
	files = maps.Clone(files)
	maps.DeleteFunc(files, func(name string, _ store.Ref) bool {
		return !model.OfPolicy(name) || strings.HasPrefix(name, ".")
	})
	return files
}

// onlySame fails if the folder contains anything except the files to write and the partial
// files of an interrupted export.
func onlySame(dir string, files map[string]store.Ref) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look into %s: %w", dir, err)
	}
	for _, e := range entries {
		if _, part := files[store.PartOf(e.Name())]; part && e.Type().IsRegular() {
			continue
		}
		ref, ours := files[e.Name()]
		if ours && !e.IsDir() {
			have, err := fileDigest(filepath.Join(dir, e.Name()))
			if err != nil {
				return fmt.Errorf("look into %s: %w", dir, err)
			}
			ours = have == ref.Digest
		}
		if !ours {
			return fmt.Errorf("%s holds something else (%s): give a new or empty folder", dir, e.Name())
		}
	}
	return nil
}

func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
