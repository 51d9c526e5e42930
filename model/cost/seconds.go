package cost

// What the devices do in a second that the lengths of activities and the intervals of snapshots are chosen
// for. Work is in parameters × tokens of a prompt.
const (
	// CoresWork is what two cores of an x86-64 computed in float32, at 1 M and at 494 M parameters. A
	// sampled token is as much work as SampledWork tokens of a prompt, because each step reads all weights.
	CoresWork   = 50_000_000_000
	SampledWork = 8
	// CoresSnapshot is the bytes of a snapshot that are hashed and sent beside such cores.
	CoresSnapshot = 32 << 20
	// H100Work is the work of a forward pass on an H100, at a sixth of its bfloat16 peak, and H100Snapshot
	// the bytes of a snapshot that such a machine sends. A step of sampling reads the weights at h100Reads
	// bytes a second, and takes at least h100Step seconds.
	H100Work     = 80_000_000_000_000
	H100Snapshot = 250_000_000
	h100Reads    = 2_000_000_000_000
	h100Step     = 0.003
)

// TrainWork is the work of learning from a token, in forward passes: forward and backward are three, one
// more where layers are computed again because no activations are kept.
func TrainWork(keep bool) float64 {
	if keep {
		return 3
	}
	return 4
}

// Seconds estimates the time of an iteration on an H100: sampling in so many steps, scoring and the update.
// An iteration has so many rollouts, or a part of one.
func (j Job) Seconds(steps, rollouts float64) float64 {
	parameters, tokens := float64(j.Network.Parameters()), float64(j.Update.Tokens())
	sampling := steps*max(h100Step, float64(j.ComputeBytes)*parameters/h100Reads) + float64(j.Rollout.ContextTokens())*parameters/H100Work
	learning := tokens * parameters / H100Work * (float64(j.Scored()) + TrainWork(j.Keep)*float64(j.Update.Epochs))
	return rollouts*sampling + learning
}
