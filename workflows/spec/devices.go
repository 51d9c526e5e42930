package spec

import "fmt"

// Devices is what a run has of several devices of one process, by the spec and the model alone.
// How many there are changes no byte of a run: see model/devices.go.
type Devices struct {
	Count int `json:"devices"`
	// First is the most that the first device holds, Others what the fullest of the others does. Each
	// has the moments of the tensors that it owns, and the first the largest tensor.
	First  Held `json:"first"`
	Others Held `json:"others"`
	// Rollout deals blocks or passes, Score micro-batches: those of the activities of an iteration.
	Rollout Dealt `json:"rollout"`
	Score   Dealt `json:"score"`
	// Update deals the shards of the largest optimizer step. With one shard it is the first device's.
	Update Dealt `json:"update"`
	// Copied is the bytes that go from device to device in that step: gradients to the owners of
	// their tensors, and weights from there to the devices that compute the next step.
	Copied int64 `json:"copied_bytes_a_step"`
	// Warnings say where devices have nothing to do, and what would give them something.
	Warnings []string `json:"warnings,omitempty"`
}

// Peak is the most that one of the devices holds.
func (d Devices) Peak() int64 { return max(d.First.Peak, d.Others.Peak) }

// Held is the most that a device holds at once, by estimate, while the program At runs.
type Held struct {
	Peak int64  `json:"peak_bytes"`
	At   string `json:"peak_at,omitempty"`
}

// Dealt is how parts of a step are dealt to devices, part i of an activity to device i mod N.
type Dealt struct {
	Parts int `json:"parts"`
	// Rounds is how many parts the first device has, one after the other: with N devices
	// ⌈parts/N⌉ of each activity.
	Rounds int `json:"rounds"`
	// Busy is the number of devices that have parts.
	Busy int `json:"busy_devices"`
	// Gain is the time on one device over that on N, where every part takes the same time and the
	// devices do not slow each other: at most N. Copies and what one device does alone are not in it.
	Gain float64 `json:"gain"`
}

// deal deals all parts of activities that have at most so many each.
func deal(all, each, devices int) Dealt {
	d := Dealt{Parts: all, Rounds: partsOn(0, all, each, devices), Busy: min(devices, all), Gain: 1}
	if each > 0 {
		d.Busy = min(d.Busy, each)
	}
	if d.Rounds > 0 {
		d.Gain = float64(all) / float64(d.Rounds)
	}
	return d
}

// partsOn is how many of all parts device k of so many has, where an activity has at most each of
// them, 0 for all.
func partsOn(k, all, each, devices int) (n int) {
	if each <= 0 {
		each = all
	}
	if k >= devices {
		return 0
	}
	for left := all; left > 0; left -= each {
		n += ceil(max(min(left, each)-k, 0), devices)
	}
	return n
}

// dealShards deals the micro-batches of a step to shards, micro-batch i to shard i mod W, and
// those to devices, shard s to device s mod N in round ⌊s/N⌋. A round takes as long as its first
// shard, which has the most micro-batches.
func dealShards(batches, shards, devices int) Dealt {
	parts := min(shards, batches)
	d := Dealt{Parts: parts, Rounds: ceil(parts, devices), Busy: min(devices, parts), Gain: 1}
	longest := 0
	for first := 0; first < parts; first += devices {
		longest += ceil(batches-first, shards)
	}
	if longest > 0 {
		d.Gain = float64(batches) / float64(longest)
	}
	return d
}

func ceil(n, by int) int { return (n + by - 1) / max(by, 1) }

