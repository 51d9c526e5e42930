package run

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// A model whose tokenizer or template is unusable is refused.
func TestUnusableTokenizerIsRefused(t *testing.T) {
	require.Equal(t, activities.KindModelInvalid, KindOf(fmt.Errorf("tokenizer: %w: %w", tokenizer.ErrFiles, activities.ErrModelInvalid)))
}

// No retry can correct a model, so a run whose model is wrong ends.
func TestModelsAreNotTriedAgain(t *testing.T) {
	for _, err := range []error{tokenizer.ErrNoTemplate, tokenizer.ErrTemplate, tokenizer.ErrRewritten, tokenizer.ErrFiles, tokenizer.ErrVocabulary} {
		require.Equal(t, activities.KindModelInvalid, KindOf(fmt.Errorf("measure the contexts: %w", err)), err)
	}
}

// Every error that no retry can fix has its kind, whatever wraps it; all others are tried again.
func TestKindsOfErrors(t *testing.T) {
	kinds := map[string][]error{
		activities.KindSpecInvalid: {spec.Problems{{Path: "seed"}}}, activities.KindSpecDiffers: {activities.ErrSpecDiffers}, activities.KindModelInvalid: {activities.ErrModelInvalid},
		activities.KindDivergence: {store.ErrDivergence}, activities.KindArtifactAltered: {store.ErrAltered}, activities.KindArtifactMissing: {store.ErrNotFound}, activities.KindStoreRefused: {store.ErrRefused},
		activities.KindStoreDenied: {store.ErrDenied}, activities.KindNoBucket: {store.ErrNoBucket}, activities.KindRemoved: {store.ErrRemoved},
		activities.KindStateDiffers: {activities.ErrStateDiffers}, activities.KindProgramsDiffer: {activities.ErrProgramsDiffer, &activities.ProgramsDiffer{}},
		activities.KindNotResident: {activities.ErrNotResident}, activities.KindDraining: {activities.ErrDraining}, activities.KindOutOfMemory: {activities.ErrOutOfMemory},
		activities.KindDeviceFailed: {activities.ErrDeviceFailed}, activities.KindDeviceTooSmall: {activities.ErrDeviceTooSmall}, activities.KindNotFree: {activities.ErrNotFree}, activities.KindNotExact: {activities.ErrNotExact},
		activities.KindCasesTooNarrow: {envs.ErrCases}, activities.KindEnvironment: {activities.ErrEnvironment}, activities.KindEnvironmentBroke: {activities.ErrEnvironmentBroke},
		activities.KindNotFound: {activities.ErrNotFound},
		activities.KindInvalid:  {store.ErrInvalid, store.ErrBroken, store.ErrTooLarge, model.ErrInput, model.ErrTensors, model.ErrConfig, starter.ErrNoAdvice},
		"":                      {errors.New("no route"), store.ErrUnavailable, activities.ErrNotServed, context.Canceled},
	}
	seen := []string{}
	for kind, of := range kinds {
		for _, err := range of {
			require.Equal(t, kind, KindOf(err), "%v", err)
			require.Equal(t, kind, KindOf(fmt.Errorf("read it: %w: %w", errors.New("something"), err)), "%v", err)
		}
		if kind != "" {
			seen = append(seen, kind)
		}
	}
	require.ElementsMatch(t, activities.NonRetryable, seen)
	// A model that is missing a file, or a chain that is, says so before what it is made invalid by.
	require.Equal(t, activities.KindModelInvalid, KindOf(fmt.Errorf("%w: %w", store.ErrNotFound, activities.ErrModelInvalid)))
	require.Equal(t, activities.KindArtifactMissing, KindOf(fmt.Errorf("%w: %w", store.ErrInvalid, store.ErrNotFound)))
}

// What a retry waits for is shown by its name.
func TestRetryKinds(t *testing.T) {
	for want, err := range map[string]error{
		"EnvironmentNotServed": activities.ErrNotServed, "StoreUnavailable": store.ErrUnavailable, "Retryable": errors.New("no route"),
	} {
		require.Equal(t, want, retryKindOf(fmt.Errorf("read: %w", err)))
	}
}

