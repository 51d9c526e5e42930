package spec

import "fmt"

// Memory is an estimate of the memory of a GPU that a run needs, in bytes: the most that one
// of its programs has, with what the device holds of the run beside it. A CPU needs more only
// where the compute dtype is bfloat16.
type Memory struct {
	// Frozen is the base model below adapters: matrices in the compute dtype; 0 in a run that
	// trains all weights.
	Frozen int64 `json:"frozen,omitempty"`
	// Weights, Moments and Gradients are of what is trained, in float32: 4, 8 and 4 (in shards 8) bytes a
	// parameter.
	Weights   int64 `json:"weights"`
	Moments   int64 `json:"moments"`
	Gradients int64 `json:"gradients"`
	// ComputeCopy is the copy of the weights in the compute dtype, if that is not float32, of
	// matrices that are trained whole: the policy's, its critic's and the reference's. Each
	// update makes a new one.
	ComputeCopy int64 `json:"compute_copy"`
	// Critic is the weights and moments of the critic, or of a process reward model in its place,
	// Reference the reference's weights; 0 in a run without.
	Critic    int64 `json:"critic,omitempty"`
	Reference int64 `json:"reference,omitempty"`
	// Activations are those of one micro-batch in Update: what the forward pass keeps, and what
	// the backward pass needs besides. Kept says that the former are those of all layers, not
	// only what layers begin with.
	Activations int64 `json:"activations"`
	Kept        bool  `json:"activations_kept,omitempty"`
	// KVCache is the cache of the rows of a pass, at the largest width.
	KVCache int64 `json:"kv_cache"`
	// KeptValues is what rollout.keep_values keeps of all rows between the turns of a rollout.
	KeptValues int64 `json:"kept_values,omitempty"`
	// Peak is the most held at once, while the program PeakAt runs.
	Peak   int64  `json:"peak"`
	PeakAt string `json:"peak_at,omitempty"`
}

// Program is an estimate of the device memory of one of a run's XLA programs, in bytes. Of
// those that there are for each shape of a tensor it is the largest tensor's.
type Program struct {
	// Name is the name of its kind in a manifest's hashes.
	Name string `json:"name"`
	// The next four are what XLA's statistics of a compiled program count. Aliases is how much
	// of the outputs is in the memory of inputs.
	Inputs    int64 `json:"inputs"`
	Outputs   int64 `json:"outputs"`
	Aliases   int64 `json:"aliases"`
	Temporary int64 `json:"temporary"`
	// Beside is what the device holds of the run besides, while the program runs.
	Beside int64 `json:"beside"`
}

// Bytes is what the program itself needs.
func (p Program) Bytes() int64 { return p.Inputs + p.Outputs - p.Aliases + p.Temporary }

// Peak is all that the device holds while the program runs.
func (p Program) Peak() int64 { return p.Bytes() + p.Beside }

func memory(t Train, m ModelShape, d Derived) Memory {
	f := footprintOf(t, m, false)
	u := Memory{Frozen: f.frozen(), Weights: f.trained, Moments: 2 * f.trained, Gradients: f.trained + t.Update.total(f), Kept: f.keep}
	if second, is := f.second(t); is {
		u.Critic = 3 * second.trained
	}
	if t.Update.Reference() {
		u.Reference = u.Weights
	}
	u.ComputeCopy = copies(t, f)
	if !d.ContextsKnown {
		return u
	}
	u.KeptValues = t.kept(f, alone)
	micro := int64(t.Update.MicroBatch) * int64(d.Sequence)
	for _, p := range Programs(t, m, false) {
		switch p.Name {
		case "backward":
			u.Activations = p.Temporary + f.saved(micro)
		case "prefill":
			s := t.sampled()
			u.KVCache = f.cache(s.rows, s.prompt+s.fresh)
		}
		if p.Peak() > u.Peak {
			u.Peak, u.PeakAt = p.Peak(), p.Name
		}
	}
	return u
}

// total is the bytes of the sum of the shards' gradients, which is there beside a shard's own.
func (u Update) total(f footprint) int64 {
	if u.Shards > 1 {
		return f.trained
	}
	return 0
}

// copies is the bytes of all copies of weights that a run holds.
func copies(t Train, policy footprint) int64 {
	n := policy.copies()
	if t.Update.Reference() {
		n *= 2
	}
	if second, is := policy.second(t); is {
		n += second.copies()
	}
	return n
}

// Programs are the estimates of a run's programs on a GPU or a CPU, in the order in which an
// iteration runs them. The widths of its contexts are known.
func Programs(t Train, m ModelShape, cpu bool) []Program { return programsOn(t, m, cpu, alone) }

