package learn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/measure/crew"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/watch"
)

// Killed is a run that was killed again and again, beside the same run undisturbed.
type Killed struct {
	Setting string `json:"setting"`
	Seed    int    `json:"seed"`
	// Spec is the spec of both runs.
	Spec json.RawMessage `json:"spec"`
	// Undisturbed and Killed are the two runs, an iteration each.
	Undisturbed []Committed `json:"undisturbed"`
	Killed      []Committed `json:"killed"`
	Kills       []Kill      `json:"kills"`
	// Equal says that the state fingerprints are equal after every iteration.
	Equal bool `json:"equal"`
}

// Committed is what an iteration left.
type Committed struct {
	// Success is the mean success of the sampled episodes, a share.
	Success float64 `json:"success"`
	// State is the state fingerprint after the iteration.
	State string `json:"state"`
}

// Kill is one death of a worker process by SIGKILL.
type Kill struct {
	// Activity is the activity that the worker died in, Phase where in it: see package faults.
	Activity string `json:"activity"`
	Phase    string `json:"phase"`
	// Iteration is the one under way, from 0.
	Iteration int `json:"iteration"`
	// Witness is what the run's history says of the activity that was lost.
	Witness string `json:"witness"`
}

// KilledOptions select the run and how often it is killed.
type KilledOptions struct {
	Options
	// Kills is how many worker processes are killed.
	Kills int
	// Out is the folder that gets KilledFile and PictureFile.
	Out string
}

// The files of RunKilled.
const (
	KilledFile  = "killed.json"
	PictureFile = "killed.svg"
)

// killedIn are the activities that workers are killed in, in turn. The worker that dies in Restore
// is the one that follows a death in Commit.
var killedIn = []string{"Generate", "Update", "Snapshot", "Commit", "Restore", "Generate", "Update", "Snapshot", "Commit"}

// deadline bounds the wait for one kill or for the run's end.
const deadline = 2 * time.Hour

// RunKilled trains the setting named by o.Only with the seed 1 twice on a dev stack, once
// undisturbed and once with a worker process that is killed o.Kills times, and writes both curves
// and a picture to o.Out. Every kill must have left its mark in the run's history.
func RunKilled(ctx context.Context, o KilledOptions, progress io.Writer) (Killed, error) {
	if o.Kills < 1 {
		return Killed{}, fmt.Errorf("learn: --killed %d: at least 1", o.Kills)
	}
	n := slices.IndexFunc(settings, func(s Setting) bool { return s.Name == o.Only })
	if n < 0 {
		return Killed{}, fmt.Errorf("learn: --killed needs --only SETTING: one of %s", Names())
	}
	const seed = 1
	s, killed, text, err := twins(settings[n], seed)
	if err != nil {
		return Killed{}, err
	}
	out := Killed{Setting: settings[n].Name, Seed: seed, Spec: text}
	servers := dev.Options{Dir: o.Dir, Ephemeral: o.Dir == "", Stdout: progress}
	err = stack.WithServers(ctx, servers, func(on stack.Servers) error {
		processes := &crew.Crew{Dir: on.Dir(), Worker: o.Worker}
		defer processes.End()
		if err := processes.Start(ctx); err != nil {
			return err
		}
		undisturbed, err := recorded(ctx, o.Dir, on, s, seed, progress)
		if err != nil {
			return err
		}
		processes.End()
		if out.Kills, err = trainKilled(ctx, on, processes, killed, text, o.Kills, progress); err != nil {
			return err
		}
		if out.Undisturbed, err = committed(ctx, on.Bucket, undisturbed.Run); err != nil {
			return err
		}
		out.Killed, err = committed(ctx, on.Bucket, killed)
		return err
	})
	if err != nil {
		return out, err
	}
	out.Equal = slices.Equal(out.Undisturbed, out.Killed)
	return out, out.write(o.Out)
}

// often is how many snapshots the twins of a run make, so that every kill meets one soon. A
// worker lives for one of so many equal parts of a run, if it does not die in a snapshot or a restore.
const often, gaps = 6, 10

