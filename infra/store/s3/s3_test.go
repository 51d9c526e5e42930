package s3_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/s3"
	"github.com/reprise-rl/reprise/infra/store/storetest"
)

func TestOpenS3(t *testing.T) {
	keys := s3.StaticKeys("a", "very-secret")
	good := s3.Config{Endpoint: "http://127.0.0.1:1", Bucket: "bbb", Keys: keys}
	cases := []struct {
		name   string
		change func(*s3.Config)
		want   string
	}{
		{"no endpoint", func(c *s3.Config) { c.Endpoint = "" }, "endpoint"},
		{"secret in the endpoint", func(c *s3.Config) { c.Endpoint = "http://me:very-secret@host" }, "credentials"},
		{"path in the endpoint", func(c *s3.Config) { c.Endpoint = "https://host/bucket" }, "path"},
		{"other scheme", func(c *s3.Config) { c.Endpoint = "ftp://host" }, "endpoint"},
		{"no bucket", func(c *s3.Config) { c.Bucket = "" }, "bucket"},
		{"short bucket", func(c *s3.Config) { c.Bucket = "b" }, "bucket \"b\": Bucket name cannot be shorter than 3 characters"},
		{"bad prefix", func(c *s3.Config) { c.Prefix = "a/../b" }, "prefix"},
		{"bad lookup", func(c *s3.Config) { c.Lookup = "magic" }, "lookup"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cfg := good
			c.change(&cfg)
			_, err := s3.Open(cfg)
			require.ErrorIs(t, err, store.ErrRefused)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "very-secret")
		})
	}
	_, err := s3.Open(good)
	require.NoError(t, err)
	text, err := json.Marshal(good)
	require.NoError(t, err)
	for _, s := range []string{fmt.Sprint(good), fmt.Sprintf("%+v %#v %v", good, good, *keys), string(text)} {
		require.NotContains(t, s, "very-secret")
	}
}

func TestCredentialChain(t *testing.T) {
	srv := storetest.StartS3(t)
	cfg := srv.Config("")
	cfg.Keys = nil
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE",
		"MINIO_ROOT_USER", "MINIO_ROOT_PASSWORD", "MINIO_ACCESS_KEY", "MINIO_SECRET_KEY",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"} {
		t.Setenv(name, "")
	}
	// The machine's identity: an address that refuses at once.
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:1/none")
	_, err := s3.Open(cfg)
	require.ErrorIs(t, err, store.ErrDenied)
	require.ErrorContains(t, err, "AWS_ACCESS_KEY_ID")

	file := filepath.Join(home, "credentials")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "[lab]\naws_access_key_id = %s\naws_secret_access_key = %s\n", storetest.AccessKey, storetest.SecretKey), 0o600))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	t.Setenv("AWS_PROFILE", "lab")
	s, err := s3.Open(cfg)
	require.NoError(t, err)
	require.NoError(t, s.Check(context.Background()))

	t.Setenv("MINIO_ROOT_USER", storetest.AccessKey)
	t.Setenv("MINIO_ROOT_PASSWORD", "wrong-secret-here")
	s, err = s3.Open(cfg)
	require.NoError(t, err)
	require.ErrorIs(t, s.Check(context.Background()), store.ErrDenied, "the environment goes before the file")

	t.Setenv("AWS_ACCESS_KEY_ID", storetest.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", storetest.SecretKey)
	s, err = s3.Open(cfg)
	require.NoError(t, err)
	require.NoError(t, s.Check(context.Background()))
}