// FirstPrograms are those of the first of n GPUs that share the run.
func FirstPrograms(t Train, m ModelShape, n int) []Program {
	return programsOn(t, m, false, seat{0, n})
}

// sampling are the programs of a rollout. The device holds so many bytes besides, and keeps values
// of its own passes.
func (t Train) sampling(f footprint, held int64, on seat, add func(p Program, beside int64)) {
	s := t.sampled()
	chunk := prefillRows(s.rows, s.prompt)
	prefill := f.prefill(chunk, s.prompt, s.prompt+s.fresh)
	beside := (s.rows/chunk - 1) * prefill.Outputs // the parts before
	if shared, all := t.sharedPrefill(f); shared.Bytes()+all > prefill.Bytes()+beside {
		prefill, beside = shared, all
	}
	kept, prompts := t.kept(f, on), int64(0) // prompts are those of the pass itself
	if kept > 0 {
		prompts = f.cache(s.rows, s.prompt)
		a := t.appended()
		rows := prefillRows(a.rows, a.width)
		add(f.appendRoom(rows, a), held+max(kept-f.cache(rows, a.before), 0))
		add(f.append(rows, a), held-f.weights+max(kept-f.cache(rows, a.width), 0))
	}
	switch {
	case t.Rollout.BlockRows > 0:
		// The rows that are prefilled and have no slot yet stay beside those that have one.
		prefill = f.prefill(chunk, s.prompt, s.prompt+s.fresh)
		add(prefill, held-f.weights+f.cache(s.rows, s.prompt+s.fresh))
		add(f.seat(s, chunk), held)
		add(f.decodeBlock(s), held-f.weights+f.cache(chunk, s.prompt))
	case t.Rollout.ChunkTokens > 0:
		add(prefill, held-f.weights+beside)
		add(f.room(s), held+max(kept-prompts, 0))
		add(f.decodeChunk(s), held-f.weights+kept)
	default:
		add(prefill, held-f.weights+beside)
		add(f.decode(s), held-f.weights+max(kept-prompts, 0))
	}
}

// programsOn are the programs that a device runs.
func programsOn(t Train, m ModelShape, cpu bool, on seat) []Program {
	if on.number >= on.devices {
		return nil
	}
	f := footprintOf(t, m, cpu)
	held, others := on.held(t, f), t.others(on.devices)
	var out []Program
	add := func(p Program, beside int64) {
		p.Beside = beside
		out = append(out, p)
	}
	if on.first() || others.samples {
		sampling := held
		if t.Rollout.Lag > 0 && t.Rollout.Workers > 1 { // what was published, beside the version that an update made since
			sampling += f.weights - f.frozen()
		}
		t.sampling(f, sampling, on, add)
	}
	rows, width := int64(t.Update.MicroBatch), t.width()
	update := func(f footprint) {
		gradients, owned, total := f.trained, on.owned(f), int64(0) // the total is the owners'
		if !on.first() && !others.updates {
			gradients = 0
		}
		if t.Update.shards() > on.devices {
			total = owned // of the rounds before
		}
		if on.first() || others.scores || others.updates {
			add(f.forward(rows, width), held-f.weights+gradients+total)
		}
		if on.first() || others.updates {
			add(f.backward(rows, width), held-f.weights+total)
		}
		if t.Update.shards() > 1 {
			sum := f.sum()
			add(sum, held+gradients+owned-sum.Inputs)
		}
		square, apply := f.square(), f.apply()
		add(square, held+owned-square.Inputs)
		copies := int64(0)
		if on.devices == 1 {
			copies = f.copies()
		}
		add(apply, held-copies+owned-apply.Inputs)
	}
	update(f)
	if second, is := f.second(t); is {
		update(second)
	}
	fingerprint := f.fingerprint()
	add(fingerprint, held-fingerprint.Inputs)
	return out
}

// TooSmall says why n devices with so many bytes of memory each cannot take the run; "" if they can,
// or if the memory is 0, not known. It has to be the device that limits.device_gb says, where a
// person has written it, and otherwise have what the run is estimated to need of one of them.
// Devices are sold by gigabytes of 10⁹ bytes, and a part of their memory is not there for programs.
func TooSmall(t Train, m ModelShape, n int, memory int64) string {
	const gb = 1e9
	made, needs := int64(t.Limits.DeviceGB)*gb, PeakOn(t, m, n)
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

// PeakOn is the most that one of n devices holds; 0 if the widths of the contexts are not known.
func PeakOn(t Train, m ModelShape, n int) int64 {
	if n > 1 && len(t.Rollout.PromptTokens) > 0 {
		return DevicesOf(t, m, n).Peak()
	}
	return Derive(t, m).Memory.Peak
}
