package hub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// resumes is how often in a row a download is taken up again without a byte in between.
	resumes = 4
	// abandoned is the age after which what an interrupted download left is removed.
	abandoned = 14 * 24 * time.Hour
)

// download fetches files of a commit into a folder of their own. What is there is kept.
func (h Hub) download(ctx context.Context, repo, folder string, of info, wanted func(string) bool) (*Model, error) {
	h.removeAbandoned()
	dir := filepath.Join(h.Downloads, folder, of.Commit)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the download: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(h.Downloads, folder, of.Commit+".lock"), h.bounds.orUsual().look)
	if err != nil {
		return nil, err
	}
	for _, file := range of.Files {
		// Files in folders belong to other programs.
		if file.Name != filepath.Base(file.Name) || !filepath.IsLocal(file.Name) || !wanted(file.Name) {
			continue
		}
		t := transfer{hub: h, address: h.Endpoint + "/" + repo + "/resolve/" + of.Commit + "/" + url.PathEscape(file.Name),
			path: filepath.Join(dir, file.Name)}
		if err := t.fetch(ctx); err != nil {
			unlock()
			return nil, fmt.Errorf("download %s of %s: %w", file.Name, repo, err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		unlock()
		return nil, err
	}
	return &Model{FS: root.FS(), Commit: of.Commit, root: root, downloads: dir, unlock: unlock}, nil
}

// removeAbandoned removes downloads that nobody has gone on with for long.
func (h Hub) removeAbandoned() {
	locks, err := filepath.Glob(filepath.Join(h.Downloads, "models--*", "*.lock"))
	if err != nil {
		return
	}
	for _, path := range locks {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < abandoned {
			continue
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(strings.TrimSuffix(path, ".lock"))
			os.Remove(path)
		}
		f.Close()
	}
}

// lock waits until no other process uses the same download. It looks again after each pause.
func lock(ctx context.Context, path string, pause time.Duration) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the download: %w", err)
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			now := time.Now()
			_ = os.Chtimes(path, now, now) // used now
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("lock the download: %w", err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// transfer is the download of one file. path.part is what there is of it, and path.part.json
// which file that is a part of.
type transfer struct {
	hub     Hub
	address string
	path    string
}

// partOf says which file a part is of: as the server that sent it knows it.
type partOf struct {
	ETag   string `json:"etag"`   // strong
	Size   int64  `json:"size"`   // of the whole file; -1 if the server does not say
	SHA256 string `json:"sha256"` // "" if the hub does not say
}

// fetch downloads the file, unless it is there. A connection that breaks off is taken up
// where it ended.
func (t transfer) fetch(ctx context.Context) error {
	if info, err := os.Lstat(t.path); err == nil && info.Mode().IsRegular() {
		return nil
	}
	part, err := os.OpenFile(t.path+".part", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer part.Close()
	longest, err := part.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	for idle := 0; ; {
		before := t.known()
		have, err := t.resume(ctx, part)
		if t.known() != before { // another file than so far
			longest = 0
		}
		// A server without ranges begins again each time: only what was never there before is progress.
		grew := have > longest
		longest = max(longest, have)
		switch {
		case err == nil:
			return t.finish(part)
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrRefused):
			return err
		case grew:
			idle = 0
		case idle == resumes:
			return err
		default:
			idle++
		}
	}
}

// resume fetches what is missing of the file. have is how much of it is there afterwards.
func (t transfer) resume(ctx context.Context, part *os.File) (have int64, err error) {
	of := t.known()
	have, err = part.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	if have > 0 && have == of.Size {
		return have, nil
	}
	header := http.Header{"Accept-Encoding": {"identity"}}
	if have > 0 && of.ETag != "" {
		header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		header.Set("If-Range", of.ETag)
	}
	ctx, moving, stop := t.hub.watch(ctx)
	defer stop()
	answer, err := t.hub.get(ctx, t.address, header)
	if errors.Is(err, errRange) {
		return 0, errors.Join(err, t.forget(part))
	}
	if err != nil {
		return have, err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK { // it is another file than before, or the first time
		if err := t.begin(part, answer); err != nil {
			return 0, err
		}
		have = 0
	} else if !strings.HasPrefix(answer.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)) {
		return 0, errors.Join(fmt.Errorf("the server answered with %q, asked for bytes from %d on", answer.Header.Get("Content-Range"), have), t.forget(part))
	}
	n, err := io.Copy(part, moving(answer.Body))
	if err != nil && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	return have + n, err
}

// known is which file the part is of.
func (t transfer) known() (of partOf) {
	b, err := os.ReadFile(t.path + ".part.json")
	if err != nil || json.Unmarshal(b, &of) != nil {
		return partOf{}
	}
	return of
}

// begin empties the part and notes which file it is going to be of.
func (t transfer) begin(part *os.File, a answer) error {
	if err := t.forget(part); err != nil {
		return err
	}
	of := partOf{ETag: a.Header.Get("ETag"), Size: a.ContentLength, SHA256: a.digest}
	if strings.HasPrefix(of.ETag, "W/") {
		of.ETag = "" // its bytes may differ
	}
	b, err := json.Marshal(of)
	if err != nil {
		return err
	}
	return os.WriteFile(t.path+".part.json", b, 0o600)
}

// forget empties the part.
func (t transfer) forget(part *os.File) error {
	if err := os.Remove(t.path + ".part.json"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := part.Truncate(0); err != nil {
		return err
	}
	_, err := part.Seek(0, io.SeekStart)
	return err
}

// finish checks the whole file's digest and gives it its name.
func (t transfer) finish(part *os.File) error {
	if want := t.known().SHA256; want != "" {
		h := sha256.New()
		if _, err := part.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.Copy(h, part); err != nil {
			return err
		}
		if have := hex.EncodeToString(h.Sum(nil)); have != want {
			return errors.Join(fmt.Errorf("it has SHA-256 %s, the hub says %s", have, want), t.forget(part))
		}
	}
	if err := os.Rename(part.Name(), t.path); err != nil {
		return err
	}
	return os.Remove(t.path + ".part.json")
}
