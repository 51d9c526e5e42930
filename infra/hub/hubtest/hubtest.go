// Package hubtest is a model hub for tests: what Hugging Face's hub answers to the requests by which
// models are uploaded and downloaded. It was written from the source of huggingface_hub, and that
// library's own upload and download are held against it (TestTheirsUploadsTheSame in infra/hub).
package hubtest

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The tokens that a [Hub] knows.
const (
	WriteToken = "hf_write"
	ReadToken  = "hf_read"
)

// Org is the only account in which repositories can be made.
const Org = "tiny"

// Commit is a commit of a branch: each file's content by its name.
type Commit struct {
	ID      string
	Summary string
	Files   map[string]string
}

// Repo is a model's repository.
type Repo struct {
	Private  bool
	Branches map[string][]Commit // newest last
}

// Hub is a hub, and a store for large files on another host. Fields are set before requests are made.
type Hub struct {
	// URL is the endpoint.
	URL string
	// LargeFrom is the size from which a file goes by Git LFS, in bytes, besides *.safetensors.
	LargeFrom int
	// PartSize is the size of parts, in bytes, and the size up to which a large file is sent whole.
	PartSize int
	// XetOnly hubs take large files by Xet alone.
	XetOnly bool
	// Ignored is a name that the repositories' .gitignore has.
	Ignored string
	// Before is asked before each answer; if it returns true, it has written it.
	Before func(w http.ResponseWriter, r *http.Request) bool
	// After is asked after a commit was made, before it is answered; true if it has answered.
	After func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	store    string
	repos    map[string]*Repo
	large    map[string]string            // content by SHA-256
	parts    map[string]map[string]string // content by digest and number
	requests []string
}

// New starts a hub, which ends with the test.
func New(t testing.TB) *Hub {
	t.Helper()
	h := &Hub{LargeFrom: 2000, PartSize: 4096, repos: map[string]*Repo{}, large: map[string]string{}, parts: map[string]map[string]string{}}
	store := httptest.NewServer(h.around(h.storeAnswers))
	t.Cleanup(store.Close)
	hub := httptest.NewServer(h.around(h.answers))
	t.Cleanup(hub.Close)
	h.URL, h.store = hub.URL, store.URL
	return h
}

// Head is the newest commit of a branch, or one of no files if there is none.
func (h *Hub) Head(repo, branch string) Commit {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.repos[repo]; r != nil && len(r.Branches[branch]) > 0 {
		return r.Branches[branch][len(r.Branches[branch])-1]
	}
	return Commit{}
}

// Commits is how many commits a branch has.
func (h *Hub) Commits(repo, branch string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.repos[repo]; r != nil {
		return len(r.Branches[branch])
	}
	return 0
}

// Put makes a repository with a commit of these files, or adds a commit to its main branch.
func (h *Hub) Put(repo string, private bool, files map[string]string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.repos[repo]
	if r == nil {
		r = &Repo{Private: private, Branches: map[string][]Commit{}}
		h.repos[repo] = r
	}
	r.add("main", "by hand", files)
}

// Private reports whether a repository is.
func (h *Hub) Private(repo string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.repos[repo] != nil && h.repos[repo].Private
}

// Requests are the requests since the last call: method and path, and "+token" if they had one.
func (h *Hub) Requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := h.requests
	h.requests = nil
	return out
}

// around notes a request and lets the test answer it.
func (h *Hub) around(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := r.Method + " " + r.URL.EscapedPath()
		if r.Header.Get("Authorization") != "" {
			text += " +token"
		}
		h.mu.Lock()
		h.requests = append(h.requests, text)
		h.mu.Unlock()
		if h.Before == nil || !h.Before(w, r) {
			next(w, r)
		}
	})
}

