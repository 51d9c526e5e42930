package s3_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/s3"
	"github.com/reprise-rl/reprise/infra/store/storetest"
)

// A server that hangs is given up after the patience, once, whatever the operation; the error says for what was waited. The
// server that has gone on serves the same store.
func TestHungServerIsGivenUp(t *testing.T) {
	srv := storetest.StartS3(t)
	ctx := t.Context()
	cfg := srv.Config("p")
	cfg.Patience = 300 * time.Millisecond
	s, err := s3.Open(cfg)
	require.NoError(t, err)
	s.SetPartBytes(5 << 20)
	body := make([]byte, 11<<20)
	ref, err := store.PutArtifact(ctx, s, "d", "n", "bin", body)
	require.NoError(t, err)

	list := func(prefix string) error {
		for _, err := range s.List(ctx, prefix) {
			return err
		}
		return nil
	}
	operations := map[string]struct {
		do   func() error
		want string
	}{
		"put":    {func() error { return s.Put(ctx, "a", []byte("x"), store.PutOptions{IfAbsent: true}) }, "PUT reprise-test/p/a: no answer in 0.3 s"},
		"upload": {func() error { return s.PutFrom(ctx, "b", bytes.NewReader(body), int64(len(body)), store.PutOptions{}) }, "POST reprise-test/p/b: no answer in 0.3 s"},
		"stat":   {func() error { _, err := s.Stat(ctx, ref.Key); return err }, "HEAD reprise-test/p/" + ref.Key + ": no answer in 0.3 s"},
		"read":   {func() error { return store.VerifyArtifact(ctx, s, ref) }, "GET reprise-test/p/" + ref.Key + ": no answer in 0.3 s"},
		"list":   {func() error { return list("d/") }, "GET reprise-test/: no answer in 0.3 s"},
		"check":  {func() error { return s.Check(ctx) }, "GET reprise-test/: no answer in 0.3 s"},
		"delete": {func() error { return s.Delete(ctx, "c") }, "DELETE reprise-test/p/c: no answer in 0.3 s"},
		"folders": {func() error {
			for _, err := range s.Folders(ctx, "d/") {
				return err
			}
			return nil
		}, "GET reprise-test/: no answer"},
		"uploads": {func() error {
			for _, err := range s.Uploads(ctx, "") {
				return err
			}
			return nil
		}, "GET reprise-test/: no answer"},
	}
	// A body that was begun before the freeze ends in the same way.
	half, _, err := s.Open(ctx, ref.Key, 0)
	require.NoError(t, err)
	_, err = io.ReadFull(half, make([]byte, 1000))
	require.NoError(t, err)
	srv.Freeze()
	for name, o := range operations {
		begin := time.Now()
		err := o.do()
		require.ErrorIs(t, err, store.ErrUnavailable, name)
		require.ErrorContains(t, err, o.want, name)
		require.Less(t, time.Since(begin), 3*time.Second, "%s: it is not sent again and again", name)
	}
	_, err = io.Copy(io.Discard, half)
	require.ErrorContains(t, err, "GET reprise-test/p/"+ref.Key+": no byte for 0.3 s within the answer")
	half.Close()

	// What is left until the deadline decides where that is less, so that there is time to say so.
	short, stop := context.WithTimeout(ctx, 1200*time.Millisecond)
	defer stop()
	_, err = s.Stat(short, ref.Key)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.NoError(t, short.Err())
	_, err = s.Stat(short, ref.Key)
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.NoError(t, short.Err())

	srv.Thaw()
	for name, o := range operations {
		if err := o.do(); name != "put" || !errors.Is(err, store.ErrExists) { // what it had received it did
			require.NoError(t, err, name)
		}
	}
	require.NoError(t, store.VerifyArtifact(ctx, s, ref))
}

// A request lasts as long as bytes flow: patience is for silence alone. Nor does it count what the caller does meanwhile.
func TestSlowRequestsAreNotCut(t *testing.T) {
	// What the kernel's buffers hold is sent and not yet taken: it is little beside the body, whatever the kernel.
	const patience, pieces, size = 1500 * time.Millisecond, 60, 60 << 20
	pause := func() { time.Sleep(30 * time.Millisecond) }
	took := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			piece := make([]byte, size/pieces)
			for {
				n, err := io.ReadFull(r.Body, piece)
				if took += n; err != nil {
					break
				}
				pause()
			}
			w.Header().Set("ETag", `"x"`)
			return
		}
		w.Header().Set("Content-Length", strconv.Itoa(1000*pieces))
		w.Header().Set("ETag", `"x"`)
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		for range pieces {
			_, _ = w.Write(make([]byte, 1000))
			w.(http.Flusher).Flush()
			pause()
		}
	}))
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetReadBuffer(64 << 10)
		return ctx
	}
	server.Start()
	defer server.Close()
	s, err := s3.Open(s3.Config{Endpoint: server.URL, Region: "us-east-1", Bucket: "bucket", Lookup: "path", Retries: 1,
		Keys: s3.StaticKeys("a", "b"), Patience: patience})
	require.NoError(t, err)
	begin := time.Now()
	require.NoError(t, s.Put(t.Context(), "k", make([]byte, size), store.PutOptions{}))
	require.Equal(t, size, took)
	require.Greater(t, time.Since(begin), patience, "the server was slow")

	begin = time.Now()
	body, _, err := s.Open(t.Context(), "k", 0)
	require.NoError(t, err)
	defer body.Close()
	_, err = io.ReadFull(body, make([]byte, 4000))
	require.NoError(t, err)
	time.Sleep(patience + patience/4) // the caller's own time
	_, err = io.Copy(io.Discard, body)
	require.NoError(t, err)
	require.Greater(t, time.Since(begin), patience)
}