// blocks is how many blocks, or passes where there are none, an iteration's rollout has, and how
// many one activity of it has; 0 is all.
func (t Train) blocks() (all, each int) {
	block := t.Rollout.Block()
	return ceil(t.Rollout.Slots(), block), t.Limits.GenerateRows / block
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
func DevicesOf(t Train, m ModelShape, n int) Devices {
	out := Devices{Count: n, First: most(programsOn(t, m, false, seat{0, n})), Others: most(programsOn(t, m, false, seat{1, n}))}
	all, each := t.blocks()
	out.Rollout = deal(all, each, n)
	out.Score = deal(ceil(t.keptRows(), t.Update.MicroBatch), t.Limits.ScoreRows/t.Update.MicroBatch, n)
	batches := t.stepBatches()
	out.Update = dealShards(batches, t.Update.shards(), n)
	for _, model := range t.models(footprintOf(t, m, false)) {
		copied, _ := model.copiedAStep(out.Update, n)
		out.Copied += copied
	}
	out.Warnings = t.idle(out, batches)
	return out
}

// seat is the place of a device among those that share a run: number 0 is the first, 1 the
// busiest of the others.
type seat struct{ number, devices int }

// alone is the only device of a run.
var alone = seat{0, 1}

func (s seat) first() bool { return s.number == 0 }

// held is the bytes that a device holds between two steps of an iteration: what programs read, and
// weights and moments in float32 of the tensors that it owns. A reference is the first device's, and
// a device alone has everything.
func (s seat) held(t Train, policy footprint) int64 {
	if s.devices == 1 {
		n := policy.frozen() + 3*policy.trained + copies(t, policy)
		if t.Update.Reference() {
			n += policy.trained
		}
		if second, is := policy.second(t); is {
			n += 3 * second.trained
		}
		return n
	}
	n := policy.frozen()
	for _, f := range t.models(policy) {
		n += f.copied() + 2*s.owned(f)
		if f.copies() > 0 {
			n += s.owned(f) // beside the copies
		}
	}
	if t.Update.Reference() {
		n += policy.copied()
		if s.first() && policy.copies() > 0 {
			n += policy.trained
		}
	}
	return n
}

// others says what devices other than the first get to do.
type others struct{ samples, scores, updates bool }

func (t Train) others(devices int) others {
	blocks, each := t.blocks()
	batches := ceil(t.keptRows(), t.Update.MicroBatch)
	return others{
		samples: partsOn(1, blocks, each, devices) > 0,
		scores:  partsOn(1, batches, t.Limits.ScoreRows/max(t.Update.MicroBatch, 1), devices) > 0,
		updates: devices > 1 && min(t.Update.shards(), t.stepBatches()) > 1,
	}
}

// most is what the program that needs the most holds.
func most(programs []Program) (h Held) {
	for _, p := range programs {
		if p.Peak() > h.Peak {
			h = Held{p.Peak(), p.Name}
		}
	}
	return h
}

// models are those that are scored and trained: the policy, and the second network if there is one.
func (t Train) models(policy footprint) []footprint {
	if second, is := policy.second(t); is {
		return []footprint{policy, second}
	}
	return []footprint{policy}
}

// copied is the bytes that another device gets after each update: what programs read, without the
// base model below adapters.
func (f footprint) copied() int64 { return f.weights - f.frozen() }

// idle says where devices have nothing to do. An update's largest step has so many micro-batches.
func (t Train) idle(d Devices, batches int) (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	n := d.Count
	if all, each := t.blocks(); d.Rollout.Busy < n {
		of := fmt.Sprintf("of %d rows (rollout.pass_rows)", t.Rollout.Pass())
		if t.Rollout.BlockRows > 0 {
			of = fmt.Sprintf("of %d rows (rollout.block_rows)", t.Rollout.BlockRows)
		}
		if all >= n {
			say("a rollout keeps %d of %d devices busy: an activity of it has %d parts %s; raise limits.generate_rows (%d)", d.Rollout.Busy, n, each, of, t.Limits.GenerateRows)
		} else {
			say("a rollout keeps %d of %d devices busy: it has %d parts %s; smaller ones change bits, so decide before the run begins", d.Rollout.Busy, n, all, of)
		}
	}
	switch shards := t.Update.shards(); {
	case shards < min(n, batches):
		say("an update keeps %d of %d devices busy: update.shards is %d; %d keeps as many busy and changes bits, so decide before the run begins", d.Update.Busy, n, shards, min(n, batches))
	case batches < n:
		say("an update keeps %d of %d devices busy: the micro-batches of a step are %d; lower update.micro_batch (%d)", d.Update.Busy, n, batches, t.Update.MicroBatch)
	}
	return out
}

// shards is the number of shards of an optimizer step, at least 1.
func (u Update) shards() int { return max(u.Shards, 1) }
