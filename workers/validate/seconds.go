package validate

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// CheckpointEvery is the iterations between the checkpoints of the trainer that a preemption is
// compared with.
const CheckpointEvery = 100

// Seconds is what an iteration of a run takes on several devices, and what a preemption costs it,
// computed from figures of the device.
type Seconds struct {
	Figures Figures `json:"figures"`
	Devices int     `json:"devices"`
	// Needs is the bytes that the fullest device holds.
	Needs int64 `json:"needs_bytes"`
	// Parts are those of an iteration, one after the other. Iteration is their sum.
	Parts     []PartSeconds `json:"parts"`
	Iteration float64       `json:"iteration_seconds"`
	// Preempted is what the loss of the whole process costs on average, at a random moment.
	Preempted Preemption `json:"preemption"`
	// Checkpointed is the same of a trainer that writes a checkpoint of the same bytes every
	// CheckpointEvery iterations and continues from the newest.
	Checkpointed Preemption `json:"checkpointed"`
}

// PartSeconds is the time of a part of an iteration.
type PartSeconds struct {
	Part    string  `json:"part"`
	Seconds float64 `json:"seconds"`
	// Bound is what the time follows from: operations, memory, steps, link, bucket or host.
	Bound string `json:"bound_by"`
}

// Preemption is what a lost process costs, in seconds.
type Preemption struct {
	// Detection is until another worker has the work, Load until it has the newest snapshot and its
	// programs. A worker has to be there: how long a machine takes to come is not counted.
	Detection float64 `json:"detection_seconds"`
	Load      float64 `json:"load_seconds"`
	// Rebuild is the updates since that snapshot, made again: half of the interval's on average.
	Rebuild float64 `json:"rebuild_seconds"`
	// Lost is what was done and is done again: of the running activity half on average, or half of
	// the iterations between two checkpoints.
	Lost float64 `json:"lost_seconds"`
	// AtMost is the most that is rebuilt and lost together.
	AtMost float64 `json:"at_most_seconds"`
}

// All is the sum.
func (p Preemption) All() float64 { return p.Detection + p.Load + p.Rebuild + p.Lost }

// SecondsOf computes what an iteration takes on n devices of a kind. The widths of the contexts are
// known, and the compute dtype is bfloat16.
func SecondsOf(t spec.Train, shape cost.Network, n int, f Figures) Seconds {
	out := Seconds{Figures: f, Devices: n, Needs: t.Job(shape).Peak(n)}
	d := spec.Derive(t, shape)
	add := func(part string, seconds float64, bound string) {
		out.Parts = append(out.Parts, PartSeconds{part, seconds, bound})
		out.Iteration += seconds
	}
	// The stages are what activities do, so many for each; a kill loses the running one.
	var generate, score, update, environment stage
	for _, w := range spec.WorkOf(t, shape, n) {
		seconds, bound := f.seconds(w)
		add(w.Part, seconds, bound)
		of := &update
		switch w.Part {
		case cost.WorkPrefill, cost.WorkDecode:
			of = &generate
		case cost.WorkScore:
			of = &score
		}
		of.seconds += seconds
		of.activities += w.Activities
	}
	environment = stage{f.Step * float64(t.Rollout.Slots()*t.Rollout.Turns), t.Rollout.Turns}
	add("environment", environment.seconds, "host")
	calls, longest, lost := 3, 0.0, 0.0 // Select, Credit and Commit
	for _, s := range []stage{generate, score, update, environment} {
		calls += s.activities
		each := s.seconds / float64(s.activities)
		longest = max(longest, each)
		lost += s.seconds * each / 2
	}
	add("calls of activities", f.Call*float64(calls), "host")
	snapshot := float64(d.Storage.Snapshot) / f.BucketWrite
	add("snapshot, a share of it", snapshot/float64(t.Snapshot.Every), "bucket")

	found := f.Detection // whatever the model: what gives leases computes nothing
	load := float64(d.Storage.Snapshot+d.Memory.Frozen)/f.BucketRead + f.Programs
	rebuilt := float64(t.Snapshot.Every-1) * update.seconds
	out.Preempted = Preemption{
		Detection: found, Load: load, Rebuild: rebuilt / 2, Lost: lost / out.Iteration, AtMost: rebuilt + longest,
	}
	apart := out.Iteration - snapshot/float64(t.Snapshot.Every) + snapshot/CheckpointEvery
	out.Checkpointed = Preemption{
		Detection: found, Load: load, Lost: CheckpointEvery * apart / 2, AtMost: CheckpointEvery * apart,
	}
	return out
}

// stage is what a number of activities do, one after the other.
type stage struct {
	seconds    float64
	activities int
}

// seconds is the time of a part, and what it follows from.
func (f Figures) seconds(w cost.Work) (float64, string) {
	operations := w.Operations / (f.Operations * f.OperationsShare)
	memory := w.Bytes / (f.Bandwidth * f.BandwidthShare)
	link := w.Copied / (f.Link * f.LinkShare)
	steps := w.Steps * f.DecodeStep
	switch {
	case link > max(operations, memory):
		return link, "link"
	case steps > max(operations, memory):
		return steps, "steps"
	case memory > operations:
		return memory, "memory"
	}
	return operations, "operations"
}

// text is the seconds as a table.
func (s Seconds) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nAn iteration on %d × %s takes %.1f s by these figures, which no run of ours has measured (docs/many-devices.md):\n", s.Devices, s.Figures.Name, s.Iteration)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "part\tseconds\tbound by\t\n")
	for _, p := range s.Parts {
		fmt.Fprintf(w, "%s\t%.2f\t%s\t\n", p.Part, p.Seconds, p.Bound)
	}
	// A strings.Builder never fails.
	_ = w.Flush()
	p, c := s.Preempted, s.Checkpointed
	fmt.Fprintf(&b, "A preemption costs %.0f s on average: %.1f s until it is found, %.0f s to load, %.0f s for updates since the snapshot, %.1f s of work lost.\n",
		p.All(), p.Detection, p.Load, p.Rebuild, p.Lost)
	fmt.Fprintf(&b, "With a checkpoint every %d iterations and nothing else it would cost %.0f s, %.0f s of them lost work.\n", CheckpointEvery, c.All(), c.Lost)
	return b.String()
}
