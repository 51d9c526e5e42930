package methods

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/telemetry/iterations"
	"github.com/reprise-rl/reprise/workers/watch"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

const (
	// stackFolder is where in the study's folder its dev stack keeps everything.
	stackFolder = "dev"
	// askEvery is the time between two queries of the sweep's table, tellEvery between two lines of progress.
	askEvery  = time.Second
	tellEvery = time.Minute
)

// make runs what is left to do as a Sweep on the study's own dev stack, and saves each run's record when it has
// ended. A study that was interrupted finds the Sweep and its runs on that stack, and they continue.
func (o Options) make(ctx context.Context, todo []wanted, records []Record, progress io.Writer) ([]Record, error) {
	servers := dev.Options{Dir: filepath.Join(o.Out, stackFolder), Stdout: progress}
	f := follower{out: o.Out, progress: progress, records: records, began: time.Now(), told: time.Now()}
	err := stack.With(ctx, servers, o.Worker, func(ctx context.Context, on stack.Served) (err error) {
		f.on = on
		if f.todo, err = possible(todo, records, on.Device.Fingerprint, progress); err != nil {
			return err
		}
		if f.sweepOf, err = o.newSweep(on.Device.Fingerprint); err != nil {
			return err
		}
		fmt.Fprintf(progress, "%s: %s/namespaces/%s/workflows/%s\n", f.id, on.UIURL(), on.Namespace(), f.id)
		return f.run(ctx)
	})
	if ctx.Err() != nil {
		return nil, fmt.Errorf("study: stopped; %d of %d records are in %s, and the same command continues: %w", len(f.records), len(records)+len(todo), o.Out, ctx.Err())
	}
	return f.records, err
}

// possible are the runs that a device can make: all of the seeds that no other device has begun.
func possible(todo []wanted, records []Record, here string, progress io.Writer) ([]wanted, error) {
	left := 0
	can := slices.DeleteFunc(slices.Clone(todo), func(w wanted) bool {
		other := slices.ContainsFunc(records, func(r Record) bool { return r.Seed == w.seed && r.Fingerprint != here })
		if other {
			left++
		}
		return other
	})
	if left == 0 {
		return can, nil
	}
	why := fmt.Sprintf("%s left out: this device's fingerprint is %s, and their seeds have records of another device. The runs of a seed are compared on one device",
		human.Plural(left, "run"), here)
	if len(can) == 0 {
		return nil, fmt.Errorf("study: %s: use another --out, or more --seeds", why)
	}
	fmt.Fprintln(progress, why)
	return can, nil
}

// follower starts a study's Sweep, adds what it lacks, and records its runs.
type follower struct {
	sweepOf
	on       stack.Served
	out      string
	progress io.Writer
	// todo are the runs without a record, failed those that ended without one and why.
	todo    []wanted
	failed  []string
	records []Record
	made    int
	began   time.Time
	told    time.Time
}

// run returns when every run has a record or has failed.
func (f *follower) run(ctx context.Context) error {
	first, err := f.start(groups(f.todo)[0])
	if err != nil {
		return err
	}
	w, err := stack.StartSweep(ctx, f.on.Client, f.id, first)
	if err != nil {
		return err
	}
	page, err := f.table(ctx, w)
	if err != nil {
		return err
	}
	if err := f.add(ctx, page); err != nil {
		return err
	}
	for {
		if err := f.look(ctx, page); err != nil {
			return err
		}
		if len(f.todo) == 0 {
			break
		}
		if err := watch.Sleep(ctx, askEvery); err != nil {
			return err
		}
		if page, err = f.table(ctx, w); err != nil {
			return err
		}
	}
	if len(f.failed) > 0 {
		return fmt.Errorf("study: %s without a record:\n  %s\nThe same command tries again", human.Plural(len(f.failed), "run"), strings.Join(f.failed, "\n  "))
	}
	if !slices.ContainsFunc(page.Rows, unfinished) { // the Sweep's own table comes after its last run
		if err := w.Get(ctx, nil); err != nil {
			return fmt.Errorf("sweep %s: %w", f.id, err)
		}
	}
	return nil
}

func unfinished(row workflows.TrialLine) bool { return !row.State.Final() }

