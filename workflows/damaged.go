package workflows

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/iteration"
)

// damaged is what err says of an artifact of the running iteration, or of the rollout that is made beside it, which is
// damaged or gone in the bucket; "" for other errors. No manifest names it yet, so that the steps that made it can write it
// again. It is "" too for an iteration that was done again for it before: doing it again has not helped.
func (t *train) damaged(err error) string {
	var app *temporal.ApplicationError
	if !errors.As(err, &app) || t.Current == nil || t.DoneAgain == t.Next+1 {
		return ""
	}
	if kind := app.Type(); kind != activities.KindArtifactAltered && kind != activities.KindArtifactMissing {
		return ""
	}
	for _, n := range []int{t.Next, t.Next + 1} {
		if strings.Contains(app.Message(), store.IterationDir(t.Run.ID, t.Branch, n)+"/") {
			return app.Message()
		}
	}
	return ""
}

// doAgain has the running iteration done again from its begin, with the settings that it has begun with. Its artifacts that are undamaged
// are found as they are.
func (t *train) doAgain(ctx workflow.Context, damage string) {
	lost := t.Current.Lost
	t.DoneAgain, t.ahead, t.Current = t.Next+1, nil, iteration.BeginAfter(t.Head, t.Current.Settings)
	t.Current.Lost = lost
	t.Warnings = append(t.Warnings, fmt.Sprintf("iteration %d is done again, since an artifact of it was damaged or gone: %s", t.Next, shortenTo(damage, maxFailure)))
	t.show(ctx, fmt.Sprintf("iteration %d is done again", t.Next))
}
