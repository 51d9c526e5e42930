package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/workers"
)

const (
	// A worker process that ended starts again after restartFirst; the wait doubles with
	// each time up to restartMost, and is restartFirst again after the process has lived for
	// restartCalm.
	restartFirst = time.Second
	restartMost  = 30 * time.Second
	restartCalm  = 5 * time.Minute
	// stopTime is what a worker process needs to stop besides its grace.
	stopTime = 10 * time.Second
)

// reportDescriptor is the first of a process's extra files.
const reportDescriptor = 3

// SupervisedFlag is the flag of `reprise worker` in a process that another one keeps. Such a
// worker logs errors only, and writes its DeviceInfo to descriptor 3 when it serves.
const SupervisedFlag = "supervised"

// Report returns what a supervised worker calls when it serves.
func Report() func(activities.DeviceInfo) {
	syscall.CloseOnExec(reportDescriptor)
	pipe := os.NewFile(reportDescriptor, "supervisor")
	return func(info activities.DeviceInfo) {
		// A supervisor that is gone has ended this process.
		_ = json.NewEncoder(pipe).Encode(info)
		_ = pipe.Close()
	}
}

// WithProcess is With, with the worker in a process of its own, which can end without ending
// this one. If it ends because a new process is needed (see workers.Exits), or is killed, it
// starts again; out gets the reason. flags are the flags of AddWorkerFlags, as they were given.
func WithProcess(ctx context.Context, o dev.Options, worker workers.Options, flags *pflag.FlagSet, out io.Writer,
	f func(context.Context, Served) error) error {
	worker.Roles = workers.Roles
	if err := worker.Check(); err != nil {
		return err
	}
	if err := findPlugin(worker); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	return withServers(ctx, o, worker.Codec, func(s Servers) error {
		arguments := supervisedArguments(s.Dir(), worker.EnvFile, flags)
		p := process{
			out: out, first: restartFirst,
			command: func(ctx context.Context) *exec.Cmd {
				c := exec.CommandContext(ctx, program, arguments...)
				c.Stdout, c.Stderr = os.Stdout, os.Stderr
				c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
				c.WaitDelay = worker.Grace + stopTime
				return c
			},
		}
		return s.withWorker(ctx, p.keep, f)
	})
}

// supervisedArguments are those of the worker of the stack in a folder. Without a file of environments it reads the folder's.
func supervisedArguments(dir, envFile string, flags *pflag.FlagSet) []string {
	out := append([]string{"worker", "--" + SupervisedFlag, "--dev-dir", dir, "--roles=" + allRoles(), logArgument(flags)},
		workerArguments(flags)...)
	if envFile == "" {
		out = append(out, "--env-file="+filepath.Join(dir, workers.EnvFileName))
	}
	return out
}

// allRoles are the roles of a stack's worker, which no variable changes.
func allRoles() string {
	var names []string
	for _, r := range workers.Roles {
		names = append(names, string(r))
	}
	return strings.Join(names, ",")
}

// logArgument gives the worker the format of this command's log, which is text unless a flag says otherwise.
func logArgument(given *pflag.FlagSet) string {
	format := string(LogText)
	if f := given.Lookup(LogFormatFlag); f != nil {
		format = f.Value.String()
	}
	return "--" + LogFormatFlag + "=" + format
}

// workerArguments are the flags of AddWorkerFlags, and the codec's, as they were given.
func workerArguments(given *pflag.FlagSet) []string {
	var out []string
	all := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddWorkerFlags(all, &workers.Options{}, 0)
	all.VisitAll(func(f *pflag.Flag) {
		value := given.Lookup(f.Name).Value
		if list, ok := value.(pflag.SliceValue); ok {
			for _, one := range list.GetSlice() {
				out = append(out, fmt.Sprintf("--%s=%s", f.Name, one))
			}
			return
		}
		out = append(out, fmt.Sprintf("--%s=%s", f.Name, value))
	})
	if f := given.Lookup("codec-key-file"); f != nil && f.Changed {
		out = append(out, "--codec-key-file="+f.Value.String())
	}
	return out
}

// process is a worker in a process of its own.
type process struct {
	command func(context.Context) *exec.Cmd
	out     io.Writer
	first   time.Duration // before the first new start
}

// keep runs the process until ctx ends, and starts it again where a new one is needed. ready
// is called each time it serves.
func (p process) keep(ctx context.Context, ready func(activities.DeviceInfo)) error {
	for wait := p.first; ; wait = min(2*wait, restartMost) {
		began := time.Now()
		err := p.once(ctx, ready)
		if ctx.Err() != nil {
			return nil
		}
		why, again := whyAgain(err)
		if !again {
			return fmt.Errorf("the worker process has ended: %s", why)
		}
		if time.Since(began) > restartCalm {
			wait = p.first
		}
		fmt.Fprintf(p.out, "The worker process has ended: %s. It starts again in %s.\n", why, wait)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// once runs the process once, and returns how it ended.
func (p process) once(ctx context.Context, ready func(activities.DeviceInfo)) error {
	from, to, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe for the worker: %w", err)
	}
	defer from.Close()
	command := p.command(ctx)
	command.ExtraFiles = []*os.File{to}
	ended := make(chan error, 1)
	err = dev.StartChild(command, func(err error) { ended <- err })
	to.Close()
	if err != nil {
		return fmt.Errorf("start the worker: %w", err)
	}
	var info activities.DeviceInfo
	if json.NewDecoder(from).Decode(&info) == nil { // it fails where the process ends before
		ready(info)
	}
	return <-ended
}

// whyAgain says how a process ended, and whether a new one should start.
func whyAgain(err error) (why string, again bool) {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return fmt.Sprint(err), false
	}
	if meaning, known := workers.ExitMeaning(exit.ExitCode()); known {
		return fmt.Sprintf("%s (exit %d)", meaning, exit.ExitCode()), true
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return exit.Error(), ok && status.Signaled()
}