func TestS3Refusals(t *testing.T) {
	srv := storetest.StartS3(t)
	ctx := context.Background()
	good := srv.Store("")
	ref, err := store.PutArtifact(ctx, good, "d", "n", "bin", []byte("x"))
	require.NoError(t, err)

	cases := []struct {
		name   string
		change func(*s3.Config)
		kind   error
		hint   string
	}{
		{"wrong secret", func(c *s3.Config) { c.Keys = s3.StaticKeys(storetest.AccessKey, "wrong-secret-value") }, store.ErrDenied, "credentials"},
		{"wrong key", func(c *s3.Config) { c.Keys = s3.StaticKeys("nobody-at-all", "wrong-secret-value") }, store.ErrDenied, "credentials"},
		{"missing bucket", func(c *s3.Config) { c.Bucket = "another-bucket" }, store.ErrNoBucket, "create the bucket"},
		{"server down", func(c *s3.Config) { c.Endpoint, c.Retries = "http://127.0.0.1:1", 1 }, store.ErrUnavailable, "127.0.0.1:1"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cfg := srv.Config("")
			c.change(&cfg)
			s, err := s3.Open(cfg)
			require.NoError(t, err)
			do := map[string]func() error{
				"put":    func() error { return s.Put(ctx, "a/b", []byte("x"), store.PutOptions{IfAbsent: true}) },
				"large":  func() error { return s.PutFrom(ctx, "a/c", strings.NewReader("x"), 1, store.PutOptions{}) },
				"commit": func() error { _, err := store.Commit(ctx, s, "a/b", []byte("{}")); return err },
				"read":   func() error { _, err := store.GetArtifact(ctx, s, ref); return err },
				"stat":   func() error { _, err := s.Stat(ctx, ref.Key); return err },
				"list": func() error {
					for _, err := range s.List(ctx, "d/") {
						return err
					}
					return nil
				},
				"folders": func() error {
					for _, err := range s.Folders(ctx, "d/") {
						return err
					}
					return nil
				},
				"uploads": func() error {
					for _, err := range s.Uploads(ctx, "d/") {
						return err
					}
					return nil
				},
				"check": func() error { return s.Check(ctx) },
				"head":  func() error { _, err := store.Head(ctx, s, "run"); return err },
			}
			for op, f := range do {
				if c.name == "server down" && op == "commit" {
					continue // it is patient: see TestKill
				}
				err := f()
				require.ErrorIs(t, err, c.kind, op)
				require.ErrorContains(t, err, c.hint, op)
				require.NotContains(t, err.Error(), "wrong-secret-value")
				require.Equal(t, c.kind == store.ErrUnavailable, store.Retryable(err), "%s: %v", op, err)
			}
		})
	}
}

func TestLargeUploads(t *testing.T) {
	srv := storetest.StartS3(t)
	s := srv.Store("p")
	s.SetPartBytes(5 << 20) // the least that S3 allows
	ctx := context.Background()
	body := make([]byte, 23<<20+17)
	_, err := rand.NewChaCha8([32]byte{1}).Read(body)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "big")
	require.NoError(t, os.WriteFile(path, body, 0o644))

	ref, err := putFile(ctx, s, path)
	require.NoError(t, err)
	require.NoError(t, store.VerifyArtifact(ctx, s, ref))
	again, err := putFile(ctx, s, path)
	require.NoError(t, err)
	require.Equal(t, ref, again)
	got, err := store.GetArtifact(ctx, s, ref)
	require.NoError(t, err)
	require.True(t, bytes.Equal(body, got))
	// Conditional in parts, too: nothing is overwritten.
	err = s.PutFrom(ctx, ref.Key, bytes.NewReader(body[:12<<20]), 12<<20, store.PutOptions{IfAbsent: true})
	require.ErrorIs(t, err, store.ErrExists)
	require.NoError(t, store.VerifyArtifact(ctx, s, ref))

	// A file that cannot be read to its end leaves neither object nor parts.
	err = s.PutFrom(ctx, "models/x/short", bytes.NewReader(body[:8<<20]), 12<<20, store.PutOptions{})
	require.Error(t, err)
	_, err = s.Stat(ctx, "models/x/short")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.Empty(t, uploads(t, s))

	// A flipped byte on the server's disk.
	file, err := os.OpenFile(srv.Path("p/"+ref.Key), os.O_RDWR, 0)
	require.NoError(t, err)
	_, err = file.WriteAt([]byte{^body[1<<20]}, 1<<20)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.ErrorIs(t, store.VerifyArtifact(ctx, s, ref), store.ErrAltered)
	_, err = putFile(ctx, s, path)
	require.ErrorIs(t, err, store.ErrAltered)

	// An upload whose process died: gc finds and drops it.
	lost := srv.Store("p")
	lost.SetPartBytes(5 << 20)
	killed := bytesThat(body, func(off int) {
		if off >= 15<<20 {
			srv.Kill()
		}
	})
	require.Error(t, lost.PutFrom(ctx, store.BranchDir("run", 0)+"/snapshots/000001.x/model", killed, int64(len(body)), store.PutOptions{}))
	srv.Restart()
	require.Len(t, uploads(t, s), 1)
	g, err := store.FindGarbage(ctx, s, "run", store.GarbageOptions{Grace: -1, Now: time.Now().Add(time.Minute)})
	require.NoError(t, err)
	require.Len(t, g.Uploads, 1)
	require.NoError(t, store.DeleteGarbage(ctx, s, g))
	require.Empty(t, uploads(t, s))
}

func uploads(t *testing.T, s store.Store) (out []store.Upload) {
	t.Helper()
	for u, err := range s.Uploads(context.Background(), "") {
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), u.Started, time.Hour)
		out = append(out, u)
	}
	return out
}

