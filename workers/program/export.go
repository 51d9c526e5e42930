package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/policy"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func exportCommand() *cobra.Command {
	var conn stack.Connection
	var options model.DeviceOptions
	var hf, peft string
	var o exportOptions
	iteration, version := -1, -1
	cmd := &cobra.Command{
		Use:   "export RUN --iteration N (--hf DIR [--merge] | --peft DIR)",
		Short: "write the policy as a folder that transformers or PEFT loads",
		Long: `Writes the policy that an iteration made (version N+1) as a Hugging Face model
folder. If the run kept a snapshot of that version, its files are copied. Otherwise
the version is rebuilt on this machine's device, from the newest snapshot before it
and the recorded updates since, and checked against its recorded state fingerprint.
A rebuild needs a device of the run's fingerprint. --version 0 is the policy that
the run began with. Nothing is written to the store. DIR must be new, empty, or
hold the same files, so an export that was killed can be started again. A snapshot of
more than 2 GiB is kept in several files; they are written as transformers would, a file
of at most 5 GB each, into a folder that is new, empty or left by a killed export.

A run with policy.lora trains adapters over a base model. --peft writes the adapters
as PEFT loads them; --hf with --merge writes a whole model, to whose weights they are
added in float32, into a folder that is new or empty, or that a killed export left.`,
		Example: `  reprise export bandit-1 --iteration 29 --hf bandit-1-hf
  reprise export bandit-1 --version 0 --hf untrained-hf
  reprise export lora-1 --iteration 29 --peft lora-1-peft
  reprise export lora-1 --iteration 29 --hf lora-1-hf --merge --dtype bfloat16
  python3 -c 'from transformers import AutoModelForCausalLM as M; M.from_pretrained("bandit-1-hf")'`,
		Args: oneWorkflow("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (iteration < 0) == (version < 0) {
				return errors.New("export: --iteration N (counted from 0) or --version V says which policy, one of them")
			}
			if (hf == "") == (peft == "") {
				return errors.New("export: --hf DIR or --peft DIR says where the folder is to be, one of them")
			}
			if cmd.Flags().Changed("dtype") && !o.merge || o.merge && peft != "" {
				return errors.New("export: --dtype goes with --merge, and --merge with --hf")
			}
			o.peft, o.dir = peft != "", cmp.Or(hf, peft)
			if iteration >= 0 {
				version = iteration + 1
			}
			s, err := storeOf(cmd.Context(), &conn, args[0], false)
			if err != nil {
				return err
			}
			if iteration >= 0 {
				if err := committed(cmd.Context(), s, args[0], iteration); err != nil {
					return err
				}
			}
			open := func() (*model.Device, error) { return model.OpenDevice(options) }
			o.run, o.version = args[0], version
			return exportPolicy(cmd.Context(), s, o, open, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&iteration, "iteration", -1, "the iteration, counted from 0, whose policy is written")
	f.IntVar(&version, "version", -1, "the policy version instead: 0 is before the first iteration")
	f.StringVar(&hf, "hf", "", "the folder of a whole model, as transformers loads it")
	f.StringVar(&peft, "peft", "", "the folder of a run's LoRA adapters, as PEFT loads it")
	f.BoolVar(&o.merge, "merge", false, "with --hf: add a run's LoRA adapters to the weights of its base model")
	f.StringVar(&o.dtype, "dtype", "float32", "with --merge: float32 or bfloat16, which rounds")
	stack.AddDeviceFlags(f, &options, ", as the run's worker had them")
	conn.AddStoreFlags(cmd.Flags())
	return cmd
}

// exportOptions say which version of a run is written, where and how.
type exportOptions struct {
	run     string
	version int
	dir     string
	peft    bool   // adapters alone
	merge   bool   // a whole model, with the adapters added
	dtype   string // of a merged model
}

// fits returns an error unless a run of the spec can be written so.
func (o exportOptions) fits(t spec.Train) error {
	switch adapted := t.Policy.LoRA != nil; {
	case adapted && !o.peft && !o.merge:
		return fmt.Errorf(`run %[1]q trains adapters over a base model. Write the adapters for PEFT:
  reprise export %[1]s --version %[2]d --peft %[3]s
or a whole model, to whose weights they are added:
  reprise export %[1]s --version %[2]d --hf %[3]s --merge`, o.run, o.version, o.dir)
	case !adapted && o.peft:
		return fmt.Errorf("run %q has no adapters: it trains all weights; write them by --hf %s", o.run, o.dir)
	case !adapted && o.merge:
		return fmt.Errorf("run %q has no adapters to merge: leave --merge out", o.run)
	}
	return nil
}

// exportPolicy writes a policy version of a run into a folder. open opens a device if the
// version must be rebuilt.
func exportPolicy(ctx context.Context, s store.Store, o exportOptions, open func() (*model.Device, error), out, progress io.Writer) error {
	policy, err := findPolicy(ctx, s, o.run, o.version)
	if err != nil {
		return err
	}
	t, err := run.ReadSpec(ctx, s, policy.spec)
	if err != nil {
		return err
	}
	if err := o.fits(t); err != nil {
		return err
	}
	from, files := s, policy.files
	if files == nil {
		say := func(line string) { fmt.Fprintln(progress, line) }
		if from, files, err = policy.rebuild(ctx, s, open, say); err != nil {
			return fmt.Errorf("rebuild version %d of run %q: %w", o.version, o.run, err)
		}
	}
	files = policyFiles(files)
	var size int64
	var count int
	switch {
	case t.Policy.LoRA != nil:
		size, count, err = exportAdapters(ctx, s, from, t, policy.base, files, o)
	case policy.head == nil: // the base model, as it was imported
		size, count, err = copyFolder(ctx, from, files, o.dir)
	default:
		size, count, err = exportState(ctx, from, files, o.dir)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\nversion %d of %s (%s): %s, %s, state %s\n", o.dir, o.version, o.run, policy.origin, human.Plural(count, "file"), human.Bytes(size), policy.state)
	return err
}

// exportState writes the policy of a training state in the store. A state is kept in files of at
// most model.SnapshotFile bytes; one of several is written anew, in files as of a model.
func exportState(ctx context.Context, from store.Store, files map[string]store.Ref, dir string) (size int64, count int, err error) {
	if _, sharded := files[model.WeightsIndex]; !sharded {
		return copyFolder(ctx, from, files, dir)
	}
	sharded, err := model.OpenFS(store.FS(ctx, from, files, nil))
	if err != nil {
		return 0, 0, err
	}
	defer sharded.Close()
	files = maps.Clone(files)
	maps.DeleteFunc(files, func(name string, _ store.Ref) bool {
		return strings.HasSuffix(name, ".safetensors") || name == model.WeightsIndex || name == model.ConfigFile
	})
	other, err := run.ModelFiles(ctx, from, files)
	if err != nil {
		return 0, 0, err
	}
	return policy.WriteWhole(dir, sharded.First(), "float32", other)
}

// copyFolder copies files from the store into a folder, and counts them.
func copyFolder(ctx context.Context, from store.Store, files map[string]store.Ref, dir string) (size int64, count int, err error) {
	if err := onlySame(dir, files); err != nil {
		return 0, 0, err
	}
	for _, ref := range files {
		size += ref.Size
	}
	return size, len(files), store.GetFolder(ctx, from, files, dir)
}
