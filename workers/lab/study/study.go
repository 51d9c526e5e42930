package study

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
)

// Options select what is run and where its records are.
type Options struct {
	// Worker configures the device and the workers.
	Worker workers.Options
	// Seeds is how many runs each setting has.
	Seeds int
	// Out is the folder of the records, tables and plots.
	Out string
	// Only restricts the settings to these names or patterns.
	Only []string
	Size Size
	// Rate is the learning rate that [Plant] sets.
	Rate float64
	// Supervised makes the runs of [Plant] continue through the collapse, without a rollback: with
	// supervised rows of this origin, or with [NoRows]. Empty leaves both as they are.
	Supervised string
}

// Names lists the names of all settings.
func Names() []string {
	var names []string
	for _, s := range Settings() {
		names = append(names, s.Name())
	}
	return names
}

// wantedRun is a run of the study.
type wantedRun struct {
	setting Setting
	seed    uint64
}

// chosen lists the runs to make, seed by seed, so that an interrupted study has nearly the
// same number of seeds of each setting.
func (o Options) chosen() ([]wantedRun, error) {
	if o.Seeds < 1 {
		return nil, fmt.Errorf("study: --seeds %d: at least 1", o.Seeds)
	}
	var settings []Setting
	matched := make([]bool, len(o.Only))
	for _, s := range Settings() {
		wanted := len(o.Only) == 0
		for n, pattern := range o.Only {
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
	for n, pattern := range o.Only {
		if !matched[n] {
			return nil, fmt.Errorf("study: --only %q is none of %s", pattern, strings.Join(Names(), ", "))
		}
	}
	var runs []wantedRun
	for seed := 1; seed <= o.Seeds; seed++ {
		for _, s := range settings {
			runs = append(runs, wantedRun{s, uint64(seed)})
		}
	}
	return runs, nil
}

// missing lists the runs without a record. A record of another spec is an error.
func (o Options) missing(runs []wantedRun) ([]wantedRun, error) {
	records, err := Folder(o.Out).Records()
	if err != nil {
		return nil, err
	}
	var out []wantedRun
	for _, r := range runs {
		text, err := studySpec(r, o.Size)
		if err != nil {
			return nil, err
		}
		digest, err := SpecDigest(text)
		if err != nil {
			return nil, err
		}
		switch record, found := find(records, r.setting.Name(), r.seed); {
		case !found:
			out = append(out, r)
		case record.Spec != digest:
			return nil, fmt.Errorf("study: the record of %s in %s is of other settings (size %+v): use another --out", record.Name(), o.Out, record.Size)
		}
	}
	return out, nil
}

// existing reads the records in the folder, including those of other settings. New records
// must have the same size and device, or the tables at the end could not be made.
func (o Options) existing() ([]Record, error) {
	existing, err := Folder(o.Out).Records()
	if err != nil {
		return nil, fmt.Errorf("study: %w", err)
	}
	if len(existing) > 0 && existing[0].Size != o.Size {
		return nil, fmt.Errorf("study: the records in %s are of size %+v, not %+v: use another --out", o.Out, existing[0].Size, o.Size)
	}
	return existing, nil
}

func studySpec(r wantedRun, size Size) ([]byte, error) {
	return presets.With(r.setting.Algorithm.Preset, r.setting.Fields(size, r.seed))
}

// Run makes the runs without a record, and then the tables and plots of all records.
func Run(ctx context.Context, o Options, out, progress io.Writer) error {
	runs, err := o.chosen()
	if err != nil {
		return err
	}
	existing, err := o.existing()
	if err != nil {
		return err
	}
	todo, err := o.missing(runs)
	if err != nil {
		return err
	}
	fmt.Fprintf(progress, "%d runs of %d iterations, %d of them done already\n", len(runs), o.Size.Iterations, len(runs)-len(todo))
	if len(todo) > 0 {
		if err := o.make(ctx, todo, existing, progress); err != nil {
			return err
		}
	}
	return writeStudy(Folder(o.Out), out)
}

// make makes the given runs and saves their records.
func (o Options) make(ctx context.Context, todo []wantedRun, existing []Record, progress io.Writer) error {
	opened, err := model.OpenDevice(o.Worker.Device)
	if err != nil {
		return err
	}
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	if err != nil {
		return err
	}
	if here := engine.Info().Fingerprint; len(existing) > 0 && existing[0].Fingerprint != here {
		return fmt.Errorf("study: the records in %s are of a device with fingerprint %s, this one's is %s: use another --out", o.Out, existing[0].Fingerprint, here)
	}
	runner := NewRunner(engine)
	begin := time.Now()
	for n, r := range todo {
		text, err := studySpec(r, o.Size)
		if err != nil {
			return err
		}
		record, err := runner.Run(ctx, r.setting, o.Size, r.seed, text)
		if err != nil {
			return err
		}
		if err := Folder(o.Out).Save(record); err != nil {
			return err
		}
		each := time.Since(begin) / time.Duration(n+1)
		left := each * time.Duration(len(todo)-n-1)
		fmt.Fprintf(progress, "%-26s %s; %d of %d, %.0f s a run, about %s left\n", record.Name(), Judge(record), n+1, len(todo), each.Seconds(), left.Round(time.Minute))
	}
	return nil
}

// writeStudy writes the tables and plots of a folder's records and prints the tables.
func writeStudy(folder Folder, out io.Writer) error {
	records, err := folder.Records()
	if err != nil {
		return err
	}
	files, err := Files(records)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := folder.Write(f.Name, f.Body); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(out, Tables(records))
	return err
}
