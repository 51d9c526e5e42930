package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/reprise-rl/reprise/infra/human"
)

// Upload says what is uploaded, and where to.
type Upload struct {
	// Folder is a local folder. Its files are uploaded; it has no folders.
	Folder string
	// Repo is the model's name at the hub, ORG/NAME. It is created if it does not exist.
	Repo string
	// Revision is the branch, "main" if it is empty. It begins at main if it does not exist.
	Revision string
	// Private makes a new repository private. One that exists and is public is then refused.
	Private bool
	// Message is the commit's summary.
	Message string
	// Card is a file of Folder that replaces one of the repository only if Mark is in that; "" checks none.
	Card, Mark string
	// Stale reports whether a file of the repository is removed if Folder does not have it; nil removes none.
	Stale func(file string) bool
	// Say is told the progress, a line every few seconds; nil tells nobody.
	Say func(line string)
}

// Uploaded is what an upload led to.
type Uploaded struct {
	// Commit is the branch's newest commit.
	Commit string
	// Changed is false if the branch had all of it before, so that no commit was made.
	Changed bool
	// Sent is how many bytes of large files were sent, without those that the hub had.
	Sent int64
	// Removed are the stale files that the commit removes.
	Removed []string
	// Address is the commit's page.
	Address string
}

// maxFiles bounds the files of an upload.
const maxFiles = 2000

