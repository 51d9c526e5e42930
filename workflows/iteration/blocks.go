package iteration

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/store"
)

// publish stores what other workers sample the rollout's blocks by.
func (r rolling) publish() []Call {
	return []Call{call(steps.Publish, r.label, activities.PublishInput{Policy: r.policy}, func(out activities.PublishResult) {
		r.Record(r.timing+"publish", out.Telemetry)
		r.State.Published = &out.Published
	}).shown(r.label+" · publish", r.label+" · what other workers sample by").timed(r.timing + "publish")}
}

// sampling is the turn's blocks that are left, which may run at once, or the call that joins their
// tables.
func (r rolling) sampling(turn int, key string) []Call {
	var calls []Call
	for i := range r.blocks {
		if r.progress.Blocks != nil && r.progress.Blocks[i].Key != "" {
			continue
		}
		name := fmt.Sprintf("%s · block %d", key, i+1)
		calls = append(calls, call(steps.Block, name, activities.BlockInput{
			Policy: r.policy, Published: *r.State.Published, Programs: activities.DigestOfPrograms(r.Programs), Rollout: r.what,
			Settings: r.settings, Turn: turn, Block: i, Turns: r.progress.Turns, Opening: r.progress.Opening,
		}, func(out activities.BlockResult) {
			r.Record(r.timing+"generate", out.Telemetry)
			if r.progress.Blocks == nil {
				r.progress.Blocks = make([]store.Ref, r.blocks)
			}
			r.progress.Blocks[i] = out.Table
		}).shown(key+" · generate", name).timed(r.timing+"generate"))
	}
	if len(calls) > 0 {
		return calls
	}
	joined := func(out activities.GenerateResult) {
		r.Record(r.timing+"generate", out.Telemetry)
		r.progress.Generate, r.progress.Blocks = &out.Table, nil // the table has the rows of all blocks
	}
	phase, summary := key+" · generate", fmt.Sprintf("%s · %d rows of %d blocks", key, r.rows, r.blocks)
	if r.beside {
		return []Call{call(steps.Join, key, activities.JoinInput{
			Run: r.Run, Branch: r.Branch, Rollout: r.what, Turn: turn, Rows: r.rows, Blocks: r.progress.Blocks,
		}, joined).shown(phase, summary).timed(r.timing + "generate")}
	}
	return []Call{call(steps.Generate, key, activities.GenerateInput{
		Policy: r.policy, Rollout: r.what, Settings: r.settings, Turn: turn, Turns: r.progress.Turns, Opening: r.progress.Opening,
		Blocks: r.progress.Blocks,
	}, joined).shown(phase, summary).timed(r.timing + "generate")}
}
