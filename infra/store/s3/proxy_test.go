package s3_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/s3"
	"github.com/reprise-rl/reprise/infra/store/storetest"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/answers.txt")

// kindNames are the kinds of errors as the table has them.
var kindNames = []struct {
	kind error
	name string
}{
	{store.ErrDivergence, "divergence"}, {store.ErrAltered, "altered"}, {store.ErrNotFound, "not found"}, {store.ErrExists, "exists"},
	{store.ErrDenied, "denied"}, {store.ErrNoBucket, "no bucket"}, {store.ErrConflict, "conflict"}, {store.ErrRefused, "refused"},
	{store.ErrUnavailable, "unavailable"}, {store.ErrInvalid, "invalid"},
}

func kindName(err error) string {
	if err == nil {
		return "ok"
	}
	for _, k := range kindNames {
		if errors.Is(err, k.kind) {
			return k.name
		}
	}
	return "? " + err.Error()
}

// TestOneAnswer gives each kind of request one answer that is not the server's, and then none: what comes out of the operation, and that
// making it again leaves the right object.
func TestOneAnswer(t *testing.T) {
	srv := storetest.StartS3(t)
	proxy := storetest.StartProxy(t, srv.Endpoint, nil)
	ctx := context.Background()
	cfg := srv.Config("p")
	cfg.Endpoint = proxy.Endpoint
	s, err := s3.Open(cfg)
	require.NoError(t, err)
	s.SetPartBytes(5 << 20)
	direct := srv.Store("p")
	large := bytes.Repeat([]byte("0123456789abcdef"), 5<<16+1) // in two parts

	type operation struct {
		name string
		call storetest.Call
		do   func(key string) error
	}
	put := func(key string) error {
		_, err := store.PutArtifact(ctx, s, key, "n", "bin", []byte(key))
		return err
	}
	upload := func(key string) error {
		_, err := store.PutFolder(ctx, s, key+"/n.", []store.FolderFile{{Name: "x", Open: func() io.Reader { return bytes.NewReader(large) }, Size: int64(len(large))}})
		return err
	}
	read := func(key string) error {
		ref, err := store.PutArtifact(ctx, direct, key, "n", "bin", []byte(key))
		require.NoError(t, err)
		body, err := store.GetArtifact(ctx, s, ref)
		if err == nil && string(body) != key {
			return fmt.Errorf("other bytes")
		}
		return err
	}
	operations := []operation{
		{"artifact", storetest.Put, put},
		{"commit", storetest.Put, func(key string) error { _, err := store.Commit(ctx, s, key+"/m.json", []byte(`{}`)); return err }},
		{"large artifact", storetest.Head, upload},
		{"large artifact", storetest.Create, upload},
		{"large artifact", storetest.PutPart, upload},
		{"large artifact", storetest.Complete, upload},
		{"read", storetest.Get, read},
		{"stat", storetest.Head, func(key string) error {
			require.NoError(t, direct.Put(ctx, key+"/x", []byte("x"), store.PutOptions{}))
			_, err := s.Stat(ctx, key+"/x")
			return err
		}},
		{"list", storetest.List, func(key string) error {
			require.NoError(t, direct.Put(ctx, key+"/x", []byte("x"), store.PutOptions{}))
			n := 0
			for _, err := range s.List(ctx, key+"/") {
				if err != nil {
					return err
				}
				n++
			}
			if n != 1 {
				return fmt.Errorf("%d objects", n)
			}
			return nil
		}},
		{"list uploads", storetest.Uploads, func(key string) error {
			for _, err := range s.Uploads(ctx, key) {
				return err
			}
			return nil
		}},
		{"delete", storetest.Delete, func(key string) error {
			require.NoError(t, direct.Put(ctx, key+"/x", []byte("x"), store.PutOptions{}))
			return s.Delete(ctx, key+"/x")
		}},
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-26s", "# go test ./infra/store/s3")
	for _, o := range operations {
		fmt.Fprintf(&table, " %-14s", o.name)
	}
	fmt.Fprintf(&table, "\n%-26s", "# -run OneAnswer -rewrite")
	for _, o := range operations {
		fmt.Fprintf(&table, " %-14s", strings.TrimSuffix(string(o.call), " upload"))
	}
	answers := []storetest.Answer{{Done: true}, {}}
	for _, status := range storetest.Statuses {
		answers = append(answers, storetest.Answer{Status: status, Code: storetest.CodeOf(status)}, storetest.Answer{Status: status})
	}
	for _, answer := range answers {
		title := fmt.Sprintf("%d %s", answer.Status, answer.Code)
		switch {
		case answer.Done:
			title = "lost, done"
		case answer.Status == 0:
			title = "lost"
		case answer.Code == "":
			title += "page"
		}
		fmt.Fprintf(&table, "\n%-26s", title)
		for i, o := range operations {
			if answer.Code == "" && answer.Status > 0 && o.name == "large artifact" {
				fmt.Fprintf(&table, " %-14s", "")
				continue // as an artifact's
			}
			key := fmt.Sprintf("%s-%d", strings.NewReplacer(" ", "-", ",", "").Replace(title), i)
			proxy.Rule(func(r storetest.Request) *storetest.Answer {
				if r.Call != o.call || r.Nth > 1 || !strings.HasPrefix(r.Key, "p/"+key) {
					return nil
				}
				return &answer
			})
			err := o.do(key)
			require.NotEmpty(t, proxy.Given(), "%s, %s: the fault did not happen", title, o.name)
			fmt.Fprintf(&table, " %-14s", kindName(err))
			require.NotContains(t, fmt.Sprint(err), storetest.SecretKey)
			// What was left is nothing or the right object: doing it again succeeds.
			proxy.Rule(nil)
			require.NoError(t, o.do(key), "%s, %s: made again", title, o.name)
			for object, err := range direct.List(ctx, key) {
				require.NoError(t, err)
				require.Contains(t, []int64{int64(len(key)), int64(len(large)), 1, 2}, object.Size, "%s of %s", object.Key, title)
			}
		}
	}
	// An upload whose id was lost stays, and one whose part was on its way while it was dropped may stay, as S3 says of itself: gc
	// drops them.
	for u, err := range direct.Uploads(ctx, "") {
		require.NoError(t, err)
		require.Regexp(t, "^lost-done-3/|-4/", u.Key, "an upload is left")
		require.NoError(t, direct.AbortUpload(ctx, u))
	}
	got := regexp.MustCompile(` +\n`).ReplaceAllString(table.String()+"\n", "\n")
	if *rewrite {
		require.NoError(t, os.WriteFile("testdata/answers.txt", []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile("testdata/answers.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// An object under a fixed key has no digest that a reader knows: the server's own finds a bit that flipped on the way.
func TestFixedObjectsAreVerified(t *testing.T) {
	srv := storetest.StartS3(t)
	flips := 0
	proxy := storetest.StartProxy(t, srv.Endpoint, func(r storetest.Request) *storetest.Answer {
		if r.Call != storetest.Get || r.Nth > flips {
			return nil
		}
		return &storetest.Answer{Flip: true}
	})
	cfg := srv.Config("p")
	cfg.Endpoint = proxy.Endpoint
	s, err := s3.Open(cfg)
	require.NoError(t, err)
	want, err := store.Commit(t.Context(), s, "runs/r/spec.json", []byte(`{"digest":"0123"}`))
	require.NoError(t, err)
	flips = 1
	body, ref, err := store.ReadFixed(t.Context(), s, want.Key, 1000)
	require.NoError(t, err)
	require.Equal(t, want, ref)
	require.Equal(t, `{"digest":"0123"}`, string(body))
	require.Len(t, proxy.Given(), 1)
	proxy.Rule(func(r storetest.Request) *storetest.Answer { return &storetest.Answer{Flip: true} })
	_, ref, err = store.ReadFixed(t.Context(), s, want.Key, 1000)
	require.NoError(t, err, "the same twice is damage of what is stored, which whoever knows its digest finds")
	require.NotEqual(t, want.Digest, ref.Digest)
}
