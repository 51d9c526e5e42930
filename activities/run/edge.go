package run

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// KindOf names the kind of an error, or "" if a retry may fix it.
func KindOf(err error) string {
	var problems spec.Problems
	switch {
	case errors.As(err, &problems):
		return activities.KindSpecInvalid
	case errors.Is(err, activities.ErrSpecDiffers):
		return activities.KindSpecDiffers
	case errors.Is(err, activities.ErrModelInvalid), errors.Is(err, tokenizer.ErrFiles), errors.Is(err, tokenizer.ErrVocabulary),
		errors.Is(err, tokenizer.ErrNoTemplate), errors.Is(err, tokenizer.ErrTemplate), errors.Is(err, tokenizer.ErrRewritten):
		return activities.KindModelInvalid
	case errors.Is(err, store.ErrDivergence):
		return activities.KindDivergence
	case errors.Is(err, store.ErrAltered):
		return activities.KindArtifactAltered
	case errors.Is(err, store.ErrNotFound):
		return activities.KindArtifactMissing
	case errors.Is(err, activities.ErrStateDiffers):
		return activities.KindStateDiffers
	case errors.Is(err, activities.ErrProgramsDiffer):
		return activities.KindProgramsDiffer
	case errors.Is(err, activities.ErrNotResident):
		return activities.KindNotResident
	case errors.Is(err, activities.ErrDraining):
		return activities.KindDraining
	case errors.Is(err, activities.ErrOutOfMemory):
		return activities.KindOutOfMemory
	case errors.Is(err, activities.ErrDeviceFailed):
		return activities.KindDeviceFailed
	case errors.Is(err, activities.ErrDeviceTooSmall):
		return activities.KindDeviceTooSmall
	case errors.Is(err, activities.ErrNotFree):
		return activities.KindNotFree
	case errors.Is(err, envs.ErrCases):
		return activities.KindCasesTooNarrow
	case errors.Is(err, activities.ErrEnvironment):
		return activities.KindEnvironment
	case errors.Is(err, activities.ErrEnvironmentBroke):
		return activities.KindEnvironmentBroke
	case errors.Is(err, activities.ErrNotFound):
		return activities.KindNotFound
	case errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrBroken), errors.Is(err, store.ErrTooLarge),
		errors.Is(err, model.ErrInput), errors.Is(err, model.ErrTensors), errors.Is(err, model.ErrConfig), errors.Is(err, starter.ErrNoAdvice):
		return activities.KindInvalid
	}
	return ""
}

// Edge turns the error of an activity into what Temporal's history keeps: the
// operation, the kind, and whether trying again can help. An activity defers it once,
// with its named error.
func Edge(ctx context.Context, err *error, operation string, args ...any) {
	if *err == nil || ctx.Err() != nil && errors.Is(*err, ctx.Err()) {
		return // cancelled or out of time: the server knows which
	}
	operation = fmt.Sprintf(operation, args...)
	if !activity.IsActivity(ctx) {
		*err = fmt.Errorf("%s: %w", operation, *err) // called directly, by replay or the bench
		return
	}
	// The whole text is the message: as a cause it would be shown twice.
	message := fmt.Sprintf("%s: %v", operation, *err)
	if kind := KindOf(*err); kind != "" {
		*err = temporal.NewNonRetryableApplicationError(message, kind, nil, details(*err)...)
		return
	}
	*err = temporal.NewApplicationError(message, retryKindOf(*err))
}

// details are what the workflow needs to know of an error besides its kind.
func details(err error) []any {
	var programs *activities.ProgramsDiffer
	if errors.As(err, &programs) {
		return []any{programs}
	}
	return nil
}

// retryKindOf names what a retry waits for, as the Web UI shows it.
func retryKindOf(err error) string {
	switch {
	case errors.Is(err, activities.ErrNotServed):
		return "EnvironmentNotServed"
	case errors.Is(err, store.ErrDenied):
		return "StoreAccessDenied"
	case errors.Is(err, store.ErrNoBucket):
		return "StoreNoBucket"
	case store.Retryable(err):
		return "StoreUnavailable"
	}
	return "Retryable"
}