// bytesThat reads b and calls at with the place of each read.
func bytesThat(b []byte, at func(off int)) io.Reader {
	off := 0
	return readFunc(func(p []byte) (int, error) {
		at(off)
		n := copy(p, b[off:])
		if off += n; n == 0 {
			return 0, io.EOF
		}
		return n, nil
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// TestKill kills the server with SIGKILL while commits and artifacts are written, and
// starts it again: every write that was answered is there, whole, and repeating every
// write is fine.
func TestKill(t *testing.T) {
	srv := storetest.StartS3(t)
	s := srv.Store("")
	ctx := context.Background()
	const writers, each = 4, 150
	body := func(w, i int) []byte {
		return fmt.Appendf(nil, `{"i":%d,"w":%d,"x":%q}`, i, w, strings.Repeat("x", 5000))
	}
	write := func(w, i int) (store.Ref, store.Ref, error) {
		ref, err := store.PutArtifact(ctx, s, fmt.Sprintf("d%d", w), fmt.Sprint(i), "json", body(w, i))
		if err != nil {
			return store.Ref{}, store.Ref{}, err
		}
		commit, err := store.Commit(ctx, s, store.ManifestKey(fmt.Sprint(w), 0, i), body(w, i))
		return ref, commit, err
	}
	var wg sync.WaitGroup
	refs := make([][]store.Ref, writers)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				for {
					ref, commit, err := write(w, i)
					if err == nil {
						refs[w] = append(refs[w], ref, commit)
						break
					}
					if !store.Retryable(err) {
						t.Errorf("writer %d, %d: %v", w, i, err)
						return
					}
				}
			}
		})
	}
	for range 3 {
		time.Sleep(150 * time.Millisecond)
		srv.Kill()
		time.Sleep(20 * time.Millisecond)
		srv.Restart()
	}
	wg.Wait()
	for w := range writers {
		require.Len(t, refs[w], 2*each)
		for _, ref := range refs[w] {
			require.NoError(t, store.VerifyArtifact(ctx, s, ref))
		}
		for i := range each {
			_, _, err := write(w, i)
			require.NoError(t, err)
		}
	}
}

// TestAnswers gives the answers of servers that are slow, full, limited or in conflict.
func TestAnswers(t *testing.T) {
	cases := []struct {
		status int
		code   string
		want   error
	}{
		{503, "SlowDown", store.ErrUnavailable},
		{500, "InternalError", store.ErrUnavailable},
		{507, "XMinioStorageFull", store.ErrUnavailable},
		{429, "TooManyRequests", store.ErrUnavailable},
		{409, "ConditionalRequestConflict", store.ErrConflict},
		{412, "PreconditionFailed", store.ErrExists},
		{403, "AccessDenied", store.ErrDenied},
		{400, "BadDigest", store.ErrUnavailable},
		{400, "InvalidArgument", store.ErrRefused},
		{404, "NoSuchBucket", store.ErrNoBucket},
		{404, "XAdminUserNotFound", store.ErrDenied},
		{404, "SomethingElse", store.ErrRefused},
	}
	for _, c := range cases {
		t.Run(c.code, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/xml")
				w.WriteHeader(c.status)
				fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>%s</Code><Message>As it is.</Message></Error>`, c.code)
			}))
			defer server.Close()
			s, err := s3.Open(s3.Config{Endpoint: server.URL, Region: "us-east-1", Bucket: "bucket", Lookup: "path", Retries: 1, Keys: s3.StaticKeys("a", "very-secret")})
			require.NoError(t, err)
			err = s.Put(context.Background(), "k", []byte("x"), store.PutOptions{IfAbsent: true})
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, "put s3://bucket/k")
			require.NotContains(t, err.Error(), "very-secret")
		})
	}
	// A server that never answers is given up.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	s, err := s3.Open(s3.Config{Endpoint: silent.Addr().String(), Region: "us-east-1", Bucket: "bucket", Keys: s3.StaticKeys("a", "b")})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err = store.Commit(ctx, s, "k", []byte("{}"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// putFile writes a file as models are written, as one of a folder.
func putFile(ctx context.Context, s store.Store, path string) (store.Ref, error) {
	f, err := os.Open(path)
	if err != nil {
		return store.Ref{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return store.Ref{}, err
	}
	folder, err := store.PutFolder(ctx, s, store.ModelPrefix, []store.FolderFile{{Name: "model.safetensors", Open: func() io.Reader { return io.NewSectionReader(f, 0, info.Size()) }, Size: info.Size()}})
	return folder.Files["model.safetensors"], err
}
