package spec

// Paths of the fields of a warm start.
const (
	WarmStartSteps          = "policy.warm_start.steps"
	warmStartRows           = "policy.warm_start.rows"
	warmStartRate           = "policy.warm_start.learning_rate"
	warmStartDemonstrations = "policy.warm_start.demonstrations"
)

// Paths of other fields that the code names.
const (
	environmentName = "environment.name"
	dropFlat        = "selection.drop_flat"
	prefill         = "rollout.prefill"
	wording         = "rollout.protocol"
	stopAt          = "rollout.stop_at"
	supervisedShare = "update.supervised.share"
	snapshotRetain  = "snapshot.retain"
	// firstTurn is a knob only where the spec gives it.
	firstTurn = "update.kl_first_turn"
)

// Paths of fields whose defaults WithSizes may change.
const (
	MicroBatch    = "update.micro_batch"
	SnapshotEvery = "snapshot.every"
	Widths        = "update.widths"
	Shards        = "update.shards"
)
