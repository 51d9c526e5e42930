package learn

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/workers/faults"
	"github.com/reprise-rl/reprise/workers/lab/crew"
	"github.com/reprise-rl/reprise/workers/lab/twins"
	"github.com/reprise-rl/reprise/workers/stack"
)

// Killed is a run that was killed again and again, beside the same run undisturbed.
type Killed struct {
	Setting string `json:"setting"`
	Seed    int    `json:"seed"`
	// Spec is the spec of both runs.
	Spec json.RawMessage `json:"spec"`
	// Undisturbed and Killed are the two runs, an iteration each.
	Undisturbed []twins.Committed `json:"undisturbed"`
	Killed      []twins.Committed `json:"killed"`
	Kills       []twins.Kill      `json:"kills"`
	// Equal says that the state fingerprints are equal after every iteration.
	Equal bool `json:"equal"`
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
	s, killed, text, err := twinSpecs(settings[n], seed)
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
		if out.Undisturbed, err = twins.Curve(ctx, on.Bucket, undisturbed.Run); err != nil {
			return err
		}
		out.Killed, err = twins.Curve(ctx, on.Bucket, killed)
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

// twinSpecs are the setting that is trained undisturbed, with snapshots often enough to be killed in,
// and the id of the killed run with the spec of both.
func twinSpecs(s Setting, seed int) (undisturbed Setting, killed string, text []byte, err error) {
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
func trainKilled(ctx context.Context, on stack.Servers, processes *crew.Crew, run string, text []byte, kills int,
	progress io.Writer) ([]twins.Kill, error) {
	iterations, err := iterationsOf(text)
	if err != nil {
		return nil, err
	}
	r := twins.Run{ID: run}
	for n := range kills {
		r.Faults = append(r.Faults, []faults.Fault{planned(n, max(1, iterations/gaps))})
	}
	follow := func(ctx context.Context) { printProgress(ctx, on.Client, run, progress) }
	err = r.Train(ctx, on, processes, text, nil, follow, progress)
	return r.Kills(), err
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
