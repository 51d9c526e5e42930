package cost

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
	// Teacher is the weights of the teacher as its programs read them: matrices in the compute dtype; 0 without one.
	Teacher int64 `json:"teacher,omitempty"`
	// Judge is the weights of a model that judges, likewise, and JudgeCache the keys and values of a pass of its replies.
	Judge      int64 `json:"judge,omitempty"`
	JudgeCache int64 `json:"judge_cache,omitempty"`
	// Activations are those of one micro-batch in Update: what the forward pass keeps, and what
	// the backward pass needs besides. Kept says that the former are those of all layers, not
	// only what layers begin with.
	Activations int64 `json:"activations"`
	Kept        bool  `json:"activations_kept,omitempty"`
	// KVCache is the cache of the rows of a pass, at the largest width.
	KVCache int64 `json:"kv_cache"`
	// KeptValues is the keys and values that are kept of all rows between the turns of a rollout.
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

// Memory is what the job needs of a device alone. What depends on the widths of rows is 0 if they are not known.
func (j Job) Memory() Memory {
	models := j.models()
	f := models[0]
	u := Memory{Frozen: f.frozen(), Weights: f.trained, Moments: 2 * f.trained, Gradients: f.trained, Kept: f.keep}
	if j.Update.Shards > 1 {
		u.Gradients *= 2 // the sum of the shards' beside a shard's own
	}
	if len(models) > 1 {
		u.Critic = 3 * models[1].trained
	}
	if j.earlier() {
		u.Reference = u.Weights
	}
	if teacher, there := j.teacher(); there {
		u.Teacher = teacher.weights
	}
	if judge, there := j.judge(); there {
		s := j.Judge.Pass
		u.Judge, u.JudgeCache = judge.weights, judge.cache(s.Rows, s.Prompt+s.Fresh)
	}
	u.ComputeCopy = j.copies(models)
	if j.Update.Width == 0 {
		return u
	}
	u.KeptValues = j.Rollout.kept(f, alone)
	for _, p := range j.Programs(1) {
		switch p.Name {
		case "backward":
			u.Activations = p.Temporary + f.saved(int64(j.Update.Rows*j.Update.Width))
		case "prefill":
			s := j.Rollout.Pass
			u.KVCache = f.cache(s.Rows, s.Prompt+s.Fresh)
		}
		if p.Peak() > u.Peak {
			u.Peak, u.PeakAt = p.Peak(), p.Name
		}
	}
	return u
}

// copies is the bytes of all copies of weights that a run holds, of these models.
func (j Job) copies(models []footprint) int64 {
	var n int64
	for _, f := range models {
		n += f.copies()
	}
	if j.earlier() {
		n += models[0].copies()
	}
	return n
}

// Programs are the estimates of the programs of the first of so many devices that share the run, in the
// order in which an iteration runs them. The widths of rows are known.
func (j Job) Programs(devices int) []Program { return j.programsOn(seat{0, devices}) }

