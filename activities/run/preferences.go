package run

import (
	"slices"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Preferences lays rows out as the step of a process reward model takes them, in their order
// (Arrange): its own log-probs are the old ones, and the weights that preferences gave the tokens
// (credit.Preferences) are the advantages, which are summed. At the parameters of the old log-probs
// every ratio is 1, so that the surrogate's gradient is that of Σ weight·log-prob. The rows are not
// written to.
func Preferences(rows []batch.Row, sh model.Shapes) ([]batch.MicroBatch, error) {
	out := slices.Clone(rows)
	for i, r := range rows {
		out[i].Columns = batch.RowColumns{batch.OldLogProbs: r.Columns[batch.OldValues], batch.Advantages: r.Columns[batch.Returns]}
	}
	return Minibatch(out, sh, spec.Update{Aggregation: string(loss.SumConstant)}, 1)
}
