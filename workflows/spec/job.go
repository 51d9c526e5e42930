package spec

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/cost"
)

// Job is what the spec asks of a network of this shape, on a GPU.
func (t Train) Job(m cost.Network) cost.Job {
	own := t.OwnJudge()
	j := cost.Job{
		Network: m, ComputeBytes: 4, Adapters: t.Policy.LoRA.adapters(), Keep: t.Update.Keeps(), Exact: t.Policy.Exact,
		PRM: t.Credit.PRM(), Reference: t.Update.Reference(), Judges: own != nil && own.Model == nil && !own.Current, Rollout: t.rollout(),
		Update: cost.Update{
			Rows: t.Update.MicroBatch, Width: t.width(),
			Batches: ceil(t.keptRows(), t.Update.MicroBatch), Each: t.Limits.ScoreRows / max(t.Update.MicroBatch, 1),
			StepBatches: t.stepBatches(), Shards: max(t.Update.Shards, 1), Epochs: max(t.Update.Epochs, 1),
		},
	}
	if of := t.Teacher.Apart(); of != nil {
		j.Teacher = of.Network
	}
	if own != nil && own.Model != nil && own.Model.Network != nil {
		j.Judge = &cost.Judge{Network: *own.Model.Network, Pass: t.judging(own).pass(t.Rollout)}
	}
	if t.Teacher.Self() {
		j.Shown = t.Teacher.ContextTokens
	}
	if t.Policy.ComputeDtype == BFloat16 {
		j.ComputeBytes = 2
	}
	if t.Credit.Critic() {
		j.Values = t.Credit.Values()
	}
	return j
}

func (t Train) rollout() cost.Rollout {
	r := t.Rollout
	block := r.Block()
	out := cost.Rollout{
		Rows: r.Slots(), PassRows: min(r.Slots(), r.Pass()), Fresh: r.MaxNewTokens, Waves: r.waves(),
		FirstPrompts: r.firstPrompts(), SharedPrompts: r.SharedPrompts(r.Slots(), r.GroupSlots()), Pass: t.sampled(),
		Parts: ceil(r.Slots(), block), Each: t.Limits.GenerateRows / block, Passes: ceil(block, r.Pass()),
		KeepValues: r.KeepValues, Blocks: r.BlockRows > 0, Chunks: r.ChunkTokens > 0, Published: r.Lag > 0 && r.Workers > 1,
	}
	for i, width := range r.PromptTokens {
		turn := cost.Turn{Width: width, Read: width}
		if i > 0 && r.KeepValues {
			turn.Read = r.AppendTokens(i + 1)
		}
		out.Turns = append(out.Turns, turn)
	}
	return out
}

// width is the width of a row in Score and Update; 0 if the widths of the contexts are not known.
func (t Train) width() int {
	if len(t.Rollout.PromptTokens) == 0 {
		return 0
	}
	return last(t.Rollout.PromptTokens) + t.Rollout.MaxNewTokens
}

// last is the last turn's width, the largest; 0 without any.
func last(widths []int) int {
	if len(widths) == 0 {
		return 0
	}
	return widths[len(widths)-1]
}

// sampled is the largest pass of generation by the policy: the last turn's, or a suite's.
func (t Train) sampled() (most cost.Pass) {
	for i, g := range t.generations() {
		p := g.pass(t.Rollout)
		if g.prompt > 0 && !g.byOther && (i == 0 || g.judges || t.Evaluation.Every > 0) && p.Prompt+p.Fresh > most.Prompt+most.Fresh {
			most = p
		}
	}
	return most
}

// stepBatches is the number of micro-batches of the largest optimizer step.
func (t Train) stepBatches() int {
	rows := t.keptRows()
	if t.Update.Minibatch > 0 {
		rows = min(rows, t.Update.Minibatch)
	}
	return ceil(rows, t.Update.MicroBatch)
}

// DevicesOf computes what a run has of n devices, at least one. The widths of its contexts are known.
func DevicesOf(t Train, m cost.Network, n int) cost.Devices {
	out := t.Job(m).Devices(n)
	out.Warnings = t.idle(out)
	return out
}

// idle says where devices have nothing to do.
func (t Train) idle(d cost.Devices) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	n, all := d.Count, d.Rollout.Parts
	if d.Rollout.Busy < n {
		of := fmt.Sprintf("of %d rows (rollout.pass_rows)", t.Rollout.Pass())
		if t.Rollout.BlockRows > 0 {
			of = fmt.Sprintf("of %d rows (rollout.block_rows)", t.Rollout.BlockRows)
		}
		if all >= n {
			say("a rollout keeps %d of %d devices busy: an activity of it has %d parts %s; raise limits.generate_rows (%d)", d.Rollout.Busy, n, t.Limits.GenerateRows/t.Rollout.Block(), of, t.Limits.GenerateRows)
		} else {
			say("a rollout keeps %d of %d devices busy: it has %d parts %s; smaller ones change bits, so decide before the run begins", d.Rollout.Busy, n, all, of)
		}
	}
	switch shards, batches := max(t.Update.Shards, 1), t.stepBatches(); {
	case shards < min(n, batches):
		say("an update keeps %d of %d devices busy: update.shards is %d; %d keeps as many busy and changes bits, so decide before the run begins", d.Update.Busy, n, shards, min(n, batches))
	case batches < n:
		say("an update keeps %d of %d devices busy: the micro-batches of a step are %d; lower update.micro_batch (%d)", d.Update.Busy, n, batches, t.Update.MicroBatch)
	}
	return out
}

// WorkOf is the work of an iteration on n devices. The widths of the contexts are known.
func WorkOf(t Train, m cost.Network, n int) []cost.Work {
	out, d := t.Job(m).Work(n), Derive(t, m)
	pieces := t.Pieces(d)
	activities := map[string]int{
		cost.WorkDecode: t.Rollout.waves() * t.Rollout.Turns * pieces.Generate(d.Trajectories),
		cost.WorkScore:  pieces.Score,
		cost.WorkUpdate: 1,
	}
	for i := range out {
		out[i].Activities = activities[out[i].Part]
	}
	return out
}

// TooSmall says why n devices with so many bytes of memory each cannot take the run; "" if they can,
// or if the memory is 0, not known. It has to be the device that limits.device_gb says, where a
// person has written it, and otherwise have what the run is estimated to need of one of them.
// Devices are sold by gigabytes of 10⁹ bytes, and a part of their memory is not there for programs.
func TooSmall(t Train, m cost.Network, n int, memory int64) string {
	const gb = 1e9
	made, needs := int64(t.Limits.DeviceGB)*gb, t.Job(m).Peak(n)
	switch {
	case memory == 0:
		return ""
	case made > memory:
		return fmt.Sprintf("the run is made for a device of %d GB (limits.device_gb), this one has %s", t.Limits.DeviceGB, decimal(memory))
	case made == 0 && needs > memory:
		return fmt.Sprintf("the run needs %s, this device has %s", decimal(needs), decimal(memory))
	}
	return ""
}
