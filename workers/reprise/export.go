package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/stack"
)

func exportCommand() *cobra.Command {
	var conn stack.Connection
	var options model.DeviceOptions
	var dir string
	iteration, version := -1, -1
	cmd := &cobra.Command{
		Use:   "export RUN --iteration N --hf DIR",
		Short: "write the policy as a Hugging Face folder that transformers loads",
		Long: `Writes the policy that an iteration made (version N+1) as a Hugging Face model
folder. If the run kept a snapshot of that version, its files are copied. Otherwise
the version is rebuilt on this machine's device, from the newest snapshot before it
and the recorded updates since, and checked against its recorded state fingerprint.
A rebuild needs a device of the run's fingerprint. --version 0 is the policy that
the run began with. Nothing is written to the store. DIR must be new, empty, or
hold the same files, so an export that was killed can be started again.`,
		Example: `  reprise export bandit-1 --iteration 29 --hf bandit-1-hf
  reprise export bandit-1 --version 0 --hf untrained-hf
  python3 -c 'from transformers import AutoModelForCausalLM as M; M.from_pretrained("bandit-1-hf")'`,
		Args: oneWorkflow("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (iteration < 0) == (version < 0) {
				return errors.New("export: --iteration N (counted from 0) or --version V says which policy, one of them")
			}
			if dir == "" {
				return errors.New("export: --hf DIR says where the folder is to be")
			}
			if iteration >= 0 {
				version = iteration + 1
			}
			s, err := conn.Store()
			if err != nil {
				return err
			}
			if iteration >= 0 {
				if err := committed(cmd.Context(), s, args[0], iteration); err != nil {
					return err
				}
			}
			open := func() (*model.Device, error) { return model.OpenDevice(options) }
			return exportPolicy(cmd.Context(), s, args[0], version, dir, open, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&iteration, "iteration", -1, "the iteration, counted from 0, whose policy is written")
	f.IntVar(&version, "version", -1, "the policy version instead: 0 is before the first iteration")
	f.StringVar(&dir, "hf", "", "the folder")
	stack.AddDeviceFlags(f, &options, ", as the run's worker had them")
	conn.AddStoreFlags(cmd.Flags())
	return cmd
}

// exportPolicy writes a policy version of a run into a folder. open opens a device if the
// version must be rebuilt.
func exportPolicy(ctx context.Context, s store.Store, run string, version int, dir string, open func() (*model.Device, error), out, progress io.Writer) error {
	policy, err := findPolicy(ctx, s, run, version)
	if err != nil {
		return err
	}
	from, files := s, policy.files
	if files == nil {
		say := func(line string) { fmt.Fprintln(progress, line) }
		if from, files, err = policy.rebuild(ctx, s, open, say); err != nil {
			return fmt.Errorf("rebuild version %d of run %q: %w", version, run, err)
		}
	}
	files = policyFiles(files)
	if err := onlySame(dir, files); err != nil {
		return err
	}
	if err := store.GetFolder(ctx, from, files, dir); err != nil {
		return err
	}
	var size int64
	for _, ref := range files {
		size += ref.Size
	}
	_, err = fmt.Fprintf(out, "%s\nversion %d of %s (%s): %s, %s, state %s\n", dir, version, run, policy.origin, human.Plural(len(files), "file"), human.Bytes(size), policy.state)
	return err
}
