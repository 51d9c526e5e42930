package workflows

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
)

// waitingForPrograms is the phase of a run whose fingerprint is served by a worker of
// another build, which lowers other programs.
const waitingForPrograms = "waiting for a worker with the run's programs"

// programsWaitMin is the wait before the second try after a worker with other programs;
// each later wait is twice as long, up to sessionWaitMax.
const programsWaitMin = 5 * time.Second

// errOtherPrograms says that the session's worker has other programs than the run's.
var errOtherPrograms = errors.New("the worker has other programs than the run's")

// wrongPrograms are those of a worker that cannot serve the run.
type wrongPrograms struct {
	activities.ProgramsDiffer
	reason string
	wait   time.Duration // before the next try
}

// otherPrograms notes that a worker has other programs than the run's, if the error of a
// Restore says so and the run waits for another one. An evaluation fails instead.
func (t *train) otherPrograms(ctx workflow.Context, err error) bool {
	var app *temporal.ApplicationError
	if t.measuring || !errors.As(err, &app) || app.Type() != activities.KindProgramsDiffer {
		return false
	}
	found := &wrongPrograms{reason: app.Message(), wait: programsWaitMin}
	if app.HasDetails() {
		if err := app.Details(&found.ProgramsDiffer); err != nil {
			workflow.GetLogger(ctx).Warn("the programs that differ are not known", "error", err)
		}
	}
	if before := t.programs; before != nil {
		found.wait = min(2*before.wait, sessionWaitMax)
	}
	t.programs = found
	return true
}

// awaitPrograms waits before another worker is tried. The session is closed meanwhile, so
// that the worker serves others.
func (t *train) awaitPrograms(ctx workflow.Context) error {
	defer t.waitedSince(ctx, workflow.Now(ctx))
	t.wait = Waiting{Wanted: t.Fingerprint, Present: []string{t.Fingerprint}}
	t.show(ctx, waitingForPrograms)
	_, err := workflow.AwaitWithTimeout(ctx, t.programs.wait, func() bool { return t.Paused || t.adopts() })
	return err
}

// showPrograms is a table of the programs that differ.
func (w *Waiting) showPrograms(b *strings.Builder) {
	fmt.Fprintf(b, "%s.\n\n| program | wanted | there |\n|---|---|---|\n", w.Reason)
	for _, p := range w.Programs {
		fmt.Fprintf(b, "| %s | `%s` | `%s` |\n", p.Name, p.Recorded, p.Present)
	}
	b.WriteString("\nStart a worker of the build that began the run, or adopt the present programs (update `adopt-programs`): see docs/upgrading.md.\n\n")
}
