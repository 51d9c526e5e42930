package study

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
)

// Options say what is run, how large it is, and where its records are.
type Options struct {
	// Worker are the options of the workers.
	Worker workers.Options
	// Seeds is how many runs each setting has.
	Seeds int
	// Out is the folder of the records and of what is made of them.
	Out string
	// Only are names of settings, or patterns of them; all where it is empty.
	Only []string
	Size Size
	// Rate is the learning rate that [Plant] sets.
	Rate float64
}

// Names are those of all settings.
func Names() []string {
	var names []string
	for _, s := range Settings() {
		names = append(names, s.Name())
	}
	return names
}

// studyRun is a run that the study wants.
type studyRun struct {
	setting Setting
	seed    uint64
}

// chosen are the runs, seed by seed, so that a study that is stopped has the same
// number of seeds everywhere.
func (o Options) chosen() ([]studyRun, error) {
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
	var runs []studyRun
	for seed := 1; seed <= o.Seeds; seed++ {
		for _, s := range settings {
			runs = append(runs, studyRun{s, uint64(seed)})
		}
	}
	return runs, nil
}

// missing are the runs that have no record. A record of another spec is refused.
func (o Options) missing(runs []studyRun) ([]studyRun, error) {
	var out []studyRun
	for _, r := range runs {
		text, err := studySpec(r, o.Size)
		if err != nil {
			return nil, err
		}
		digest, err := SpecDigest(text)
		if err != nil {
			return nil, err
		}
		record, found, err := Folder(o.Out).Find(r.setting.Name(), r.seed)
		switch {
		case err != nil:
			return nil, err
		case !found:
			out = append(out, r)
		case record.Spec != digest:
			return nil, fmt.Errorf("study: the record of %s in %s is of other settings (size %+v): use another --out", record.Name(), o.Out, record.Size)
		}
	}
	return out, nil
}

// kept are all records that there are, of other settings too. What is made has to be
// of their size and of their device, or no tables can be made of both: hours later.
func (o Options) kept() ([]Record, error) {
	kept, err := Folder(o.Out).Records()
	if err != nil {
		return nil, fmt.Errorf("study: %w: use another --out", err)
	}
	if len(kept) > 0 && kept[0].Size != o.Size {
		return nil, fmt.Errorf("study: the records in %s are of size %+v, not %+v: use another --out", o.Out, kept[0].Size, o.Size)
	}
	return kept, nil
}

func studySpec(r studyRun, size Size) ([]byte, error) {
	return presets.With(r.setting.Algorithm.Preset, r.setting.Fields(size, r.seed))
}

// Run makes the runs that have no record yet, and then what is made of all records.
func Run(ctx context.Context, o Options, out, progress io.Writer) error {
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
	fmt.Fprintf(progress, "%d runs of %d iterations, %d of them done already\n", len(runs), o.Size.Iterations, len(runs)-len(todo))
	if len(todo) > 0 {
		if err := o.make(ctx, todo, kept, progress); err != nil {
			return err
		}
	}
	return writeStudy(Folder(o.Out), out)
}

// make makes the runs that are missing, and keeps each one's record beside those that
// were kept before.
func (o Options) make(ctx context.Context, todo []studyRun, kept []Record, progress io.Writer) error {
	device, err := model.OpenDevice(o.Worker.Device)
	if err != nil {
		return err
	}
	defer device.Close()
	engine, err := activities.NewEngine(device)
	if err != nil {
		return err
	}
	if here := engine.Info().Fingerprint; len(kept) > 0 && kept[0].Fingerprint != here {
		return fmt.Errorf("study: the records in %s are of a device with fingerprint %s, this one's is %s: use another --out", o.Out, kept[0].Fingerprint, here)
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
		if err := Folder(o.Out).Keep(record); err != nil {
			return err
		}
		each := time.Since(begin) / time.Duration(n+1)
		left := each * time.Duration(len(todo)-n-1)
		fmt.Fprintf(progress, "%-26s %s; %d of %d, %.0f s a run, about %s left\n", record.Name(), Judge(record), n+1, len(todo), each.Seconds(), left.Round(time.Minute))
	}
	return nil
}

// writeStudy writes what is made of a folder's records, and prints the tables.
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