// table asks for the Sweep's table until it has trials, or has failed before.
func (f *follower) table(ctx context.Context, w client.WorkflowRun) (workflows.TablePage, error) {
	for {
		page, err := watch.Table(ctx, f.on.Client, f.id)
		if err == nil && page.Counts.Trials > 0 {
			return page, nil
		}
		d, err := f.on.Client.DescribeWorkflowExecution(ctx, f.id, "")
		if err == nil && d.WorkflowExecutionInfo.Status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING &&
			d.WorkflowExecutionInfo.Status != enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW {
			if err := w.Get(ctx, nil); err != nil {
				return page, fmt.Errorf("sweep %s: %w", f.id, err)
			}
		}
		if err := watch.Sleep(ctx, askEvery); err != nil {
			return page, err
		}
	}
}

// add adds the runs that the Sweep lacks: it begins with those of one group, and may be older than this call.
func (f *follower) add(ctx context.Context, page workflows.TablePage) error {
	absent := slices.DeleteFunc(slices.Clone(f.todo), func(w wanted) bool {
		return slices.ContainsFunc(page.Rows, w.is)
	})
	for _, g := range groups(absent) {
		h, err := f.on.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: f.id, UpdateName: "add-trials", WaitForStage: client.WorkflowUpdateStageCompleted, Args: []any{f.trials(g)},
		})
		if err == nil {
			err = h.Get(ctx, nil)
		}
		if err != nil {
			return fmt.Errorf("add %s to sweep %s: %w", strings.Join(g.settings, ", "), f.id, err)
		}
	}
	return nil
}

// is says whether a line of the Sweep's table is of the run.
func (w wanted) is(row workflows.TrialLine) bool {
	return row.Setting == w.setting() && row.Seed == w.seed
}

// look records the runs that have ended since the last call, and tells how far the others are.
func (f *follower) look(ctx context.Context, page workflows.TablePage) error {
	var open []string
	for _, row := range page.Rows {
		i := slices.IndexFunc(f.todo, func(w wanted) bool { return w.is(row) })
		switch {
		case i < 0:
		case row.State == sweep.Done:
			if err := f.record(ctx, f.todo[i], row.Run); err != nil {
				return err
			}
			f.todo = slices.Delete(f.todo, i, i+1)
		case row.State.Final():
			f.failed = append(f.failed, fmt.Sprintf("%s is %s. %s", row.Run, row.State, human.Visible(row.Note)))
			f.todo = slices.Delete(f.todo, i, i+1)
		case row.State.Open():
			open = append(open, progressText(row, f.todo[i].tokens))
		}
	}
	if len(f.todo) > 0 && len(open) > 0 && time.Since(f.told) >= tellEvery {
		f.told = time.Now()
		fmt.Fprintln(f.progress, strings.Join(open, "; "))
	}
	return nil
}

// progressText says how far an open run is.
func progressText(row workflows.TrialLine, tokens int) string {
	text := fmt.Sprintf("%s %s", row.Trial, row.State)
	if v, ok := row.Metrics[activities.TotalSampledTokens]; ok && row.Iterations > 0 {
		text += fmt.Sprintf(", iteration %d, %.0f of %d tokens", row.Iterations, float64(v.Last), tokens)
	}
	if row.Note != "" {
		text += ": " + human.Visible(row.Note)
	}
	return text
}

// record makes the record of a run that has ended, and saves all records.
func (f *follower) record(ctx context.Context, w wanted, run string) error {
	r := Record{Method: w.method.Name, Rate: w.rate, Seed: w.seed, Until: w.tokens, Spec: w.spec, Fingerprint: f.on.Device.Fingerprint}
	links, err := iterations.Load(ctx, f.on.Bucket, run)
	if err != nil {
		return fmt.Errorf("record %s: %w", r.Name(), err)
	}
	for _, link := range links {
		r.add(link.Manifest)
	}
	f.records = append(f.records, r)
	if err := save(f.out, f.records); err != nil {
		return err
	}
	f.made++
	each := time.Since(f.began) / time.Duration(f.made)
	left := each * time.Duration(len(f.todo)-1)
	fmt.Fprintf(f.progress, "%-28s %3d iterations, success %4.1f %%; %d of %d, %.0f s a run, about %s left\n",
		r.Name(), len(r.Tokens), 100*r.last(), f.made, f.made+len(f.todo)-1, each.Seconds(), left.Round(time.Minute))
	return nil
}
