package spec

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
)

// String is Text of a spec alone.
func (d Derived) String() string { return d.Text("the environment gives the context widths") }

// Text is the derived numbers as an aligned table. unknown is why the widths of the contexts are not known, where they are not.
func (d Derived) Text(unknown string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, value, note string) { fmt.Fprintf(w, "%s\t%s\t%s\n", name, value, note) }
	ifKnown := func(name, value, note string) {
		if d.ContextsKnown {
			row(name, value, note)
		} else {
			row(name, "?", "unknown: "+unknown)
		}
	}
	row("trajectories an iteration", count(int64(d.Trajectories)), "")
	row("rows learned from", count(int64(d.RowsKept)), fmt.Sprintf("%d groups in %d micro-batches", d.KeptGroups, d.MicroBatches))
	ifKnown("width of a row", count(int64(d.Sequence)), "tokens")
	row("tokens sampled an iteration", count(d.SampledTokens), "at most")
	ifKnown("tokens prefilled an iteration", count(d.ContextTokens), "padding included")
	ifKnown("tokens scored, and trained on", count(d.UpdateTokens), "padding included")
	if d.EvaluationRows > 0 {
		row("trajectories an evaluation", count(int64(d.EvaluationRows)), fmt.Sprintf("%d evaluations", d.Storage.Evaluations))
	}
	if d.Actions != nil {
		row("actions an iteration", strconv.FormatFloat(d.Actions.Iteration, 'g', 4, 64), d.Actions.besides())
	}
	row("parameters", count(d.Parameters), "")
	m := d.Memory
	if m.Frozen > 0 {
		row("parameters of the adapters", count(d.Adapters), "trained")
		row("device: base model", size(m.Frozen), "frozen, matrices in the compute dtype")
	}
	row("device: weights and moments", size(m.Weights+m.Moments), "float32")
	if m.ComputeCopy > 0 {
		row("device: copies to compute with", size(m.ComputeCopy), BFloat16+", of the matrices")
	}
	if m.Critic > 0 {
		row("device: critic", size(m.Critic), "weights and moments")
	}
	if m.Reference > 0 {
		row("device: reference", size(m.Reference), "weights")
	}
	if m.Teacher > 0 {
		row("device: teacher", size(m.Teacher), "weights, matrices in the compute dtype")
	}
	if m.Judge > 0 {
		row("device: judge", size(m.Judge), "weights, matrices in the compute dtype; KV cache "+size(m.JudgeCache))
	}
	row("device: gradients", size(m.Gradients), "")
	kept := "one micro-batch; each layer is computed again"
	if m.Kept {
		kept = "one micro-batch; those of all layers are kept"
	}
	ifKnown("device: activations", size(m.Activations), kept)
	ifKnown("device: KV cache", size(m.KVCache), "")
	if m.KeptValues > 0 {
		row("device: kept values", size(m.KeptValues), "between the turns of a rollout")
	}
	ifKnown("device: peak", size(m.Peak), "estimate, in "+m.PeakAt)
	s := d.Storage
	row("S3: a snapshot", size(s.Snapshot), fmt.Sprintf("%d snapshots", s.Snapshots))
	if s.Published > 0 {
		row("S3: a published version", size(s.Published), "in each iteration that rolls out, for other workers (rollout.workers)")
	}
	ifKnown("S3: an iteration", size(s.Iteration), fmt.Sprintf("before compression; its batch %s", size(s.Batch)))
	ifKnown("S3: the run", size(s.Run), "before compression")
	// A strings.Builder never fails.
	_ = w.Flush()
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// besides says what comes besides an iteration's actions.
func (a Actions) besides() string {
	text := "billed by Temporal Cloud; besides "
	for _, more := range []struct {
		n  int
		of string
	}{{a.Snapshot, "a snapshot"}, {a.Evaluation, "an evaluation"}, {a.Diagnosis, "a diagnosis"}} {
		if more.n > 0 {
			text += fmt.Sprintf("%d %s, ", more.n, more.of)
		}
	}
	return text + "and heartbeats"
}

// MemoryAdvice says what the run needs the device's memory for, by estimate, and what
// makes it less.
func (d Derived) MemoryAdvice(t Train) string {
	m := d.Memory
	if m.Peak == 0 {
		return "reprise validate shows what the spec needs the device's memory for"
	}
	model := m.Frozen + m.Weights + m.Moments + m.Critic + m.Reference + m.Teacher + m.Judge
	text := fmt.Sprintf("the spec is estimated to need %s at its peak: weights and moments %s, gradients %s, activations %s, KV cache %s",
		size(m.Peak), size(model), size(m.Gradients), size(m.Activations), size(m.KVCache))
	switch m.PeakAt {
	case "prefill", "decode", "decode-room", "decode-chunk", "append", "append-room", "judge-prefill", "judge-decode", "judge-decode-room", "judge-decode-chunk":
		if m.KeptValues > (m.Peak-model)/2 {
			return text + fmt.Sprintf(", kept values %s; leave rollout.keep_values out", size(m.KeptValues))
		}
		if m.Peak-model > model {
			return text + fmt.Sprintf("; lower rollout.pass_rows (%d)", t.Rollout.Pass())
		}
	case "forward", "backward", "critic-forward", "critic-backward", "teacher-forward":
		if m.Activations > m.Gradients && m.Kept {
			return text + fmt.Sprintf("; set update.recompute to %q", RecomputeAlways)
		}
		if m.Activations > m.Gradients {
			return text + fmt.Sprintf("; lower update.micro_batch (%d)", t.Update.MicroBatch)
		}
	}
	return text + "; most of it is the model's: take a smaller one, or a device with more memory"
}

// count groups the digits of n by thousands.
func count(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// decimal is a number of bytes in units of 1000, as devices are sold.
func decimal(n int64) string {
	if n < 1e9 {
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}

// size is a number of bytes with one digit after the point, in units of 1024.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n), 0
	for v >= 1024 && unit < len(units)-1 {
		v /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %s", v, units[unit])
}