// repoForm is ORG/NAME as the hub has them.
var repoForm = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*$`)

// CheckRepo returns an error unless a model of the hub can have this name.
func CheckRepo(repo string) error {
	_, name, _ := strings.Cut(repo, "/")
	switch {
	case !repoForm.MatchString(repo):
		return fmt.Errorf(`%w: %q is not the name of a model: it is ORG/NAME, of letters, digits, "-", "_" and "."; ORG may be a user`, ErrRefused, repo)
	case len(repo) > 96, strings.Contains(repo, "--"), strings.Contains(repo, ".."),
		strings.HasSuffix(name, ".git"), strings.ContainsAny(repo[len(repo)-1:], "-."):
		return fmt.Errorf(`%w: the hub has no model named %q: at most 96 characters, no "--" or "..", and no "-", "." or ".git" at the end`, ErrRefused, repo)
	}
	return nil
}

// Upload puts a folder's files into one commit. Large files go before it, one after the other,
// each as the hub says; those that the hub has are not sent again, so an upload that was
// interrupted is started again to go on. The branch is changed only by the commit, and only if
// nobody else has changed it since the upload began.
func (h Hub) Upload(ctx context.Context, u Upload) (Uploaded, error) {
	u.Revision = cmp.Or(u.Revision, "main")
	if u.Say == nil {
		u.Say = func(string) {}
	}
	if err := h.CheckUpload(u); err != nil {
		return Uploaded{}, err
	}
	root, err := os.OpenRoot(u.Folder)
	if err != nil {
		return Uploaded{}, fmt.Errorf("open the folder to upload: %w", err)
	}
	defer root.Close()
	files, err := filesIn(root)
	if err != nil {
		return Uploaded{}, err
	}
	up := &upload{Hub: h, Upload: u, root: root, files: files}
	out, err := up.run(ctx)
	if err != nil {
		return out, fmt.Errorf("upload to %s: %w", u.Repo, up.explain(err))
	}
	return out, nil
}

// CheckUpload returns an error for an upload that cannot be begun: of a wrong name or branch, or
// without a token. It asks nobody. Upload checks the same.
func (h Hub) CheckUpload(u Upload) error {
	switch {
	case h.Offline:
		return fmt.Errorf("%w: HF_HUB_OFFLINE is set, so nothing is uploaded", ErrRefused)
	case h.Token == "":
		return fmt.Errorf("%w: HF_TOKEN is not set: an upload needs an access token of %s that may write", ErrRefused, h.Endpoint)
	case strings.ContainsFunc(h.Token, func(c rune) bool { return c > unicode.MaxASCII || !unicode.IsGraphic(c) || c == ' ' }):
		return fmt.Errorf("%w: HF_TOKEN has spaces or line ends in it, which no token has", ErrRefused)
	case commitForm.MatchString(u.Revision):
		return fmt.Errorf("%w: revision %s is a commit; an upload needs a branch", ErrRefused, u.Revision)
	}
	return CheckRepo(u.Repo)
}

// localFile is a file to upload.
type localFile struct {
	name   string
	size   int64
	sample []byte // its first bytes
	large  bool   // it goes by Git LFS
	remote string // what the branch has under its name, as digest; "" if nothing
	digest string // SHA-256 of a large file, git's SHA-1 of another
}

// sampleSize is how much of a file the hub sees before it says how to upload it.
const sampleSize = 512

// filesIn lists a folder.
func filesIn(root *os.Root) ([]*localFile, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("list the folder to upload: %w", err)
	}
	if len(entries) == 0 || len(entries) > maxFiles {
		return nil, fmt.Errorf("the folder to upload has %s, and may have 1 to %d", human.Plural(len(entries), "file"), maxFiles)
	}
	var out []*localFile
	for _, e := range entries {
		f, err := readSample(root, e.Name())
		if err != nil {
			return nil, fmt.Errorf("read %s of the folder to upload: %w", e.Name(), err)
		}
		out = append(out, f)
	}
	return out, nil
}

func readSample(root *os.Root, name string) (*localFile, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a file")
	}
	sample, err := io.ReadAll(io.LimitReader(f, sampleSize))
	return &localFile{name: name, size: info.Size(), sample: sample}, err
}

// upload is an upload under way.
type upload struct {
	Hub
	Upload
	root  *os.Root
	files []*localFile
	moved atomic.Int64 // bytes of large files that the hub has so far, of this upload
}

// api is the address of one of the model's calls.
func (u *upload) api(call string) string { return u.Endpoint + "/api/models/" + u.Repo + call }

// onBranch is the address of a call that names the branch.
func (u *upload) onBranch(call string) string {
	return u.api("/" + call + "/" + url.PathEscape(u.Revision))
}

func (u *upload) run(ctx context.Context) (Uploaded, error) {
	before, err := u.ready(ctx)
	if err != nil {
		return Uploaded{}, err
	}
	if err := u.checkCard(ctx, before); err != nil {
		return Uploaded{}, err
	}
	changed, err := u.plan(ctx)
	if err != nil {
		return Uploaded{}, err
	}
	out := Uploaded{Commit: before.Commit, Removed: u.stale(before)}
	out.Address = u.Endpoint + "/" + u.Repo + "/commit/" + out.Commit
	if len(changed)+len(out.Removed) == 0 {
		return out, nil
	}
	if out.Sent, err = u.sendLarge(ctx, changed); err != nil {
		return out, err
	}
	out.Changed = true
	return u.commit(ctx, before, changed, out)
}

// ready finds the repository and the branch as it is, and makes them where they are not there.
func (u *upload) ready(ctx context.Context) (at info, err error) {
	err = u.ask(ctx, http.MethodGet, u.api(""), nil, &at)
	if missing(err) {
		if err := u.create(ctx); err != nil {
			return at, fmt.Errorf("create it: %w", err)
		}
		err = u.ask(ctx, http.MethodGet, u.api(""), nil, &at)
	}
	if err != nil {
		return at, fmt.Errorf("look it up: %w", err)
	}
	if u.Private && !at.Private {
		return at, fmt.Errorf("%w: it exists and is public: make it private at the hub, or publish without --private", ErrRefused)
	}
	if err = u.ask(ctx, http.MethodGet, u.onBranch("revision"), nil, &at); missing(err) && u.Revision != "main" {
		if err = u.ask(ctx, http.MethodPost, u.onBranch("branch"), struct{}{}, nil); err != nil && !answered(err, http.StatusConflict) {
			return at, fmt.Errorf("make branch %q: %w", u.Revision, err)
		}
		err = u.ask(ctx, http.MethodGet, u.onBranch("revision"), nil, &at)
	}
	if err == nil && !commitForm.MatchString(at.Commit) {
		err = errors.New("the hub's answer is not understood: no commit")
	}
	if err != nil {
		return at, fmt.Errorf("look up branch %q: %w", u.Revision, err)
	}
	return at, nil
}

// create makes the repository. One that is there by now is as good.
func (u *upload) create(ctx context.Context) error {
	org, name, _ := strings.Cut(u.Repo, "/")
	in := map[string]string{"name": name, "organization": org, "type": "model"}
	if u.Private {
		in["visibility"] = "private"
	}
	err := u.ask(ctx, http.MethodPost, u.Endpoint+"/api/repos/create", in, nil)
	if answered(err, http.StatusConflict) {
		return nil
	}
	return err
}

// maxCard bounds the card that is looked at, in bytes.
const maxCard = 4 << 20

// checkCard returns an error if the repository has a card of somebody else's.
func (u *upload) checkCard(ctx context.Context, at info) error {
	for _, file := range at.Files {
		if u.Card == "" || file.Name != u.Card {
			continue
		}
		got, err := u.call(ctx, request{method: http.MethodGet, address: u.Endpoint + "/" + u.Repo + "/resolve/" + at.Commit + "/" + url.PathEscape(u.Card)})
		if err != nil {
			return fmt.Errorf("look at its %s: %w", u.Card, err)
		}
		if !strings.Contains(string(got.body[:min(len(got.body), maxCard)]), u.Mark) {
			return fmt.Errorf("%w: its %s was written by somebody else, and is not replaced: rename it at the hub, or publish to another name", ErrRefused, u.Card)
		}
	}
	return nil
}

// stale are the repository's files that the commit removes.
func (u *upload) stale(at info) (out []string) {
	have := map[string]bool{}
	for _, f := range u.files {
		have[f.name] = true
	}
	for _, file := range at.Files {
		if u.Stale != nil && !have[file.Name] && u.Stale(file.Name) {
			out = append(out, file.Name)
		}
	}
	return out
}

// explain adds what to do to an error that the hub's answer is the reason of.
func (u *upload) explain(err error) error {
	var status *statusError
	if !errors.As(err, &status) {
		return err
	}
	words := strings.ToLower(status.message)
	full := strings.Contains(words, "quota") || strings.Contains(words, "storage") && (strings.Contains(words, "limit") || strings.Contains(words, "exceed"))
	advice := ""
	switch {
	case status.store != "" && !status.transient():
		return err // the store of large files, which knows no token
	case full, status.status == http.StatusInsufficientStorage:
		advice = "the account's storage at the hub is used up: remove what is not needed there, or extend it; then publish again"
	case status.status == http.StatusRequestEntityTooLarge:
		advice = "the hub takes no file or commit of this size: its documentation has the limits"
	case status.status == http.StatusUnauthorized:
		advice = "it does not know the token of HF_TOKEN: make one that may write, at the hub under Settings, Access Tokens"
	case status.status == http.StatusForbidden:
		org, _, _ := strings.Cut(u.Repo, "/")
		advice = fmt.Sprintf("the token of HF_TOKEN may not write there: it needs the write role for %s, at the hub under Settings, Access Tokens", org)
	case status.status == http.StatusNotFound:
		advice = "there is no such repository or branch, or the token of HF_TOKEN may not see it"
	case status.status == http.StatusConflict, status.status == http.StatusPreconditionFailed:
		advice = fmt.Sprintf("somebody changed %s meanwhile: look at it, and publish again; what was uploaded is not sent again", u.Revision)
	case status.transient():
		return fmt.Errorf("%w; publish again later: what was uploaded is not sent again", err)
	default:
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return fmt.Errorf("%w: %w; %s", ErrRefused, err, advice)
}

// answered reports whether an error is an answer of this status.
func answered(err error, status int) bool {
	var of *statusError
	return errors.As(err, &of) && of.status == status
}

// missing reports whether an error says that a repository or branch is not there. A hub says 401
// also for repositories that do not exist, unless it refuses the token itself.
func missing(err error) bool {
	var of *statusError
	return errors.As(err, &of) && (of.status == http.StatusNotFound || of.status == http.StatusUnauthorized && of.kind == "RepoNotFound")
}

// tell says the progress every few seconds, until it is stopped.
func (u *upload) tell(what string, total int64) (stop func()) {
	begun, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
	from := u.moved.Load()
	go func() {
		defer close(ended)
		tick := time.NewTicker(u.bounds.orUsual().tell)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				n := u.moved.Load()
				u.Say(fmt.Sprintf("%s: %s of %s, %s/s", what, human.Bytes(n), human.Bytes(total),
					human.Bytes(int64(float64(n-from)/time.Since(begun).Seconds()))))
			}
		}
	}()
	return func() { close(done); <-ended }
}
