package main

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/measure/study"
	"github.com/reprise-rl/reprise/workers/stack"
)

// studyOptions are the flags of study.
type studyOptions struct {
	stack.WorkerFlags
	seeds   int
	out     string
	only    []string
	size    study.Size
	planted bool
	rate    float64
}

func studyCommand() *cobra.Command {
	var o studyOptions
	cmd := &cobra.Command{
		Use:   "study",
		Short: "the echo trap on the bandit: what collapses, and what the detectors see",
		Long: `Runs StarPO with GRPO and with PPO, StarPO-S, and StarPO-S without its selection
on the bandit, at a high arm that is the better choice (p = 0.25) and at one that
is not (p = 0.10), with chance drawn for each member and, as in RAGEN's code, for a
whole group; every setting with several seeds. Detectors warn and change nothing.

Each run's record is kept in FOLDER/runs and not computed again, so that a study
that was interrupted goes on, and more seeds can be added: of the same size and on a
device of the same fingerprint, or another --out is asked for at once. Seed 1 of all
settings comes first, then seed 2. What is made of the records, tables, curves and
plots, is written at the end, and is the same for the same records.

With --planted a collapse is planted instead: runs whose learning rate is raised
after iteration 20, by knob, as Train workflows on a dev stack of their own. It ends
with status 1 where a run does not go back, or ends worse than it was before.`,
		Example: `  reprise study
  reprise study --seeds 3 --only 'starpo-s-*'
  reprise study --planted --seeds 3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.planted {
				return runPlanted(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return runStudy(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.seeds, "seeds", 5, "runs of each setting, with the seeds 1, 2, …")
	f.StringVar(&o.out, "out", ".reprise/study", "where records are kept and tables and plots are written")
	f.StringSliceVar(&o.only, "only", nil, "settings or patterns of them: "+strings.Join(settingNames(), ", "))
	f.IntVar(&o.size.Iterations, "iterations", 80, "iterations of a run")
	f.IntVar(&o.size.Layers, "layers", 2, "layers of the starter")
	f.IntVar(&o.size.Width, "width", 64, "width of the starter")
	f.IntVar(&o.size.Groups, "groups", 8, "groups of an iteration")
	f.IntVar(&o.size.GroupSize, "group-size", 16, "members of a group")
	f.Float64Var(&o.size.LearningRate, "learning-rate", 1e-3, "the policy's learning rate; 0 is the presets'")
	f.BoolVar(&o.planted, "planted", false, "plant a collapse and go back")
	f.Float64Var(&o.rate, "planted-rate", 0.1, "the learning rate that is set: some hundred times what a starter stands")
	o.AddFlags(cmd, 20*time.Second)
	return cmd
}

func settingNames() []string {
	var names []string
	for _, s := range study.Settings() {
		names = append(names, s.Name())
	}
	return names
}

// studyRun is a run that the study wants.
type studyRun struct {
	setting study.Setting
	seed    uint64
}

// chosen are the runs, seed by seed, so that a study that is stopped has the same
// number of seeds everywhere.
func (o studyOptions) chosen() ([]studyRun, error) {
	if o.seeds < 1 {
		return nil, fmt.Errorf("study: --seeds %d: at least 1", o.seeds)
	}
	var settings []study.Setting
	matched := make([]bool, len(o.only))
	for _, s := range study.Settings() {
		wanted := len(o.only) == 0
		for n, pattern := range o.only {
			ok, err := path.Match(pattern, s.Name())
			if err != nil {
				return nil, fmt.Errorf("study: --only %q: %w", pattern, err)
			}
			wanted, matched[n] = wanted || ok, matched[n] || ok
		}
		if wanted {
			settings = append(settings, s)
		}
	}
	for n, pattern := range o.only {
		if !matched[n] {
			return nil, fmt.Errorf("study: --only %q is none of %s", pattern, strings.Join(settingNames(), ", "))
		}
	}
	var runs []studyRun
	for seed := 1; seed <= o.seeds; seed++ {
		for _, s := range settings {
			runs = append(runs, studyRun{s, uint64(seed)})
		}
	}
	return runs, nil
}

// missing are the runs that have no record. A record of another spec is refused.
func (o studyOptions) missing(runs []studyRun) ([]studyRun, error) {
	var out []studyRun
	for _, r := range runs {
		text, err := studySpec(r, o.size)
		if err != nil {
			return nil, err
		}
		digest, err := study.SpecDigest(text)
		if err != nil {
			return nil, err
		}
		record, found, err := study.Folder(o.out).Find(r.setting.Name(), r.seed)
		switch {
		case err != nil:
			return nil, err
		case !found:
			out = append(out, r)
		case record.Spec != digest:
			return nil, fmt.Errorf("study: the record of %s in %s is of other settings (size %+v): use another --out", record.Name(), o.out, record.Size)
		}
	}
	return out, nil
}

// kept are all records that there are, of other settings too. What is made has to be
// of their size and of their device, or no tables can be made of both: hours later.
func (o studyOptions) kept() ([]study.Record, error) {
	kept, err := study.Folder(o.out).Records()
	if err != nil {
		return nil, fmt.Errorf("study: %w: use another --out", err)
	}
	if len(kept) > 0 && kept[0].Size != o.size {
		return nil, fmt.Errorf("study: the records in %s are of size %+v, not %+v: use another --out", o.out, kept[0].Size, o.size)
	}
	return kept, nil
}

func studySpec(r studyRun, size study.Size) ([]byte, error) {
	return presets.With(r.setting.Algorithm.Preset, r.setting.Fields(size, r.seed))
}

func runStudy(ctx context.Context, o studyOptions, out, progress io.Writer) error {
	runs, err := o.chosen()
	if err != nil {
		return err
	}
	kept, err := o.kept()
	if err != nil {
		return err
	}
	todo, err := o.missing(runs)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "%d runs of %d iterations, %d of them done already\n", len(runs), o.size.Iterations, len(runs)-len(todo))
	if len(todo) > 0 {
		if err := o.make(ctx, todo, kept, progress); err != nil {
			return err
		}
	}
	return writeStudy(study.Folder(o.out), out)
}

// make makes the runs that are missing, and keeps each one's record beside those that
// were kept before.
func (o studyOptions) make(ctx context.Context, todo []studyRun, kept []study.Record, progress io.Writer) error {
	device, err := model.OpenDevice(model.DeviceOptions{Plugin: o.Plugin, XLAFlags: o.XLAFlags})
	if err != nil {
		return err
	}
	defer device.Close()
	engine, err := activities.NewEngine(device)
	if err != nil {
		return err
	}
	if here := engine.Info().Fingerprint; len(kept) > 0 && kept[0].Fingerprint != here {
		return fmt.Errorf("study: the records in %s are of a device with fingerprint %s, this one's is %s: use another --out", o.out, kept[0].Fingerprint, here)
	}
	runner := study.NewRunner(engine)
	begin := time.Now()
	for n, r := range todo {
		text, err := studySpec(r, o.size)
		if err != nil {
			return err
		}
		record, err := runner.Run(ctx, r.setting, o.size, r.seed, text)
		if err != nil {
			return err
		}
		if err := study.Folder(o.out).Keep(record); err != nil {
			return err
		}
		each := time.Since(begin) / time.Duration(n+1)
		left := each * time.Duration(len(todo)-n-1)
		fmt.Fprintf(progress, "%-26s %s; %d of %d, %.0f s a run, about %s left\n", record.Name(), study.Judge(record), n+1, len(todo), each.Seconds(), left.Round(time.Minute))
	}
	return nil
}