// iterationsOf is how many iterations a spec has.
func iterationsOf(text []byte) (int, error) {
	var of struct {
		Iterations int `json:"iterations"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return 0, fmt.Errorf("learn: read a spec: %w", err)
	}
	return of.Iterations, nil
}

// twins are the setting that is trained undisturbed, with snapshots often enough to be killed in,
// and the id of the killed run with the spec of both.
func twins(s Setting, seed int) (undisturbed Setting, killed string, text []byte, err error) {
	if text, err = specOf(s, seed); err != nil {
		return s, "", nil, err
	}
	iterations, err := iterationsOf(text)
	if err != nil {
		return s, "", nil, err
	}
	killed = runOf(s, seed) + "-killed"
	s.Name += "-undisturbed"
	snapshot := map[string]any{}
	if own, ok := s.Fields["snapshot"].(map[string]any); ok {
		snapshot = maps.Clone(own)
	}
	snapshot["every"] = max(1, iterations/often)
	fields := map[string]any{}
	maps.Copy(fields, s.Fields)
	fields["snapshot"] = snapshot
	s.Fields = fields
	text, err = specOf(s, seed)
	return s, killed, text, err
}

// committed reads what each iteration of a run left.
func committed(ctx context.Context, s store.Store, run string) ([]Committed, error) {
	chain, err := chainOf(ctx, s, run)
	if err != nil {
		return nil, err
	}
	out := make([]Committed, len(chain))
	for i, link := range chain {
		out[i] = Committed{Success: float64(link.Manifest.Metrics[success]), State: link.Manifest.StateAfter}
	}
	return out, nil
}

// planned is the fault of the worker that dies as the n-th, from 0, in the gap-th activity of its
// kind. Each second round strikes at another place of the activity: before its first write, or
// after it has written all.
func planned(n, gap int) faults.Fault {
	f := faults.Fault{Kind: killedIn[n%len(killedIn)], Phase: "inside", Nth: 1}
	switch {
	case f.Kind == "Restore", f.Kind == "Snapshot":
		return f // the first one that comes: snapshots are rare
	case n%len(killedIn) > len(killedIn)/2:
		f.Phase = "written"
	}
	f.Nth = gap
	return f
}

// trainKilled trains with one worker process at a time, which dies of the next fault, and returns
// the kills with their witnesses.
func trainKilled(ctx context.Context, on stack.Servers, processes *crew.Crew, run string, text []byte, kills int, progress io.Writer) ([]Kill, error) {
	iterations, err := iterationsOf(text)
	if err != nil {
		return nil, err
	}
	var out []Kill
	var lives []life
	first, gap := "", max(1, iterations/gaps)
	for n := range kills {
		f := planned(n, gap)
		processes.Fault = f.String()
		if err := processes.Start(ctx); err != nil {
			return nil, err
		}
		if n == 0 {
			w, err := stack.StartTrain(ctx, on.Client, run, text)
			if err != nil {
				return nil, err
			}
			first = w.GetRunID()
		}
		pid, err := dies(ctx, on.Client, processes, run)
		if err != nil {
			return nil, fmt.Errorf("kill %d of %d, in %s: %w", n+1, kills, f, err)
		}
		k := Kill{Activity: f.Kind, Phase: f.Phase}
		if head, err := store.Head(ctx, on.Bucket, run); err == nil {
			k.Iteration = head.Manifest.Iteration + 1
		}
		out, lives = append(out, k), append(lives, life{pid: pid, died: time.Now()})
		fmt.Fprintf(progress, "%-22s kill %d of %d: worker %d died in %s, in iteration %d\n", run, n+1, kills, pid, f.Kind, k.Iteration)
	}
	processes.Fault = ""
	if err := processes.Start(ctx); err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	go printProgress(following, on.Client, run, progress)
	if err := on.Client.GetWorkflow(ctx, run, "").Get(ctx, nil); err != nil {
		return nil, fmt.Errorf("run %s after its kills: %w", run, err)
	}
	lost, err := lostIn(ctx, on.Client, run, first)
	if err != nil {
		return nil, err
	}
	return out, testify(out, lives, lost)
}

// errEnded says that a run had ended before its last kill.
var errEnded = errors.New("the run has ended before: it needs more iterations, or more snapshots")

// dies waits until the only worker process has ended by itself, resumes the run if it paused
// because of the kills before, and returns the process's id.
func dies(ctx context.Context, c client.Client, processes *crew.Crew, run string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	pid := processes.PIDs()[0]
	ended, err := processes.Ended(pid)
	if err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- c.GetWorkflow(ctx, run, "").Get(ctx, nil) }()
	for {
		select {
		case <-ended:
			return pid, processes.Kill(pid)
		case err := <-done:
			return 0, errors.Join(errEnded, err)
		case <-time.After(time.Second):
		}
		s, err := watch.Status(ctx, c, run)
		if err != nil || s.PausedBy == nil {
			continue
		}
		if err := resume(ctx, c, run); err != nil {
			return 0, err
		}
	}
}

func resume(ctx context.Context, c client.Client, run string) error {
	h, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: run, UpdateName: "resume", WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = h.Get(ctx, nil)
	}
	if err != nil {
		return fmt.Errorf("resume run %s: %w", run, err)
	}
	return nil
}

// write writes both files into a folder.
func (k Killed) write(folder string) error {
	picture, err := k.Picture()
	if err != nil {
		return err
	}
	content, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", KilledFile, err)
	}
	if err := writeFile(filepath.Join(folder, KilledFile), append(content, '\n')); err != nil {
		return err
	}
	return writeFile(filepath.Join(folder, PictureFile), picture)
}
