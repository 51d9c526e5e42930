// Package stack gives commands their servers and workers: connections with their flags,
// and a dev stack with a worker that lives as long as the command.
package stack

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/codec"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers"
)

// Servers is a running dev stack with connections to it.
type Servers struct {
	*dev.Stack
	Client client.Client
	Bucket store.Store
	Codec  *codec.Codec // the client's; nil where payloads are plain
}

// WithServers starts a dev stack, runs f, and stops the stack.
func WithServers(ctx context.Context, o dev.Options, f func(Servers) error) error {
	return withServers(ctx, o, nil, f)
}

// withServers encrypts payloads by a codec, or where it is nil by the environment's.
func withServers(ctx context.Context, o dev.Options, given *codec.Codec, f func(Servers) error) (err error) {
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
	conn.Settings.DevDir, conn.Settings.Codec = s.Dir(), given
	payloads, err := conn.Settings.PayloadCodec()
	if err != nil {
		return err
	}
	c, err := conn.Temporal(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	bucket, err := conn.Store()
	if err != nil {
		return err
	}
	return f(Servers{Stack: s, Client: c, Bucket: bucket, Codec: payloads})
}

// Served is a running dev stack with a worker on this machine's device.
type Served struct {
	Servers
	Device activities.DeviceInfo
}

// With starts a dev stack and a worker in this process, runs f, and stops both. The
// context of f ends when the worker, a server, or the caller's context ends.
func With(ctx context.Context, o dev.Options, worker workers.Options, f func(context.Context, Served) error) error {
	return with(ctx, o, worker, func(*workers.Options, string) error { return nil }, f)
}

// with is With; prepare completes the worker when the stack's folder is known.
func with(ctx context.Context, o dev.Options, worker workers.Options, prepare func(worker *workers.Options, dir string) error,
	f func(context.Context, Served) error) error {
	worker.Roles = workers.Roles
	if err := worker.Check(); err != nil {
		return err
	}
	if err := findPlugin(worker); err != nil {
		return err
	}
	return withServers(ctx, o, worker.Codec, func(s Servers) error {
		// What its worker warns of is seen: a damaged program cache, an object that is written again.
		warns := Connection{Warns: true}
		worker.Client, worker.Store, worker.Logger, worker.Namespace = s.Client, s.Bucket, warns.Logger(), s.Namespace()
		worker.Codec = s.Codec
		if err := prepare(&worker, s.Dir()); err != nil {
			return err
		}
		return s.withWorker(ctx, func(ctx context.Context, ready func(activities.DeviceInfo)) error {
			worker.Ready = ready
			return workers.Run(ctx, worker)
		}, f)
	})
}

// withWorker runs a worker until f returns. run returns when its context ends, and calls
// ready when the worker serves.
func (s Servers) withWorker(ctx context.Context, run func(ctx context.Context, ready func(activities.DeviceInfo)) error,
	f func(context.Context, Served) error) error {
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

// findPlugin looks at the plugin before servers are started: without it they have no use.
func findPlugin(worker workers.Options) error {
	if _, _, err := plugin.Find(worker.Device.Plugin, ""); err != nil {
		return fmt.Errorf("%w (`make plugin` installs the pinned one; --plugin and %s name another)", err, plugin.Env)
	}
	return nil
}
