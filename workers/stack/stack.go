// Package stack is how a command reaches servers and a worker: connections and their
// flags, and a dev stack with a worker that lasts as long as the command.
package stack

import (
	"context"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers"
)

// Served is a dev stack with a worker, and how to reach it.
type Served struct {
	*dev.Stack
	Client client.Client
	Bucket store.Store
	Device activities.DeviceInfo
}

// With runs f on a dev stack with a worker, and ends both afterwards. The
// worker is part of this process; f's context ends when it, a server, or the
// caller's context does.
func With(ctx context.Context, stack dev.Options, serve WorkerFlags, f func(context.Context, Served) error) (err error) {
	o, err := serve.Options()
	if err != nil {
		return err
	}
	s, err := dev.Start(ctx, stack)
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := s.Stop(); err == nil {
			err = stopErr
		}
	}()
	conn := Connection{Quiet: true}
	conn.Settings.DevDir = s.Dir()
	o.Logger, o.Namespace = conn.Logger(), s.Namespace()
	if o.Client, err = conn.Temporal(ctx); err != nil {
		return err
	}
	defer o.Client.Close()
	if o.Store, err = conn.Store(); err != nil {
		return err
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := make(chan activities.DeviceInfo, 1)
	o.Ready = func(info activities.DeviceInfo) { ready <- info }
	ended := make(chan error, 1)
	go func() { ended <- workers.Run(running, o) }()
	select {
	case info := <-ready:
		watched, stop := context.WithCancelCause(running)
		go func() {
			select {
			case died := <-s.Failed():
				stop(died)
			case <-watched.Done():
			}
		}()
		err = f(watched, Served{Stack: s, Client: o.Client, Bucket: o.Store, Device: info})
		if cause := context.Cause(watched); err == nil && ctx.Err() == nil && cause != nil {
			err = cause
		}
		stop(nil)
	case err := <-ended:
		return err
	}
	cancel()
	if workerErr := <-ended; err == nil {
		err = workerErr
	}
	return err
}
