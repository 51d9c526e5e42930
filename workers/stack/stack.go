// Package stack gives commands their servers and workers: connections with their flags,
// and a dev stack with a worker that lives as long as the command.
package stack

import (
	"context"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers"
)

// Servers is a running dev stack with connections to it.
type Servers struct {
	*dev.Stack
	Client client.Client
	Bucket store.Store
}

// WithServers starts a dev stack, runs f, and stops the stack.
func WithServers(ctx context.Context, o dev.Options, f func(Servers) error) (err error) {
	s, err := dev.Start(ctx, o)
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
	c, err := conn.Temporal(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	bucket, err := conn.Store()
	if err != nil {
		return err
	}
	return f(Servers{Stack: s, Client: c, Bucket: bucket})
}

// Served is a running dev stack with a worker on this machine's device.
type Served struct {
	Servers
	Device activities.DeviceInfo
}

// With starts a dev stack and a worker in this process, runs f, and stops both. The
// context of f ends when the worker, a server, or the caller's context ends.
func With(ctx context.Context, o dev.Options, worker workers.Options, f func(context.Context, Served) error) error {
	worker.Roles = workers.Roles
	if err := worker.Check(); err != nil {
		return err
	}
	return WithServers(ctx, o, func(s Servers) error {
		quiet := Connection{Quiet: true}
		worker.Client, worker.Store, worker.Logger, worker.Namespace = s.Client, s.Bucket, quiet.Logger(), s.Namespace()
		return s.withWorker(ctx, func(ctx context.Context, ready func(activities.DeviceInfo)) error {
			worker.Ready = ready
			return workers.Run(ctx, worker)
		}, f)
	})
}

// withWorker runs a worker until f returns. run returns when its context ends, and calls
// ready when the worker serves.
func (s Servers) withWorker(ctx context.Context, run func(ctx context.Context, ready func(activities.DeviceInfo)) error, f func(context.Context, Served) error) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	ready := make(chan activities.DeviceInfo, 1)
	ended := make(chan struct{})
	var workerErr error // once ended is closed
	go func() {
		defer close(ended)
		workerErr = run(running, func(info activities.DeviceInfo) {
			select {
			case ready <- info:
			default: // a new process of the worker
			}
		})
	}()
	var err error
	select {
	case info := <-ready:
		watched, stop := context.WithCancelCause(running)
		go func() {
			select {
			case died := <-s.Failed():
				stop(died)
			case <-ended:
				stop(workerErr)
			case <-watched.Done():
			}
		}()
		err = f(watched, Served{Servers: s, Device: info})
		if cause := context.Cause(watched); err == nil && ctx.Err() == nil && cause != nil {
			err = cause
		}
		stop(nil)
	case <-ended:
		return workerErr
	}
	cancel()
	<-ended
	if err == nil {
		err = workerErr
	}
	return err
}
