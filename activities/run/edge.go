package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

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

// kinds are the errors of each kind; the first kind that an error is of counts.
var kinds = []struct {
	name   string
	errors []error
}{
	{activities.KindRemoved, []error{store.ErrRemoved}},
	{activities.KindSpecDiffers, []error{activities.ErrSpecDiffers}},
	{activities.KindModelInvalid, []error{
		activities.ErrModelInvalid, tokenizer.ErrFiles, tokenizer.ErrVocabulary, tokenizer.ErrNoTemplate, tokenizer.ErrTemplate,
		tokenizer.ErrRewritten,
	}},
	{activities.KindDivergence, []error{store.ErrDivergence}},
	{activities.KindArtifactAltered, []error{store.ErrAltered}},
	{activities.KindArtifactMissing, []error{store.ErrNotFound}},
	{activities.KindStoreRefused, []error{store.ErrRefused}},
	{activities.KindStoreDenied, []error{store.ErrDenied}},
	{activities.KindNoBucket, []error{store.ErrNoBucket}},
	{activities.KindStateDiffers, []error{activities.ErrStateDiffers}},
	{activities.KindProgramsDiffer, []error{activities.ErrProgramsDiffer}},
	{activities.KindNotResident, []error{activities.ErrNotResident}},
	{activities.KindDraining, []error{activities.ErrDraining}},
	{activities.KindOutOfMemory, []error{activities.ErrOutOfMemory}},
	{activities.KindDeviceFailed, []error{activities.ErrDeviceFailed}},
	{activities.KindDeviceTooSmall, []error{activities.ErrDeviceTooSmall}},
	{activities.KindNotExact, []error{activities.ErrNotExact}},
	{activities.KindNotFree, []error{activities.ErrNotFree}},
	{activities.KindCasesTooNarrow, []error{envs.ErrCases}},
	{activities.KindEnvironment, []error{activities.ErrEnvironment}},
	{activities.KindEnvironmentBroke, []error{activities.ErrEnvironmentBroke}},
	{activities.KindNotFound, []error{activities.ErrNotFound}},
	{activities.KindInvalid, []error{
		store.ErrInvalid, store.ErrBroken, store.ErrTooLarge, model.ErrInput, model.ErrTensors, model.ErrConfig, starter.ErrNoAdvice,
	}},
}

// KindOf names the kind of an error, or "" if a retry may fix it.
func KindOf(err error) string {
	if _, ok := errors.AsType[spec.Problems](err); ok {
		return activities.KindSpecInvalid
	}
	for _, kind := range kinds {
		if slices.ContainsFunc(kind.errors, func(of error) bool { return errors.Is(err, of) }) {
			return kind.name
		}
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
		if mayPass(kind, *err, activity.GetInfo(ctx).Attempt) {
			*err = temporal.NewApplicationError(message, "Again"+kind)
			return
		}
		if slices.Contains(activities.Correctable, kind) {
			*err = temporal.NewApplicationError(message, kind) // the workflow's options say whether it ends the activity
			return
		}
		*err = temporal.NewNonRetryableApplicationError(message, kind, nil, details(*err)...)
		return
	}
	*err = temporal.NewApplicationError(message, retryKindOf(*err))
}

const (
	// finalAttempt is the attempt from which on an error ends the activity that another attempt may not meet.
	finalAttempt = 4
	// finalDenial is the same for a bucket that denies access or is gone. It comes more than a minute after the first
	// attempt: a server that starts, and keys that are exchanged, may deny access for a while.
	finalDenial = 10
)

// mayPass reports whether another attempt may not meet an error that ends the activity otherwise: a bit that flipped on the way, a
// body that was cut, the answer of a proxy. What the bucket has is as it was.
func mayPass(kind string, err error, attempt int32) bool {
	if slices.Contains(activities.Correctable, kind) {
		return attempt < finalDenial
	}
	if attempt >= finalAttempt {
		return false
	}
	switch kind {
	case activities.KindArtifactAltered, activities.KindArtifactMissing, activities.KindStoreRefused:
		return true
	}
	return kind == activities.KindInvalid && (errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrBroken))
}

// details are what the workflow needs to know of an error besides its kind.
func details(err error) []any {
	if programs, ok := errors.AsType[*activities.ProgramsDiffer](err); ok {
		return []any{programs}
	}
	return nil
}

// retryKindOf names what a retry waits for, as the Web UI shows it.
func retryKindOf(err error) string {
	switch {
	case errors.Is(err, activities.ErrNotServed):
		return "EnvironmentNotServed"
	case store.Retryable(err):
		return "StoreUnavailable"
	}
	return "Retryable"
}
