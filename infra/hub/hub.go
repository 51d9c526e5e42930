// Package hub fetches models of the Hugging Face hub, as far as possible without the
// network: from a local cache as Hugging Face's own programs fill it, or by downloads that
// resume where they stopped. It also uploads a folder as a model.
package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// ErrRefused is the kind of errors that trying again does not help: the hub has no such
// model or revision, or it needs a token.
var ErrRefused = errors.New("the hub refused")

// Hub is where models are fetched from.
type Hub struct {
	// Endpoint is the hub's URL, without a slash at its end.
	Endpoint string
	// Token is sent to Endpoint; it may be empty.
	Token string
	// Cache is a folder as Hugging Face's programs fill it, with models--ORG--NAME/… in it.
	// It is only read.
	Cache string
	// Downloads is the folder for what is downloaded and for what an interrupted download
	// left.
	Downloads string
	// Offline keeps to what is in Cache.
	Offline bool

	bounds bounds
}

// bounds are how long a hub and other processes are waited for. 0 is the usual time.
type bounds struct {
	stall time.Duration // for which an answer may stand still before it is given up
	look  time.Duration // until a process looks again whether another one has ended the same download
	pause time.Duration // before an upload's request is made a second time; later pauses are longer
	tell  time.Duration // between two lines of an upload's progress
}

// orUsual are the bounds with the usual ones where they are 0.
func (b bounds) orUsual() bounds {
	return bounds{
		stall: cmp.Or(b.stall, time.Minute), look: cmp.Or(b.look, 500*time.Millisecond),
		pause: cmp.Or(b.pause, time.Second), tell: cmp.Or(b.tell, 5*time.Second),
	}
}

// publicHub is the hub of Hugging Face.
const publicHub = "https://huggingface.co"

// FromEnv is the hub as Hugging Face's programs find it: HF_ENDPOINT, HF_TOKEN, HF_HUB_CACHE,
// HF_HOME, XDG_CACHE_HOME and HF_HUB_OFFLINE. Downloads is a folder in the user's cache.
func FromEnv() (Hub, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return Hub{}, fmt.Errorf("find a folder for downloads: %w", err)
	}
	// Hugging Face's programs use ~/.cache on every system.
	caches := os.Getenv("XDG_CACHE_HOME")
	if home, err := os.UserHomeDir(); caches == "" && err == nil {
		caches = filepath.Join(home, ".cache")
	}
	home := cmp.Or(os.Getenv("HF_HOME"), filepath.Join(caches, "huggingface"))
	offline := strings.ToUpper(os.Getenv("HF_HUB_OFFLINE"))
	return Hub{
		Endpoint:  strings.TrimSuffix(cmp.Or(os.Getenv("HF_ENDPOINT"), publicHub), "/"),
		Token:     os.Getenv("HF_TOKEN"),
		Cache:     cmp.Or(os.Getenv("HF_HUB_CACHE"), filepath.Join(home, "hub")),
		Downloads: filepath.Join(user, "reprise", "hub"),
		Offline:   offline == "1" || offline == "TRUE" || offline == "YES" || offline == "ON",
	}, nil
}

// Model is a model's files on this machine.
type Model struct {
	// FS has the files.
	FS fs.FS
	// Commit is the revision they are of.
	Commit string

	root      *os.Root
	downloads string // the folder that was downloaded into; "" if the files were there
	unlock    func() // of downloads; may be nil
}

// Close ends the use of the files. What was downloaded stays, for the next Fetch.
func (m *Model) Close() error {
	if m.unlock != nil {
		m.unlock()
	}
	return m.root.Close()
}

// Discard removes what was downloaded, and is Close.
func (m *Model) Discard() error {
	var err error
	if m.downloads != "" {
		err = os.RemoveAll(m.downloads)
	}
	return errors.Join(err, m.Close())
}

var (
	commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)
	nameForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// Fetch finds a model's files, or downloads those that wanted names. revision is a commit,
// a branch or a tag, "main" if it is empty. A commit that Cache holds whole needs no network;
// whole decides, by the names in a folder, whether a model is. What a branch is now is asked of
// the hub, and if it cannot be reached, of Cache.
func (h Hub) Fetch(ctx context.Context, repo, revision string, wanted func(file string) bool, whole func(fs.FS) bool) (*Model, error) {
	for part := range strings.SplitSeq(repo, "/") {
		if !nameForm.MatchString(part) {
			return nil, fmt.Errorf("%w: %q is not the name of a model", ErrRefused, repo)
		}
	}
	folder := "models--" + strings.ReplaceAll(repo, "/", "--")
	revision = cmp.Or(revision, "main")
	if commitForm.MatchString(revision) || h.Offline {
		if m := h.cached(folder, h.commitOf(folder, revision), whole); m != nil {
			return m, nil
		}
	}
	if h.Offline {
		return nil, fmt.Errorf("%w: HF_HUB_OFFLINE is set, and %s at revision %s is not whole in %s", ErrRefused, repo, revision, h.Cache)
	}
	info, err := h.info(ctx, repo, revision)
	if err != nil {
		if Unreachable(err) {
			if m := h.cached(folder, h.commitOf(folder, revision), whole); m != nil {
				return m, nil
			}
		}
		return nil, fmt.Errorf("look up %s at revision %s: %w", repo, revision, err)
	}
	if m := h.cached(folder, info.Commit, whole); m != nil {
		return m, nil
	}
	return h.download(ctx, repo, folder, info, wanted)
}

