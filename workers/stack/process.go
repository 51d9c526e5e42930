package stack

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/keeper"
	"github.com/reprise-rl/reprise/workers"
)

// SupervisedFlag is the flag of `reprise worker` in a process that computes for another one, and QuietFlag of one that logs
// errors only.
const (
	SupervisedFlag = "supervised"
	QuietFlag      = "quiet"
)

// WithProcess is With, with the device in a process of its own, which can end without ending
// this one. If it ends because a new process is needed (see workers.Exits), or is killed, it
// starts again; out gets the reason. flags are the flags of AddWorkerFlags, as they were given.
func WithProcess(ctx context.Context, o dev.Options, worker workers.Options, flags *pflag.FlagSet, out io.Writer,
	f func(context.Context, Served) error) error {
	return with(ctx, o, worker, func(worker *workers.Options, dir string) error {
		if worker.EnvFile == "" {
			worker.EnvFile = filepath.Join(dir, workers.EnvFileName)
		}
		var err error
		arguments := append([]string{"worker", "--" + QuietFlag, "--dev-dir", dir, logArgument(flags)}, workerArguments(flags)...)
		worker.Child, err = Child(arguments, worker.MetricsListen != "", out)
		return err
	}, f)
}

// Child is this program as the process that computes for a worker, which has these arguments.
func Child(arguments []string, metrics bool, out io.Writer) (*workers.ChildOptions, error) {
	program, err := keeper.Executable() // another build has other programs, or another protocol
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	arguments = append(slices.Clone(arguments), "--"+SupervisedFlag, "--metrics-listen=")
	if metrics { // at a port of its own, which the worker reads
		arguments = append(arguments, "--metrics-listen=127.0.0.1:0")
	}
	return &workers.ChildOptions{Out: out, Command: func() *exec.Cmd {
		c := exec.Command(program, arguments...)
		c.Args[0] = os.Args[0]
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		return c
	}}, nil
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