// Refuse writes an answer as the hub says what is wrong.
func Refuse(w http.ResponseWriter, status int, kind, message string) {
	if kind != "" {
		w.Header().Set("X-Error-Code", kind)
	}
	w.Header().Set("X-Error-Message", message)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

// allowed answers unless the request may read, or write.
func (h *Hub) allowed(w http.ResponseWriter, r *http.Request, write bool) bool {
	switch r.Header.Get("Authorization") {
	case "Bearer " + WriteToken:
		return true
	case "Bearer " + ReadToken:
		if write {
			Refuse(w, http.StatusForbidden, "", "You don't have the rights to create or change a model under this namespace")
			return false
		}
		return true
	case "":
		Refuse(w, http.StatusUnauthorized, "", "Invalid username or password.")
	default:
		Refuse(w, http.StatusUnauthorized, "", "Invalid credentials in Authorization header")
	}
	return false
}

func (h *Hub) answers(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := r.URL.EscapedPath()
	switch {
	case at == "/api/repos/create":
		h.create(w, r)
	case at == "/api/validate-yaml":
		answer(w, map[string]any{"errors": []any{}, "warnings": []any{}})
	case strings.HasSuffix(at, ".git/info/lfs/objects/batch"):
		h.batch(w, r, strings.TrimSuffix(at[1:], ".git/info/lfs/objects/batch"))
	case at == "/lfs/complete":
		h.complete(w, r)
	case at == "/lfs/verify":
		h.verify(w, r)
	case strings.HasPrefix(at, "/api/models/"):
		h.model(w, r, strings.Split(strings.TrimPrefix(at, "/api/models/"), "/"))
	default:
		h.resolve(w, r, strings.Split(strings.TrimPrefix(at, "/"), "/"))
	}
}

func (h *Hub) create(w http.ResponseWriter, r *http.Request) {
	if !h.allowed(w, r, true) {
		return
	}
	var in struct{ Name, Organization, Type, Visibility string }
	if !read(w, r, &in) {
		return
	}
	repo := in.Organization + "/" + in.Name
	switch {
	case in.Organization != Org || in.Type != "" && in.Type != "model": // a model is what is not said to be something else
		Refuse(w, http.StatusForbidden, "", "You don't have the rights to create a model under the namespace \""+in.Organization+"\"")
	case h.repos[repo] != nil:
		Refuse(w, http.StatusConflict, "", "You already created this model repo")
	default:
		h.repos[repo] = &Repo{Private: in.Visibility == "private", Branches: map[string][]Commit{}}
		h.repos[repo].add("main", "initial commit", map[string]string{".gitattributes": "*.safetensors filter=lfs diff=lfs merge=lfs -text\n"})
		answer(w, map[string]string{"url": h.URL + "/" + repo})
	}
}

// read reads a request's JSON. What the hub does not know is an error here.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		Refuse(w, http.StatusBadRequest, "", err.Error())
		return false
	}
	return true
}

// find answers unless there is such a repository.
func (h *Hub) find(w http.ResponseWriter, r *http.Request, name string, write bool) *Repo {
	if !h.allowed(w, r, write) {
		return nil
	}
	repo := h.repos[name]
	if repo == nil {
		Refuse(w, http.StatusNotFound, "RepoNotFound", "Repository not found")
	}
	return repo
}

