package dev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// ErrRunning: another stack runs on the folder.
var ErrRunning = errors.New("a dev stack runs already")

// grace is how long a server may take to end when asked.
const grace = 8 * time.Second

// Stack is a running pair of servers.
type Stack struct {
	options  Options
	dir      string
	lock     *os.File
	temporal *child
	s3       *S3Server
	ui       int
	port     int
	failed   chan error
	stop     sync.Once
	stopErr  error
}

// Start starts both servers and returns when they serve: the Temporal server
// with our namespace and search attributes, the S3 server with our bucket.
// Errors: ErrPortInUse, ErrNoTool, ErrRunning, or a server's own, with the end
// of its log. The context bounds the start alone; Stop ends the stack.
func Start(ctx context.Context, options Options) (*Stack, error) {
	options, err := options.resolve()
	if err != nil {
		return nil, fmt.Errorf("start the dev stack: %w", err)
	}
	// A free port may be taken before our server listens on it; then the next.
	for attempt := 1; ; attempt++ {
		stack, err := startOnce(ctx, options)
		if err == nil {
			return stack, nil
		}
		if attempt == 4 || ctx.Err() != nil || !errors.Is(err, errTaken) {
			return nil, fmt.Errorf("start the dev stack: %w", err)
		}
		options.say("    a port was taken meanwhile: trying again")
	}
}

var errTaken = errors.New("a port was taken while a server started")

func startOnce(ctx context.Context, options Options) (_ *Stack, err error) {
	s := &Stack{options: options, dir: options.Dir, failed: make(chan error, 2)}
	if err := s.openFolder(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()

	if s.port, err = (wanted{options.TemporalPort, "Temporal server", flagTemporalPort}).claim(); err != nil {
		return nil, err
	}
	if s.ui, err = (wanted{options.UIPort, "Temporal Web UI", flagUIPort}).claim(s.port); err != nil {
		return nil, err
	}
	s3Port, err := (wanted{options.S3Port, "S3 server", flagS3Port}).claim(s.port, s.ui)
	if err != nil {
		return nil, err
	}
	access, secret, err := loadCredentials(s.dir)
	if err != nil {
		return nil, err
	}
	fair, err := prepareDatabase(s.dir, options.Fair)
	if err != nil {
		return nil, err
	}
	died := func(err error) { s.failed <- err }
	s.temporal = temporalChild(options.TemporalBin, s.dir, s.port, s.ui, options.Ephemeral, fair)
	s.s3, err = newS3Server(options.VersityBin, s.dir, s3Port, S3{
		Region: Region, Bucket: Bucket, AccessKey: access, SecretKey: secret, CredentialsFile: filepath.Join(s.dir, credentialsFile),
	})
	if err != nil {
		return nil, err
	}
	both, bounded := errgroup.WithContext(ctx)
	both.Go(func() error { return s.RestartTemporal(bounded) })
	both.Go(func() error { return s.RestartS3(bounded) })
	if err := both.Wait(); err != nil {
		if s.temporal.portTaken() || s.s3.child.portTaken() {
			err = fmt.Errorf("%w: %w", errTaken, err)
		}
		return nil, err
	}
	// From here on an end is news; before, it is the start's own error.
	s.temporal.watch(died)
	s.s3.child.watch(died)
	if err := markDatabase(s.dir, fair); err != nil {
		return nil, err
	}
	state := State{
		PID: os.Getpid(), Temporal: s.TemporalAddress(), Namespace: Namespace, UI: s.UIURL(),
		S3: s.s3.Endpoint, Region: Region, Bucket: Bucket, Credentials: s.s3.CredentialsFile,
	}
	if err := state.save(s.dir); err != nil {
		return nil, err
	}
	return s, nil
}

// openFolder makes the folder and takes it for this stack alone. The lock is
// the kernel's, so that it goes with the process, however that ends.
func (s *Stack) openFolder() error {
	if s.dir != "" {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return fmt.Errorf("make the stack's folder: %w", err)
		}
	}
	if s.options.Ephemeral {
		dir, err := os.MkdirTemp(s.dir, "reprise-dev-")
		if err != nil {
			return fmt.Errorf("make the stack's folder: %w", err)
		}
		s.dir = dir
	}
	lock, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open the stack's lock: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			by := ""
			if state, err := LoadState(s.dir); err == nil {
				by = fmt.Sprintf(", by process %d, with its Web UI at %s", state.PID, state.UI)
			}
			return fmt.Errorf("%w on %s%s: end it, or choose another folder with --dir", ErrRunning, s.dir, by)
		}
		return fmt.Errorf("lock the stack's folder: %w", err)
	}
	s.lock = lock
	return nil
}

// TemporalAddress is the Temporal server's address, host:port.
func (s *Stack) TemporalAddress() string { return address(s.port) }

// Namespace is the Temporal namespace that holds our search attributes.
func (s *Stack) Namespace() string { return Namespace }

// UIURL is the Web UI's address in a browser.
func (s *Stack) UIURL() string { return "http://" + address(s.ui) }

// S3 is how to reach the bucket.
func (s *Stack) S3() S3 { return s.s3.S3 }

// Dir is the absolute path of the stack's folder.
func (s *Stack) Dir() string { return s.dir }

// Failed delivers an error when a server ends that nobody killed or stopped.
func (s *Stack) Failed() <-chan error { return s.failed }

// KillTemporal ends the Temporal server as by kill -9, and returns when it is gone.
func (s *Stack) KillTemporal() error { return s.temporal.kill() }

// KillS3 ends the S3 server as by kill -9, and returns when it is gone.
func (s *Stack) KillS3() error { return s.s3.Kill() }

// RestartTemporal brings the Temporal server back on its ports and data, and returns when
// it serves; it first stops it if it still runs.
func (s *Stack) RestartTemporal(ctx context.Context) error {
	if err := s.temporal.restart(); err != nil {
		return err
	}
	return awaitTemporal(ctx, s.temporal, s.port, s.ui)
}

// RestartS3 brings the S3 server back on its port and data, and returns when it serves;
// it first stops it if it still runs.
func (s *Stack) RestartS3(ctx context.Context) error { return s.s3.Restart(ctx) }

// Stop ends both servers, in order, at most 8 s each (at once if the stack is ephemeral),
// and frees the folder. Calling it again does nothing and returns the same.
func (s *Stack) Stop() error {
	s.stop.Do(func() { s.stopErr = s.end() })
	return s.stopErr
}

func (s *Stack) end() error {
	var errs []error
	// From now on other programs find no stack here.
	if err := os.Remove(filepath.Join(s.dir, StateFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		errs = append(errs, fmt.Errorf("remove the dev stack's state: %w", err))
	}
	children := []*child{s.temporal}
	if s.s3 != nil {
		children = append(children, s.s3.child)
	}
	for _, c := range children {
		switch {
		case c == nil:
		case s.options.Ephemeral: // there is no data to keep
			errs = append(errs, c.kill())
		default:
			errs = append(errs, c.stop(grace))
		}
	}
	if s.options.Ephemeral {
		if err := os.RemoveAll(s.dir); err != nil {
			errs = append(errs, fmt.Errorf("remove the stack's folder: %w", err))
		}
	}
	if err := s.lock.Close(); err != nil {
		errs = append(errs, fmt.Errorf("give the stack's folder free: %w", err))
	}
	return errors.Join(errs...)
}
