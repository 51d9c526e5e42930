package connect

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"go.uber.org/zap"
	"google.golang.org/grpc/credentials"
)

// reloading reads the TLS files again for each connection, so that certificates, keys and
// authorities can be replaced under a running worker: open connections continue, those
// that are made afterwards use the new ones.
type reloading struct {
	credentials.TransportCredentials // of the settings as they were first
	load                             func() (*tls.Config, error)
	logger                           *zap.Logger

	mu   sync.Mutex
	last *tls.Config // the newest that could be used
}

func newReloading(first *tls.Config, load func() (*tls.Config, error), logger *zap.Logger) *reloading {
	return &reloading{TransportCredentials: credentials.NewTLS(first), load: load, logger: logger, last: first}
}

// ClientHandshake implements [credentials.TransportCredentials].
func (r *reloading) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(r.current()).ClientHandshake(ctx, authority, conn)
}

// Clone implements [credentials.TransportCredentials].
func (r *reloading) Clone() credentials.TransportCredentials {
	r.mu.Lock()
	defer r.mu.Unlock()
	return newReloading(r.last, r.load, r.logger)
}

// current is what the files say now. While they are being replaced they may not fit
// together: then the last that did is used.
func (r *reloading) current() *tls.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	config, err := r.load()
	if err != nil {
		r.logger.Warn("the TLS files cannot be used now; those read before are", zap.Error(err))
		return r.last
	}
	r.last = config
	return config
}