// model answers /api/models/ORG/NAME/CALL/BRANCH.
func (h *Hub) model(w http.ResponseWriter, r *http.Request, parts []string) {
	if len(parts) < 2 {
		Refuse(w, http.StatusNotFound, "", "Sorry, we can't find the page you are looking for.")
		return
	}
	name := strings.Join(parts[:2], "/")
	repo := h.find(w, r, name, r.Method == http.MethodPost)
	if repo == nil {
		return
	}
	call, branch := "revision", "main"
	if len(parts) == 4 {
		call, branch = parts[2], strings.ReplaceAll(parts[3], "%2F", "/")
	}
	if call == "branch" {
		if repo.Branches[branch] != nil {
			Refuse(w, http.StatusConflict, "", "Reference already exists")
			return
		}
		repo.Branches[branch] = slices.Clone(repo.Branches["main"])
		answer(w, map[string]any{})
		return
	}
	commits := repo.Branches[branch]
	for _, of := range repo.Branches { // by a commit's id
		if i := slices.IndexFunc(of, func(c Commit) bool { return c.ID == branch }); i >= 0 {
			commits = of[:i+1]
		}
	}
	if len(commits) == 0 {
		Refuse(w, http.StatusNotFound, "RevisionNotFound", "Invalid rev id: "+branch)
		return
	}
	head := commits[len(commits)-1]
	switch call {
	case "revision":
		siblings := []map[string]string{}
		for _, file := range slices.Sorted(maps.Keys(head.Files)) {
			siblings = append(siblings, map[string]string{"rfilename": file})
		}
		answer(w, map[string]any{"_id": "1", "id": name, "sha": head.ID, "private": repo.Private, "siblings": siblings, "tags": []string{}})
	case "preupload":
		h.preupload(w, r, head)
	case "commit":
		h.commit(w, r, name, repo, branch, head)
	case "tree":
		entries := []map[string]any{}
		for _, file := range slices.Sorted(maps.Keys(head.Files)) {
			entries = append(entries, map[string]any{"type": "file", "path": file, "oid": gitDigest(head.Files[file]), "size": len(head.Files[file])})
		}
		answer(w, entries)
	default:
		Refuse(w, http.StatusNotFound, "", "Sorry, we can't find the page you are looking for.")
	}
}

func (h *Hub) isLarge(name string, size int) bool {
	return path.Ext(name) == ".safetensors" || size >= h.LargeFrom
}

func (h *Hub) preupload(w http.ResponseWriter, r *http.Request, head Commit) {
	var in struct {
		Files []struct {
			Path   string
			Sample []byte
			Size   int
		}
		GitIgnore, GitAttributes string
	}
	if !read(w, r, &in) {
		return
	}
	out := []map[string]any{}
	for _, f := range in.Files {
		said := map[string]any{"path": f.Path, "uploadMode": "regular", "shouldIgnore": f.Path == h.Ignored}
		content, have := head.Files[f.Path]
		if h.isLarge(f.Path, f.Size) {
			said["uploadMode"] = "lfs"
			if have {
				said["oid"] = digest(content)
			}
		} else if have {
			said["oid"] = gitDigest(content)
		}
		out = append(out, said)
	}
	answer(w, map[string]any{"files": out})
}

// resolve answers /ORG/NAME/resolve/COMMIT/FILE.
func (h *Hub) resolve(w http.ResponseWriter, r *http.Request, parts []string) {
	if len(parts) != 5 || parts[2] != "resolve" {
		Refuse(w, http.StatusNotFound, "", "Sorry, we can't find the page you are looking for.")
		return
	}
	repo := h.find(w, r, strings.Join(parts[:2], "/"), false)
	if repo == nil {
		return
	}
	for branch, commits := range repo.Branches {
		for i, c := range commits {
			content, ok := c.Files[parts[4]]
			if !ok || c.ID != parts[3] && (branch != parts[3] || i != len(commits)-1) {
				continue
			}
			w.Header().Set("X-Repo-Commit", c.ID)
			w.Header().Set("ETag", `"`+gitDigest(content)+`"`)
			if h.isLarge(parts[4], len(content)) {
				w.Header().Set("X-Linked-Etag", `"`+digest(content)+`"`)
			}
			_, _ = io.WriteString(w, content)
			return
		}
	}
	Refuse(w, http.StatusNotFound, "EntryNotFound", "Entry not found")
}

// add is a commit on a branch. Its id is of its content and of the one before it.
func (r *Repo) add(branch, summary string, files map[string]string) Commit {
	of := sha1.New()
	if commits := r.Branches[branch]; len(commits) > 0 {
		io.WriteString(of, commits[len(commits)-1].ID)
	}
	io.WriteString(of, summary)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(of, "%s %s\n", name, digest(files[name]))
	}
	c := Commit{ID: hex.EncodeToString(of.Sum(nil)), Summary: summary, Files: files}
	r.Branches[branch] = append(r.Branches[branch], c)
	return c
}

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// gitDigest is what git names a file of this content by.
func gitDigest(content string) string {
	sum := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))
	return hex.EncodeToString(sum[:])
}
