// Package loopback serves HTTP to this machine unless a person names another address: metrics, pages, payloads in the clear.
package loopback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// Listen listens at host:port, without a host at 127.0.0.1. Port 0 is a free one. what begins its errors, as "serve the pages".
func Listen(ctx context.Context, what, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%s at %q: not host:port: %w", what, address, err)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return l, nil
}

// Serve answers at the listener until ctx ends, and closes it. Requests end with ctx too.
func Serve(ctx context.Context, what string, l net.Listener, server *http.Server) error {
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
