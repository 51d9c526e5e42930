package telemetry

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListen(t *testing.T) {
	for _, address := range []string{"9464", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999"} {
		_, err := Listen(t.Context(), address)
		require.ErrorContains(t, err, "listen for Prometheus", address)
	}
	l, err := Listen(t.Context(), ":0")
	require.NoError(t, err)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/metrics$`, URL(l), "nobody else may read unless told so")

	_, err = Listen(t.Context(), l.Addr().String())
	require.ErrorContains(t, err, "address already in use")

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	m := New(Options{})
	go func() { ended <- m.Serve(ctx, l, nil) }()
	for path, want := range map[string]int{"/metrics": 200, "/": 404} {
		r, err := http.Get("http://" + l.Addr().String() + path)
		require.NoError(t, err)
		b, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, want, r.StatusCode)
		if want == 200 {
			require.Contains(t, string(b), "# HELP reprise_iterations_total Iterations committed here.")
		}
	}
	r, err := http.Post(URL(l), "text/plain", nil)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, r.StatusCode)
	cancel()
	require.NoError(t, <-ended)

	closed, err := Listen(t.Context(), ":0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	require.ErrorContains(t, m.Serve(t.Context(), closed, nil), "serve metrics")
}
