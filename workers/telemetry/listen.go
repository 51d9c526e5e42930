package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Listen opens the address that metrics are served at, host:port. Without a host it
// is 127.0.0.1: who wants others to read says 0.0.0.0.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("listen for Prometheus at %q: not host:port: %w", address, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("listen for Prometheus: %w", err)
	}
	return listener, nil
}

// URL is where the metrics of a listener are read.
func URL(l net.Listener) string { return "http://" + l.Addr().String() + "/metrics" }

// Serve answers at the listener until ctx ends, and closes it.
func (m *Metrics) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           m.Handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		MaxHeaderBytes:    1 << 14,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
