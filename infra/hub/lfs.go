package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/infra/human"
)

const (
	// maxParts bounds the parts of a large file, as stores do.
	maxParts = 10_000
	// partsAtOnce is how many parts of a file are sent at the same time.
	partsAtOnce = 4
	// lfsType is the type of what is asked of a Git LFS server.
	lfsType = "application/vnd.git-lfs+json"
)

// action is what to do with a large file: an address, and what belongs to it.
type action struct {
	Href   string         `json:"href"`
	Header map[string]any `json:"header"`
}

// object is what a Git LFS server says of a large file.
type object struct {
	Digest  string `json:"oid"`
	Actions *struct {
		Upload *action `json:"upload"`
		Verify *action `json:"verify"`
	} `json:"actions"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// sendLarge sends the large files that the hub does not have, and gives how many bytes those were.
func (u *upload) sendLarge(ctx context.Context, files []*localFile) (sent int64, err error) {
	var total int64
	for _, f := range files {
		if f.large {
			total += f.size
		}
	}
	u.moved.Store(0)
	stop := u.tell("uploading", total)
	defer stop()
	for _, f := range files {
		if !f.large {
			continue
		}
		had, err := u.sendFile(ctx, f)
		if err != nil {
			return sent, fmt.Errorf("%s: %w", f.name, err)
		}
		if had {
			u.moved.Add(f.size)
			u.Say(fmt.Sprintf("%s: the hub has its %s", f.name, human.Bytes(f.size)))
			continue
		}
		sent += f.size
		u.Say(fmt.Sprintf("%s: sent, %s", f.name, human.Bytes(f.size)))
	}
	return sent, nil
}

// sendFile sends a large file, unless the hub has it. The addresses to send it to are asked for
// right before, and once more if a store refuses them: they expire.
func (u *upload) sendFile(ctx context.Context, f *localFile) (had bool, err error) {
	for renewed := false; ; renewed = true {
		before := u.moved.Load()
		o, err := u.batch(ctx, f)
		if err != nil {
			return false, err
		}
		if o.Actions == nil || o.Actions.Upload == nil {
			return !renewed, nil
		}
		err = u.sendTo(ctx, f, *o.Actions.Upload)
		if answered(err, http.StatusForbidden) && !renewed {
			u.moved.Store(before)
			continue
		}
		if err != nil {
			return false, err
		}
		return false, u.verify(ctx, f, o.Actions.Verify)
	}
}

// batch asks where a large file is to be sent.
func (u *upload) batch(ctx context.Context, f *localFile) (object, error) {
	r, err := asJSON(http.MethodPost, u.Endpoint+"/"+u.Repo+".git/info/lfs/objects/batch", map[string]any{
		"operation": "upload", "transfers": []string{"basic", "multipart"}, "hash_algo": "sha256",
		"ref":     map[string]string{"name": u.Revision},
		"objects": []map[string]any{{"oid": f.digest, "size": f.size}},
	})
	if err != nil {
		return object{}, err
	}
	r.header = http.Header{"Content-Type": {lfsType}, "Accept": {lfsType}}
	got, err := u.call(ctx, r)
	if err != nil {
		return object{}, fmt.Errorf("ask where to send it: %w", err)
	}
	var out struct {
		Transfer string   `json:"transfer"`
		Objects  []object `json:"objects"`
	}
	if err := got.decode(&out); err != nil {
		return object{}, err
	}
	if len(out.Objects) != 1 || out.Objects[0].Digest != f.digest {
		return object{}, errors.New("the hub's answer is not understood: it is not about this file")
	}
	o := out.Objects[0]
	if o.Error != nil {
		return o, &statusError{status: o.Error.Code, message: human.Middle(human.Visible(o.Error.Message), maxMessage)}
	}
	if !slices.Contains([]string{"", "basic", "multipart"}, out.Transfer) && o.Actions != nil {
		return o, fmt.Errorf("%w: the repository takes large files by %q alone, and Reprise sends them by Git LFS: "+
			"write the folder by --out DIR, and upload that by `hf upload`", ErrRefused, human.Middle(human.Visible(out.Transfer), 20))
	}
	return o, nil
}

// sendTo sends a large file as one body, or in parts if the answer has a size for them.
func (u *upload) sendTo(ctx context.Context, f *localFile, to action) error {
	file, err := u.root.Open(f.name)
	if err != nil {
		return err
	}
	defer file.Close()
	size, inParts, err := partSize(to.Header)
	if err != nil {
		return err
	}
	if !inParts {
		_, err := u.put(ctx, file, u.fix(to.Href), fields(to.Header), 0, f.size)
		return err
	}
	parts, err := partAddresses(to.Header, f.size, size)
	if err != nil {
		return err
	}
	type part struct {
		Number int    `json:"partNumber"`
		ETag   string `json:"etag"`
	}
	done := make([]part, len(parts))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(partsAtOnce)
	for i, address := range parts {
		group.Go(func() error {
			from := int64(i) * size
			got, err := u.put(within, file, u.fix(address), nil, from, min(size, f.size-from))
			if err != nil {
				return fmt.Errorf("part %d of %d: %w", i+1, len(parts), err)
			}
			done[i] = part{i + 1, got.header.Get("ETag")}
			if done[i].ETag == "" {
				return fmt.Errorf("part %d of %d: the store does not say what it has", i+1, len(parts))
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r, err := asJSON(http.MethodPost, u.fix(to.Href), map[string]any{"oid": f.digest, "parts": done})
	if err != nil {
		return err
	}
	r.header, r.anonymous = http.Header{"Content-Type": {lfsType}, "Accept": {lfsType}}, true
	if _, err := u.call(ctx, r); err != nil {
		return fmt.Errorf("put its parts together: %w", err)
	}
	return nil
}

// put sends a piece of a file, size bytes from an offset on.
func (u *upload) put(ctx context.Context, file *os.File, address string, header http.Header, from, size int64) (reply, error) {
	var last *counted
	r := request{method: http.MethodPut, address: address, header: header, size: size, anonymous: true}
	r.body = func() io.Reader {
		if last != nil { // another try: what the one before sent does not count
			last.forget()
		}
		last = &counted{r: io.NewSectionReader(file, from, size), n: &u.moved, ctx: ctx}
		return last
	}
	got, err := u.call(ctx, r)
	if err != nil && last != nil {
		last.forget()
	}
	return got, err
}

// verify asks the hub to look at what the store has, if it wants to be asked.
func (u *upload) verify(ctx context.Context, f *localFile, at *action) error {
	if at == nil {
		return nil
	}
	r, err := asJSON(http.MethodPost, u.fix(at.Href), map[string]any{"oid": f.digest, "size": f.size})
	if err != nil {
		return err
	}
	for name, values := range fields(at.Header) {
		r.header[name] = values
	}
	if _, err := u.call(ctx, r); err != nil {
		return fmt.Errorf("have it verified: %w", err)
	}
	return nil
}

// fix leads an address of the public hub to the mirror that Endpoint is, as the hub's own programs do.
func (u *upload) fix(address string) string {
	if rest, ok := strings.CutPrefix(address, publicHub+"/"); ok {
		return u.Endpoint + "/" + rest
	}
	return address
}

// fields are the headers that an action wants.
func fields(of map[string]any) http.Header {
	out := http.Header{}
	for name, value := range of {
		if text, ok := value.(string); ok {
			out.Set(name, text)
		}
	}
	return out
}

// partSize is the size of the parts that a file is to be sent in, if it is.
func partSize(header map[string]any) (size int64, inParts bool, err error) {
	switch v := header["chunk_size"].(type) {
	case nil:
		return 0, false, nil
	case float64:
		size = int64(v)
	case string:
		size, err = strconv.ParseInt(v, 10, 64)
	}
	if err != nil || size <= 0 {
		return 0, false, errors.New("the hub's answer is not understood: the size of parts")
	}
	return size, true, nil
}

// partAddresses are where the parts go, in their order: the headers whose names are numbers, from 1 on.
func partAddresses(header map[string]any, total, size int64) ([]string, error) {
	want := (total-1)/size + 1
	if want > maxParts {
		return nil, fmt.Errorf("the hub wants %d parts, and at most %d are sent", want, maxParts)
	}
	out := make([]string, want)
	found := int64(0)
	for name, value := range header {
		n, err := strconv.ParseInt(name, 10, 64)
		if err != nil {
			continue
		}
		address, ok := value.(string)
		if !ok || n < 1 || n > want || out[n-1] != "" {
			return nil, fmt.Errorf("the hub's answer is not understood: part %d of %d", n, want)
		}
		out[n-1] = address
		found++
	}
	if found != want {
		return nil, fmt.Errorf("the hub's answer is not understood: addresses of %d parts, and there are %d", found, want)
	}
	return out, nil
}

// counted counts what is read of it, and ends with its context.
type counted struct {
	r    io.Reader
	n    *atomic.Int64
	ctx  context.Context
	mine atomic.Int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(p)
	c.n.Add(int64(n))
	c.mine.Add(int64(n))
	return n, err
}

// forget takes back what was counted.
func (c *counted) forget() { c.n.Add(-c.mine.Swap(0)) }
