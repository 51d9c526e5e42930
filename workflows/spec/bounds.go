package spec

// DefaultDeviceGB is the memory of the device that a run is made for, in GiB: an H100's.
const DefaultDeviceGB = 80

// Bounds of fields and of the sizes that a run chooses, and defaults of other policies than the starter.
const (
	// maxTurns bounds the turns of a trajectory: every turn has two artifacts
	// an iteration, and its own context width.
	maxTurns = 100
	// maxRounds bounds the rounds of a rollout, and maxUpdates the iterations that
	// learn from one.
	maxRounds  = 10
	maxUpdates = 16
	// maxTrajectories bounds the rows of a rollout, and those of an evaluation.
	maxTrajectories = 65536
	// maxTokens bounds the width of a context.
	maxTokens = 131072
	// maxOptions bounds an environment's options in bytes, so that a spec that
	// was read can be read again in canonical form, where numbers may be longer.
	maxOptions = 1 << 18
	// maxSeed is the largest integer that every JSON reader keeps.
	maxSeed = 1 << 53
	// snapshotShare is the share of the time that snapshots may take.
	snapshotShare = 0.05
	// keepShare of the device's memory may be a run's that keeps its activations. The rest is for
	// the driver, for what the allocator cannot use, and for the error of the estimate.
	keepShare = 0.85
	// mostEvery bounds the iterations between two snapshots that are chosen so.
	mostEvery = 1000
	// maxPieces bounds the pieces of a step: a run carries the names of their tables.
	maxPieces = 64
	// loadedChunk is the chunk of a pretrained model, in tokens: half a minute for 64 rows
	// of 494 M parameters on two cores, a second on a GPU.
	loadedChunk = 32
	// loadedWidths and loadedShards divide the optimizer steps of a pretrained model, the former
	// from rows of wideRow tokens on: below that, compiling costs more than the widths save.
	loadedWidths = 3
	wideRow      = 512
	loadedShards = 8
	// minTemperature keeps logits divided by the temperature within float32.
	minTemperature = 0.01
)

// The warm start of other policies than the starter, unless a spec says otherwise: random play in the
// right format. A published model that has not seen the format earns no reward at first; these
// updates teach it what a reply looks like and nothing about the task.
const (
	formatSteps       = 10
	formatRows        = 16
	formatRate        = 3e-5
	formatAdapterRate = 1e-3
)

// keptSnapshots is how many snapshots a run of another policy than the starter keeps: a snapshot of a published model has
// gigabytes, and with two the newest one may be damaged.
const keptSnapshots = 2
