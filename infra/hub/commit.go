package hub

import (
	"bytes"
	"context"
	"crypto/sha1" // what git names a file by
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"

	"github.com/reprise-rl/reprise/infra/human"
)

// maxSmall bounds the files that are sent in the commit itself, in bytes together: they are in memory.
const maxSmall = 64 << 20

// planned is what the hub says of a file before it is uploaded.
type planned struct {
	Path   string `json:"path"`
	Mode   string `json:"uploadMode"` // "lfs" or "regular"
	Ignore bool   `json:"shouldIgnore"`
	Digest string `json:"oid"`
}

// plan asks how each file is to be uploaded, and gives those of which the branch has other bytes.
func (u *upload) plan(ctx context.Context) (changed []*localFile, err error) {
	const atOnce = 256 // as the hub's own programs ask
	for from := 0; from < len(u.files); from += atOnce {
		if err := u.askModes(ctx, u.files[from:min(from+atOnce, len(u.files))]); err != nil {
			return nil, fmt.Errorf("ask how to upload: %w", err)
		}
	}
	var total, small int64
	for _, f := range u.files {
		total += f.size
		if !f.large {
			small += f.size
		}
	}
	if small > maxSmall {
		return nil, fmt.Errorf("%w: the hub wants %s in the commit itself, and at most %s are sent so", ErrRefused, human.Bytes(small), human.Bytes(maxSmall))
	}
	u.moved.Store(0)
	stop := u.tell("reading", total)
	defer stop()
	for _, f := range u.files {
		if f.digest == "" {
			if err := u.digest(ctx, f); err != nil {
				return nil, fmt.Errorf("read %s: %w", f.name, err)
			}
		}
		if f.digest != f.remote {
			changed = append(changed, f)
		}
	}
	return changed, nil
}

func (u *upload) askModes(ctx context.Context, files []*localFile) error {
	type sample struct {
		Path   string `json:"path"`
		Sample []byte `json:"sample"` // base64
		Size   int64  `json:"size"`
	}
	var in struct {
		Files []sample `json:"files"`
	}
	for _, f := range files {
		in.Files = append(in.Files, sample{f.name, f.sample, f.size})
	}
	var out struct {
		Files []planned `json:"files"`
	}
	if err := u.ask(ctx, http.MethodPost, u.onBranch("preupload"), in, &out); err != nil {
		return err
	}
	said := map[string]planned{}
	for _, p := range out.Files {
		said[p.Path] = p
	}
	for _, f := range files {
		p, ok := said[f.name]
		if !ok || p.Mode != "lfs" && p.Mode != "regular" {
			return fmt.Errorf("the hub's answer is not understood: nothing of %s, or a mode that is not known", f.name)
		}
		if p.Ignore {
			return fmt.Errorf("%w: the repository's .gitignore leaves out %s: change it there", ErrRefused, f.name)
		}
		// A store takes no empty object.
		if large := p.Mode == "lfs" && f.size > 0; large != f.large {
			f.large, f.digest = large, ""
		}
		f.remote = p.Digest
	}
	return nil
}

// digest reads a file for its digest, as the hub names it.
func (u *upload) digest(ctx context.Context, f *localFile) error {
	var of hash.Hash = sha256.New()
	if !f.large {
		of = sha1.New()
		fmt.Fprintf(of, "blob %d\x00", f.size)
	}
	file, err := u.root.Open(f.name)
	if err != nil {
		return err
	}
	defer file.Close()
	n, err := io.Copy(of, &counted{r: io.LimitReader(file, f.size+1), n: &u.moved, ctx: ctx})
	if err == nil && n != f.size {
		err = errChanged
	}
	f.digest = hex.EncodeToString(of.Sum(nil))
	return err
}

// errChanged says that a file of the folder is another one than when the upload began.
var errChanged = errors.New("it changes while it is uploaded")

// commit changes the branch. An answer that is lost is not asked for blindly again: if the branch
// has everything by then, the commit was made.
func (u *upload) commit(ctx context.Context, before info, changed []*localFile, out Uploaded) (Uploaded, error) {
	body, err := u.commitBody(before, changed, out.Removed)
	if err != nil {
		return out, err
	}
	r := request{method: http.MethodPost, address: u.onBranch("commit"), header: http.Header{"Content-Type": {"application/x-ndjson"}}}.of(body)
	var made struct {
		Commit  string `json:"commitOid"`
		Address string `json:"commitUrl"`
	}
	got, err := u.call(ctx, r)
	if err == nil {
		if err = got.decode(&made); err == nil && !commitForm.MatchString(made.Commit) {
			err = errors.New("the hub's answer is not understood: no commit")
		}
	}
	if err != nil {
		if now, done := u.committed(ctx, before); done {
			made.Commit, err = now.Commit, nil
		}
	}
	if err != nil {
		return out, fmt.Errorf("commit: %w", err)
	}
	out.Commit, out.Address = made.Commit, u.Endpoint+"/"+u.Repo+"/commit/"+made.Commit
	return out, nil
}

// committed reports whether the branch has moved, and has all files as they are here.
func (u *upload) committed(ctx context.Context, before info) (now info, done bool) {
	err := u.ask(ctx, http.MethodGet, u.onBranch("revision"), nil, &now)
	if err != nil || now.Commit == before.Commit || !commitForm.MatchString(now.Commit) {
		return now, false
	}
	changed, err := u.plan(ctx)
	return now, err == nil && len(changed)+len(u.stale(now)) == 0
}

// commitBody is what a commit sends: a line of JSON for its header, and one for each file.
func (u *upload) commitBody(before info, changed []*localFile, removed []string) ([]byte, error) {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	put := func(key string, value map[string]any) error {
		return lines.Encode(map[string]any{"key": key, "value": value})
	}
	if err := put("header", map[string]any{"summary": u.Message, "description": "", "parentCommit": before.Commit}); err != nil {
		return nil, err
	}
	for _, f := range changed {
		if f.large {
			if err := put("lfsFile", map[string]any{"path": f.name, "algo": "sha256", "oid": f.digest, "size": f.size}); err != nil {
				return nil, err
			}
			continue
		}
		content, err := u.read(f)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", f.name, err)
		}
		if err := put("file", map[string]any{"path": f.name, "content": content, "encoding": "base64"}); err != nil {
			return nil, err
		}
	}
	for _, name := range removed {
		if err := put("deletedFile", map[string]any{"path": name}); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// read is a small file's content.
func (u *upload) read(f *localFile) ([]byte, error) {
	file, err := u.root.Open(f.name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, f.size+1))
	if err == nil && int64(len(b)) != f.size {
		err = errChanged
	}
	return b, err
}