// commitOf is the commit that a revision is in the cache; "" if it is not known there.
func (h Hub) commitOf(folder, revision string) string {
	if commitForm.MatchString(revision) {
		return revision
	}
	root, err := os.OpenRoot(filepath.Join(h.Cache, folder))
	if err != nil {
		return ""
	}
	defer root.Close()
	f, err := root.Open("refs/" + revision)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 64))
	if commit := strings.TrimSpace(string(b)); err == nil && commitForm.MatchString(commit) {
		return commit
	}
	return ""
}

// cached is a commit that the cache holds whole, else nil. Its files are links to blobs of
// the same model, and links that leave the model's folder are refused when they are opened.
func (h Hub) cached(folder, commit string, whole func(fs.FS) bool) *Model {
	if commit == "" {
		return nil
	}
	root, err := os.OpenRoot(filepath.Join(h.Cache, folder))
	if err != nil {
		return nil
	}
	files, err := fs.Sub(root.FS(), "snapshots/"+commit)
	if err != nil || !whole(files) {
		root.Close()
		return nil
	}
	return &Model{FS: files, Commit: commit, root: root}
}

// info is what the hub says of a model.
type info struct {
	Commit  string `json:"sha"`
	Private bool   `json:"private"`
	Files   []struct {
		Name string `json:"rfilename"`
	} `json:"siblings"`
}

// maxInfo bounds what is read of it, in bytes.
const maxInfo = 16 << 20

func (h Hub) info(ctx context.Context, repo, revision string) (info, error) {
	var out info
	ctx, moving, stop := h.watch(ctx)
	defer stop()
	response, err := h.get(ctx, h.Endpoint+"/api/models/"+repo+"/revision/"+url.PathEscape(revision), nil)
	if err != nil {
		return out, err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(moving(response.Body), maxInfo))
	if err != nil {
		return out, cmp.Or(context.Cause(ctx), err)
	}
	if err := json.Unmarshal(b, &out); err != nil || !commitForm.MatchString(out.Commit) {
		return out, fmt.Errorf("the hub's answer is not understood: no commit and list of files")
	}
	return out, nil
}

// watch is a context for a request, which ends if nothing comes of the answer for long. moving reads its body.
func (h Hub) watch(ctx context.Context) (watched context.Context, moving func(io.Reader) io.Reader, stop func()) {
	stall := h.bounds.orUsual().stall
	watched, cancel := context.WithCancelCause(ctx)
	still := time.AfterFunc(stall, func() { cancel(fmt.Errorf("nothing came for %s", stall)) })
	return watched, func(r io.Reader) io.Reader { return movingReader{r, still, stall} }, func() {
		still.Stop()
		cancel(nil)
	}
}

// movingReader restarts the timer with what it reads.
type movingReader struct {
	r     io.Reader
	still *time.Timer
	stall time.Duration
}

// Read implements io.Reader.
func (m movingReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if n > 0 {
		m.still.Reset(m.stall)
	}
	return n, err
}

// answer is the answer to a request.
type answer struct {
	*http.Response
	digest string // the file's SHA-256 as the hub says it; "" if it does not
}

// maxRedirects bounds how often a request is sent on, as net/http does.
const maxRedirects = 10

// get makes a request and checks the answer's status: 200, or 206 if header asks for a part.
func (h Hub) get(ctx context.Context, address string, header http.Header) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return answer{}, err
	}
	maps.Copy(request.Header, header)
	if h.Token != "" {
		request.Header.Set("Authorization", "Bearer "+h.Token)
	}
	var out answer
	note := func(r *http.Response) {
		// The hub sends large files from another host, and says before which they are.
		if digest := strings.Trim(r.Header.Get("X-Linked-Etag"), `"`); canon.IsDigest(digest) {
			out.digest = digest
		}
	}
	client := http.Client{CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return errors.New("the hub sends the request on and on")
		}
		if next.URL.Host != via[0].URL.Host {
			next.Header.Del("Authorization") // net/http compares host names without ports
		}
		note(next.Response)
		return nil
	}}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	note(response)
	out.Response = response
	if status := response.StatusCode; status == http.StatusOK || status == http.StatusPartialContent && header.Get("Range") != "" {
		return out, nil
	}
	response.Body.Close()
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return answer{}, fmt.Errorf("%w with %s: there is no such model, revision or file, or it needs a token (HF_TOKEN of the host worker)", ErrRefused, response.Status)
	case http.StatusRequestedRangeNotSatisfiable:
		return answer{}, errRange
	}
	return answer{}, fmt.Errorf("the hub answered %s", response.Status)
}

// errRange says that a file has no such part: it is another one than before.
var errRange = errors.New("the file has no such part")

// Unreachable reports whether an error says that the hub was not reached at all.
func Unreachable(err error) bool {
	var lookup *net.DNSError
	var dial *net.OpError
	return errors.As(err, &lookup) || errors.As(err, &dial) && dial.Op == "dial"
}
