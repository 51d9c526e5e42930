package watch

import (
	"errors"
	"fmt"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc/codes"

	"github.com/reprise-rl/reprise/infra/human"
)

// permanent reports whether asking the server again would give the same error.
func permanent(err error) bool {
	if _, ok := errors.AsType[*serviceerror.NamespaceNotFound](err); ok {
		return true
	}
	switch serviceerror.ToStatus(err).Code() {
	case codes.PermissionDenied, codes.Unauthenticated, codes.InvalidArgument, codes.Unimplemented:
		return true
	}
	return false
}

// retries holds, by activity id, the attempt at which a retry was last printed.
type retries map[string]int32

// showRetries prints an activity's retry and its reason at the second attempt and each
// time the number of attempts has doubled. Otherwise an activity that cannot succeed
// until a user acts would look like progress.
func (w *Watcher) showRetries(pending []*workflowpb.PendingActivityInfo) {
	printed := retries{}
	for _, a := range pending {
		kind := a.GetActivityType().GetName()
		if a.GetAttempt() < 2 || a.GetLastFailure() == nil || strings.HasPrefix(kind, "internalSession") {
			continue
		}
		last := w.retries[a.ActivityId]
		if last == 0 || a.Attempt >= 2*last {
			last = a.Attempt
			converter.DecodeCommonFailureAttributes(w.Converter, a.LastFailure)
			w.line(fmt.Sprintf("%s is tried again (attempt %d): %s", kind, a.Attempt, retryReason(a)))
		}
		printed[a.ActivityId] = last
	}
	w.retries = printed
}

// retryReason is why the last attempt of an activity failed.
func retryReason(a *workflowpb.PendingActivityInfo) string {
	f := a.GetLastFailure()
	if timeout := f.GetTimeoutFailureInfo(); timeout != nil {
		switch timeout.GetTimeoutType() {
		case enumspb.TIMEOUT_TYPE_START_TO_CLOSE:
			return "it took longer than its time-out; if it does so again, the spec's limits.activity_seconds is too small for this device"
		case enumspb.TIMEOUT_TYPE_HEARTBEAT:
			return "its worker was silent"
		}
	}
	text := human.Visible(f.GetMessage())
	if kind := f.GetApplicationFailureInfo().GetType(); kind != "" {
		text = kind + ": " + text
	}
	return text
}