// Outside of an activity an error is wrapped, and its kind can be asked. An end of the context stays what it is.
func TestEdgeOutsideOfAnActivity(t *testing.T) {
	err := fmt.Errorf("read: %w", store.ErrInvalid)
	Edge(t.Context(), &err, "step turn %d of run %s", 3, "r")
	require.EqualError(t, err, "step turn 3 of run r: read: "+store.ErrInvalid.Error())
	require.ErrorIs(t, err, store.ErrInvalid)
	err = nil
	Edge(t.Context(), &err, "step")
	require.NoError(t, err)
	ended, end := context.WithCancel(t.Context())
	err = context.Canceled
	Edge(ended, &err, "step")
	require.EqualError(t, err, "step: context canceled", "the context is not cancelled")
	end()
	err = fmt.Errorf("read: %w", context.Canceled)
	Edge(ended, &err, "step")
	require.EqualError(t, err, "read: context canceled")
	err = store.ErrInvalid
	Edge(ended, &err, "step")
	require.ErrorContains(t, err, "step: ", "another error is another one")
}

// The history keeps the operation, the kind, and whether trying again can help; of programs that differ, which.
func TestEdgeOfAnActivity(t *testing.T) {
	var s testsuite.WorkflowTestSuite
	env := s.NewTestActivityEnvironment()
	differ := &activities.ProgramsDiffer{Programs: []activities.OtherProgram{{Name: "score"}}}
	given := map[string]error{"invalid": store.ErrInvalid, "input": model.ErrInput, "away": store.ErrUnavailable, "differ": differ}
	activity := func(ctx context.Context, which string) (err error) {
		defer Heartbeat(ctx)()
		defer Edge(ctx, &err, "step of %s", which)
		return given[which]
	}
	env.RegisterActivity(activity)
	for which, want := range map[string]struct {
		kind  string
		never bool
	}{"invalid": {"AgainInvalid", false}, "input": {activities.KindInvalid, true}, "away": {"StoreUnavailable", false}, "differ": {activities.KindProgramsDiffer, true}} {
		_, err := env.ExecuteActivity(activity, which)
		var application *temporal.ApplicationError
		require.ErrorAs(t, err, &application)
		require.Equal(t, want.kind, application.Type())
		require.Equal(t, want.never, application.NonRetryable())
		require.Equal(t, fmt.Sprintf("step of %s: %v", which, given[which]), application.Message())
		require.NoError(t, errors.Unwrap(application), "the text is the message, once")
		require.Equal(t, which == "differ", application.HasDetails())
		if which == "differ" {
			var got activities.ProgramsDiffer
			require.NoError(t, application.Details(&got))
			require.Equal(t, *differ, got)
		}
	}
	_, err := env.ExecuteActivity(activity, "nothing")
	require.NoError(t, err)
}

// A bucket that denies access or is gone is asked for more than a minute, with the pauses of a step, before that counts.
func TestDenialsAreTriedForAMinute(t *testing.T) {
	for _, err := range []error{store.ErrDenied, store.ErrNoBucket} {
		attempt, waited, pause := int32(1), time.Duration(0), 300*time.Millisecond
		for mayPass(KindOf(err), err, attempt) {
			attempt, waited, pause = attempt+1, waited+pause, min(2*pause, 15*time.Second)
		}
		require.Greater(t, waited, time.Minute)
		require.Less(t, waited, 90*time.Second)
	}
}

// What a bad read gave is read again three times before it ends a run; what is computed is not.
func TestBadReadsAreMadeAgain(t *testing.T) {
	for err, again := range map[error]bool{
		store.ErrAltered: true, store.ErrNotFound: true, store.ErrRefused: true, store.ErrInvalid: true, store.ErrBroken: true,
		model.ErrInput: false, store.ErrDivergence: false, activities.ErrStateDiffers: false, activities.ErrModelInvalid: false, store.ErrTooLarge: false,
	} {
		for attempt := int32(1); attempt < 4; attempt++ {
			require.Equal(t, again, mayPass(KindOf(err), err, attempt), "%v, attempt %d", err, attempt)
		}
		require.False(t, mayPass(KindOf(err), err, 4), "%v", err)
	}
	require.False(t, mayPass(KindOf(fmt.Errorf("%w: %w", store.ErrNotFound, activities.ErrModelInvalid)), store.ErrNotFound, 1), "a model without a file stays without")
}
