package activities

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/starter"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Kinds of errors as they appear in a workflow's history. Those in NonRetryable
// end the activity at once: trying again cannot help, or somebody must decide.
const (
	KindSpecInvalid     = "SpecInvalid"     // the spec has problems; all are in the message
	KindSpecDiffers     = "SpecDiffers"     // this run id has another spec already
	KindModelInvalid    = "ModelInvalid"    // the base model's files cannot be used
	KindDivergence      = "Divergence"      // other bytes than the committed ones
	KindArtifactAltered = "ArtifactAltered" // an artifact is not what its digest says
	KindArtifactMissing = "ArtifactMissing" // an artifact is gone
	KindStateDiffers    = "StateDiffers"    // a rebuilt state is not the recorded one
	KindProgramsDiffer  = "ProgramsDiffer"  // this build lowers other programs than the run's
	KindNotResident     = "NotResident"     // the worker does not hold this policy: restore it
	KindDraining        = "Draining"        // the worker is about to stop: open another session
	KindInvalid         = "Invalid"         // right bytes that cannot be used: a broken chain, a batch that does not fit
	KindNotFound        = "NotFound"        // no such run or iteration
)

// NonRetryable are the kinds no retry can mend.
var NonRetryable = []string{
	KindSpecInvalid, KindSpecDiffers, KindModelInvalid, KindDivergence, KindArtifactAltered,
	KindArtifactMissing, KindStateDiffers, KindProgramsDiffer, KindNotResident, KindDraining, KindInvalid, KindNotFound,
}

// Sentinel errors of this package; see the kinds of the same names.
var (
	ErrSpecDiffers    = errors.New("another spec has this run id")
	ErrModelInvalid   = errors.New("model cannot be used")
	ErrStateDiffers   = errors.New("rebuilt state differs from the recorded one")
	ErrProgramsDiffer = errors.New("programs differ from the recorded ones")
	ErrNotResident    = errors.New("policy version is not held by this worker")
	ErrDraining       = errors.New("worker is about to stop")
	ErrNotFound       = errors.New("not found")
)

// kindOf names the kind of an error, or "" for one that a retry may mend.
func kindOf(err error) string {
	var problems spec.Problems
	switch {
	case errors.As(err, &problems):
		return KindSpecInvalid
	case errors.Is(err, ErrSpecDiffers):
		return KindSpecDiffers
	case errors.Is(err, ErrModelInvalid):
		return KindModelInvalid
	case errors.Is(err, store.ErrDivergence):
		return KindDivergence
	case errors.Is(err, store.ErrAltered):
		return KindArtifactAltered
	case errors.Is(err, store.ErrNotFound):
		return KindArtifactMissing
	case errors.Is(err, ErrStateDiffers):
		return KindStateDiffers
	case errors.Is(err, ErrProgramsDiffer):
		return KindProgramsDiffer
	case errors.Is(err, ErrNotResident):
		return KindNotResident
	case errors.Is(err, ErrDraining):
		return KindDraining
	case errors.Is(err, ErrNotFound):
		return KindNotFound
	case errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrBroken), errors.Is(err, store.ErrTooLarge),
		errors.Is(err, model.ErrInput), errors.Is(err, model.ErrTensors), errors.Is(err, model.ErrConfig), errors.Is(err, starter.ErrNoAdvice):
		return KindInvalid
	}
	return ""
}

// edge turns the error of an activity into what Temporal's history keeps: the
// operation, the kind, and whether trying again can help. An activity defers it once,
// with its named error.
func edge(ctx context.Context, err *error, operation string, args ...any) {
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
	if kind := kindOf(*err); kind != "" {
		*err = temporal.NewNonRetryableApplicationError(message, kind, nil)
		return
	}
	*err = temporal.NewApplicationError(message, retryKindOf(*err))
}

// retryKindOf names what a retry waits for, as the Web UI shows it.
func retryKindOf(err error) string {
	switch {
	case errors.Is(err, store.ErrDenied):
		return "StoreAccessDenied"
	case errors.Is(err, store.ErrNoBucket):
		return "StoreNoBucket"
	case store.Retryable(err):
		return "StoreUnavailable"
	}
	return "Retryable"
}