// sampling are the programs of a rollout. The device holds so many bytes besides, and keeps values
// of its own passes.
func (r Rollout) sampling(f footprint, held int64, on seat, add func(p Program, beside int64)) {
	s := r.Pass
	chunk := PartRows(s.Rows, s.Prompt, PrefillTokens)
	prefill := f.prefill(chunk, s.Prompt, s.Prompt+s.Fresh)
	beside := (s.Rows/chunk - 1) * prefill.Outputs // the parts before
	if shared, all := r.sharedPrefill(f); shared.Bytes()+all > prefill.Bytes()+beside {
		prefill, beside = shared, all
	}
	kept, prompts := r.kept(f, on), int64(0) // prompts are those of the pass itself
	if kept > 0 {
		prompts = f.cache(s.Rows, s.Prompt)
		a := r.appended()
		rows := PartRows(a.rows, a.width, PrefillTokens)
		add(f.room("append-room", rows, a.before, a.width), held+max(kept-f.cache(rows, a.before), 0))
		add(f.append(rows, a), held-f.weights+max(kept-f.cache(rows, a.width), 0))
	}
	switch {
	case r.Blocks:
		// The rows that are prefilled and have no slot yet stay beside those that have one.
		prefill = f.prefill(chunk, s.Prompt, s.Prompt+s.Fresh)
		add(prefill, held-f.weights+f.cache(s.Rows, s.Prompt+s.Fresh))
		add(f.seat(s, chunk), held)
		add(f.decodeChunk("decode-block", s), held-f.weights+f.cache(chunk, s.Prompt))
	case r.Chunks:
		add(prefill, held-f.weights+beside)
		add(f.room("decode-room", s.Rows, s.Prompt, s.Prompt+s.Fresh), held+max(kept-prompts, 0))
		add(f.decodeChunk("decode-chunk", s), held-f.weights+kept)
	default:
		add(prefill, held-f.weights+beside)
		add(f.decode(s), held-f.weights+max(kept-prompts, 0))
	}
}

// sharedPrefill is the first turn's prefill in passes whose rows share prompts, and what is there beside
// it: the keys and values of the pass that it is laid out to, which takes less than decoding then does.
// It is zero where no prompts are shared.
func (r Rollout) sharedPrefill(f footprint) (p Program, beside int64) {
	if r.SharedPrompts == 0 {
		return p, 0
	}
	width := int64(r.Turns[0].Width)
	rows := max(min(int64(r.SharedPrompts), PrefillTokens/width), 1)
	return f.prefill(rows, width, width+int64(r.Fresh)), f.cache(int64(r.PassRows), width)
}

// programsOn are the programs that a device runs.
func (j Job) programsOn(on seat) []Program {
	if on.number >= on.devices {
		return nil
	}
	models := j.models()
	held := on.held(j, models)
	samples, scores, updates := on.work(j)
	var out []Program
	add := func(p Program, beside int64) {
		p.Beside = beside
		out = append(out, p)
	}
	if samples {
		sampling := held
		if j.Rollout.Published { // beside the version that an update made since
			sampling += models[0].copied()
		}
		j.Rollout.sampling(models[0], sampling, on, add)
	}
	if judge, there := j.judge(); there { // questions are dealt to all devices
		Rollout{Pass: j.Judge.Pass, Chunks: j.Rollout.Chunks}.sampling(judge, held, on, func(p Program, beside int64) {
			p.Name = "judge-" + p.Name
			add(p, beside)
		})
	}
	rows, width := int64(j.Update.Rows), int64(j.Update.Width)
	if teacher, there := j.teacher(); there && scores {
		add(teacher.forward(rows, width), held-teacher.weights)
	}
	if own, there := j.ownTeacher(); there && scores {
		add(own.forward(rows, int64(j.shownWidth())), held-own.weights)
	}
	for _, f := range models {
		gradients, owned, total := f.trained, on.owned(f), int64(0) // the total is the owners'
		if !updates {
			gradients = 0
		}
		if j.Update.Shards > on.devices {
			total = owned // of the rounds before
		}
		if scores || updates {
			add(f.forward(rows, width), held-f.weights+gradients+total)
		}
		if updates {
			add(f.backward(rows, width), held-f.weights+total)
		}
		if j.Update.Shards > 1 {
			sum := f.inPlace("add", 2, 1)
			add(sum, held+gradients+owned-sum.Inputs)
		}
		square, apply := f.inPlace("square", 1, 0), f.inPlace("apply", 4, 3)
		add(square, held+owned-square.Inputs)
		copies := int64(0)
		if on.devices == 1 {
			copies = f.copies()
		}
		add(apply, held-copies+owned-apply.Inputs)
	}
	fingerprint := models[0].fingerprint()
	add(fingerprint, held-fingerprint.Inputs)
	return out
}
