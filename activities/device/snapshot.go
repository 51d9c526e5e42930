package device

import (
	"cmp"
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
)

// Snapshot stores the full training state of the resident version: a Hugging Face model
// folder and the optimizer's moments. Where limits.snapshot_mib cuts it, the first piece
// hashes all files and sends none, because the folder's name has the digests of all; each
// other sends files of so many MiB, at least one. A file has at most 2 GiB of tensors, and its
// digest is checked while it is sent; one that the store has is not sent again. A file's
// tensors are copied from the device one at a time, once to be hashed and once to be sent.
func (d *Device) Snapshot(ctx context.Context, in activities.SnapshotInput) (_ activities.SnapshotResult, err error) {
	defer run.Edge(ctx, &err, "snapshot version %d of run %s", in.Policy.Version, in.Policy.Run.ID)
	w, done, err := d.begin(ctx, in.Policy.Run)
	if err != nil {
		return activities.SnapshotResult{}, err
	}
	defer done(&err)
	if err := d.Engine.resident(in.Policy); err != nil {
		return activities.SnapshotResult{}, err
	}
	files, err := w.stateFiles(ctx, d.Store, in.Policy, cmp.Or(d.fileBytes, model.SnapshotFile))
	if err != nil {
		return activities.SnapshotResult{}, err
	}
	begun, piece := in.Begun, int64(w.Train.Limits.SnapshotMiB)<<20
	if begun == nil {
		if begun, err = w.hashed(ctx, in.Policy, files); err != nil {
			return activities.SnapshotResult{}, err
		}
		if piece > 0 {
			return activities.SnapshotResult{Begun: begun, Telemetry: w.telemetry()}, nil
		}
	}
	sent, err := send(ctx, d.Store, *begun, files, piece)
	if err != nil {
		return activities.SnapshotResult{}, fmt.Errorf("store version %d: %w", in.Policy.Version, err)
	}
	if sent < len(files) {
		return activities.SnapshotResult{Begun: &activities.BegunSnapshot{Snapshot: begun.Snapshot, Sent: sent}, Telemetry: w.telemetry()}, nil
	}
	return activities.SnapshotResult{Snapshot: begun.Snapshot, Telemetry: w.telemetry()}, nil
}

// hashed names the snapshot of the resident version, of which nothing is sent.
func (w *work) hashed(ctx context.Context, v activities.Version, files []store.FolderFile) (*activities.BegunSnapshot, error) {
	folder, err := store.HashFolder(ctx, store.SnapshotPrefix(v.Run.ID, v.Branch, v.Version), files)
	if err != nil {
		return nil, err
	}
	return &activities.BegunSnapshot{Snapshot: store.SnapshotRef{Version: v.Version, Dir: folder.Dir, Files: folder.Files,
		State: w.engine.fingerprint}}, nil
}

// send stores files from the first one that is not sent, as many as fit into a piece of so
// many bytes and at least one; 0 is all. It returns how many are sent then.
func send(ctx context.Context, s store.Store, begun activities.BegunSnapshot, files []store.FolderFile, piece int64) (sent int, err error) {
	if len(files) != len(begun.Snapshot.Files) {
		return 0, fmt.Errorf("the version has %d files, %d were hashed: %w", len(files), len(begun.Snapshot.Files), store.ErrInvalid)
	}
	var bytes int64
	for sent = begun.Sent; sent < len(files); sent++ {
		f := files[sent]
		ref, ok := begun.Snapshot.Files[f.Name]
		if !ok {
			return sent, fmt.Errorf("%s was not hashed: %w", f.Name, store.ErrInvalid)
		}
		if bytes += ref.Size; piece > 0 && bytes > piece && sent > begun.Sent {
			break
		}
		if err := store.PutFolderFile(ctx, s, ref, f); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// stateFiles are the files of the resident state in the order in which they are stored,
// the tokenizer's beside them, so that transformers loads the folder as it is. A file of
// tensors has at most so many bytes of them.
func (w *work) stateFiles(ctx context.Context, s store.Store, v activities.Version, most int64) ([]store.FolderFile, error) {
	files, err := w.engine.state.Files(most)
	if err != nil {
		return nil, fmt.Errorf("files of version %d: %w", v.Version, err)
	}
	if w.engine.second != nil {
		beside, err := w.engine.second.Files(most)
		if err != nil {
			return nil, fmt.Errorf("files of the second network of version %d: %w", v.Version, err)
		}
		files = append(files, beside...)
	}
	base, err := run.ReadIndex(ctx, s, v.Run.Base)
	if err != nil {
		return nil, err
	}
	list := run.Streamed(files)
	for _, name := range run.SmallFiles {
		ref, ok := base.Files[name]
		if !ok || name == model.ConfigFile { // the state has its own, or is no whole model
			continue
		}
		body, err := store.GetArtifact(ctx, s, ref)
		if err != nil {
			return nil, fmt.Errorf("model file %s: %w", name, err)
		}
		list = append(list, store.FolderFile{Name: name, Body: body})
	}
	return store.InOrder(list), nil
}
