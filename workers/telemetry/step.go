package telemetry

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	table "github.com/reprise-rl/reprise/activities/steps"
)

// steps are the steps by the activity's name; all other activities are "other".
var steps = func() map[string]string {
	named := map[string]string{}
	for _, r := range table.All() {
		if r.Step != "" {
			named[r.Name] = r.Step
		}
	}
	return named
}()

// onDevice are the activities that a session is for.
var onDevice = table.Named(table.OnSession)

const evaluate = "evaluate"

// tokenKinds are what the tokens of a step are called.
var tokenKinds = map[string]string{
	"generate": "generated", evaluate: "evaluated", "score": "scored", "update": "trained", "warm_start": "taught", "grade": "graded",
}

// stepOf names an activity's step; false for those that hold a device for as long as a run has it.
func stepOf(kind string, arguments []any) (string, bool) {
	if table.Holds(kind) {
		return "", false
	}
	if len(arguments) > 0 {
		switch in := arguments[0].(type) {
		case activities.GenerateInput:
			if in.Rollout.Evaluation != nil {
				return evaluate, true
			}
		case activities.StepInput:
			if in.Rollout.Evaluation != nil {
				return evaluate, true
			}
		}
	}
	if step, ok := steps[kind]; ok {
		return step, true
	}
	return "other", true
}

// holder is the run that an activity took the device for; "" for a host's.
func holder(arguments []any) string {
	if len(arguments) == 0 {
		return ""
	}
	switch in := arguments[0].(type) {
	case activities.WarmStartInput:
		return in.Run
	case activities.RestoreInput:
		return in.Version.Run.ID
	case activities.GenerateInput:
		return in.Policy.Run.ID
	case activities.PublishInput:
		return in.Policy.Run.ID
	case activities.BlockInput:
		return in.Policy.Run.ID
	case activities.ScoreInput:
		return in.Policy.Run.ID
	case activities.DiagnoseInput:
		return in.Policy.Run.ID
	case activities.GradeInput:
		return in.Policy.Run.ID
	case activities.UpdateInput:
		return in.Policy.Run.ID
	case activities.SnapshotInput:
		return in.Policy.Run.ID
	case activities.TakeCallsInput:
		return in.Run.ID
	}
	return ""
}

// retried are the kinds of errors that are tried again; activities.NonRetryable are
// the others.
var retried = []string{"EnvironmentNotServed", "StoreUnavailable", "Retryable"}

// failureOf names an error by its kind, one of a fixed set.
func failureOf(err error) string {
	var app *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	switch {
	case errors.As(err, &cancelled), errors.Is(err, context.Canceled):
		return "Cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "Timeout"
	case errors.As(err, &app):
		// A kind that may pass is tried again under its name with Again before it.
		kind := strings.TrimPrefix(app.Type(), "Again")
		if slices.Contains(activities.NonRetryable, kind) || slices.Contains(retried, kind) {
			return kind
		}
	}
	return "other"
}
