package cost

// Job is what a run asks of a network, in the numbers that a spec gives.
type Job struct {
	// Network is the policy's.
	Network Network
	// ComputeBytes is the bytes of a number in the compute dtype: 4 or 2.
	ComputeBytes int64
	// Adapters are what is trained of the policy and of a critic; nil if all weights are.
	Adapters *Adapters
	// Keep says that a forward pass keeps the activations of all layers for the backward pass.
	Keep bool
	// Exact says that keys and values are padded, as policy.exact has them.
	Exact bool
	// CPU says that the device is a CPU: it widens what it computes with to float32.
	CPU bool
	// Values is how many values a critic has of a token; 0 if the run trains no critic. PRM says that it
	// trains a process reward model in a critic's place.
	Values int
	PRM    bool
	// Reference says that the run holds the weights of an earlier version of the policy, which score its rows; Judges that
	// it holds them to judge episodes.
	Reference, Judges bool
	// Teacher is a frozen network that scores rows too, in the compute dtype; nil without one.
	Teacher *Network
	// Judge is a frozen network that answers questions about episodes, in the compute dtype; nil without one.
	Judge *Judge
	// Shown is the most tokens that the policy is shown before a row when it scores it as its own teacher; 0 if it is not.
	Shown   int
	Rollout Rollout
	Update  Update
}

// earlier reports whether the run holds the weights of an earlier version of the policy.
func (j Job) earlier() bool { return j.Reference || j.Judges }

// Scored is how often a row is scored, in passes of the policy: by it, the second network, the reference, and by the teacher
// as often as that is larger; by a policy that is its own teacher as often as its rows are longer.
func (j Job) Scored() int {
	n := len(j.models())
	if j.Reference {
		n++
	}
	if j.Teacher != nil {
		n += int(j.Teacher.Times(j.Network))
	}
	if j.Shown > 0 {
		n += ceil(j.shownWidth(), max(j.Update.Width, 1))
	}
	return n
}

// Judge is a frozen network that generates answers, a pass at a time.
type Judge struct {
	Network Network
	Pass    Pass
}

// Rollout is the rollout of an iteration. Turns is nil and Pass is zero if the widths of contexts are not known.
type Rollout struct {
	// Rows are those of a turn, PassRows those that a device generates for at once, and Fresh is the
	// most tokens that a row samples in a turn.
	Rows, PassRows, Fresh int
	Turns                 []Turn
	// Waves is how often the rows play their turns.
	Waves int
	// FirstPrompts are the prompts that the first turn prefills, padding included. SharedPrompts are those
	// of a pass or a block whose rows share them; 0 if none do.
	FirstPrompts, SharedPrompts int
	// Pass is the largest pass: the last turn's, or an evaluation's.
	Pass Pass
	// Parts are the blocks, or the passes where there are no blocks. An activity has Each of them, 0 is all.
	// Passes is how many passes a part has.
	Parts, Each, Passes int
	// KeepValues says that keys and values are kept from turn to turn, Blocks that rows share slots,
	// Chunks that a program samples some of a turn's tokens, and Published that the device samples with
	// a version that it was sent beside its own.
	KeepValues, Blocks, Chunks, Published bool
}

// ContextTokens is what the prefills of a rollout read, padding included.
func (r Rollout) ContextTokens() (n int64) {
	for i, turn := range r.Turns {
		rows := r.Rows
		if i == 0 {
			rows = r.FirstPrompts
		}
		n += int64(rows) * int64(turn.Width)
	}
	return n
}

// Turn is a turn of a rollout, in tokens: Width is that of its context, and Read how many of it the turn
// computes keys and values of.
type Turn struct{ Width, Read int }

// Update is what an iteration learns from.
type Update struct {
	// Rows are those of a micro-batch, and Width is the tokens of each; 0 if the widths of contexts are
	// not known.
	Rows, Width int
	// Batches are the micro-batches of an iteration. An activity that scores has Each of them, 0 is all.
	Batches, Each int
	// StepBatches are the micro-batches of the largest optimizer step, which is made in Shards, at least 1.
	StepBatches, Shards int
	// Epochs is how often an update reads its rows, at least 1.
	Epochs int
}

// Tokens is what scoring and an epoch of the update each read, padding included.
func (u Update) Tokens() int64 { return int64(u.Batches) * int64(u.Rows) * int64(u.Width) }
