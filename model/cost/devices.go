package cost

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

// Devices computes what a run has of n devices, at least one, without warnings. The widths of rows are known.
func (j Job) Devices(n int) Devices {
	out := Devices{
		Count: n, First: most(j.programsOn(seat{0, n})), Others: most(j.programsOn(seat{1, n})),
		Rollout: deal(j.Rollout.Parts, j.Rollout.Each, n), Score: deal(j.Update.Batches, j.Update.Each, n),
		Update: dealShards(j.Update.StepBatches, j.Update.Shards, n),
	}
	for _, model := range j.models() {
		copied, _ := model.copiedAStep(out.Update, n)
		out.Copied += copied
	}
	return out
}

// Peak is the most that one of n devices holds; 0 if the widths of rows are not known.
func (j Job) Peak(n int) int64 {
	if n > 1 && j.Update.Width > 0 {
		return j.Devices(n).Peak()
	}
	return j.Memory().Peak
}

// seat is the place of a device among those that share a run: number 0 is the first, 1 the
// busiest of the others.
type seat struct{ number, devices int }

// alone is the only device of a run.
var alone = seat{0, 1}

func (s seat) first() bool { return s.number == 0 }

// held is the bytes that a device holds between two steps of an iteration: what programs read, and
// weights and moments in float32 of the tensors that it owns. A reference is the first device's, a teacher
// and a judge are on each, and a device alone has everything.
func (s seat) held(j Job, models []footprint) int64 {
	policy := models[0]
	n := policy.frozen()
	if teacher, there := j.teacher(); there {
		n += teacher.weights
	}
	if judge, there := j.judge(); there {
		n += judge.weights
	}
	if s.devices == 1 {
		n += j.copies(models)
		for _, f := range models {
			n += 3 * f.trained
		}
		if j.earlier() {
			n += policy.trained
		}
		return n
	}
	for _, f := range models {
		n += f.copied() + 2*s.owned(f)
		if f.copies() > 0 {
			n += s.owned(f) // beside the copies
		}
	}
	if j.earlier() {
		n += policy.copied()
		if s.first() && policy.copies() > 0 {
			n += policy.trained
		}
	}
	return n
}

// work says what the device gets to do of a job: the first does all.
func (s seat) work(j Job) (samples, scores, updates bool) {
	has := func(parts, each int) bool { return s.first() || partsOn(1, parts, each, s.devices) > 0 }
	return has(j.Rollout.Parts, j.Rollout.Each), has(j.Update.Batches, j.Update.Each), has(min(j.Update.Shards, j.Update.StepBatches), 0)
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

// copied is the bytes that another device gets after each update: what programs read, without the
// base model below adapters.
func (f footprint) copied() int64 { return f.weights - f.frozen() }
