package telemetry

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/reprise-rl/reprise/infra/loopback"
)

// Listen opens the address that metrics are served at, host:port. Without a host it
// is 127.0.0.1: who wants others to read says 0.0.0.0.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	return loopback.Listen(ctx, "listen for Prometheus", address)
}

// URL is where the metrics of a listener are read.
func URL(l net.Listener) string { return "http://" + l.Addr().String() + "/metrics" }

// Serve answers at the listener until ctx ends, and closes it. further, where set, adds what is served beside the metrics.
func (m *Metrics) Serve(ctx context.Context, l net.Listener, further func(*http.ServeMux)) error {
	mux := m.Handler()
	if further != nil {
		further(mux)
	}
	return loopback.Serve(ctx, "serve metrics", l, &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		MaxHeaderBytes:    1 << 14,
	})
}
