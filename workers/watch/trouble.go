package watch

import (
	"errors"

	"github.com/reprise-rl/reprise/workers/runs"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"google.golang.org/grpc/codes"
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
	for _, a := range runs.Retried(pending, w.Converter) {
		last := w.retries[a.ID]
		if last == 0 || a.Attempt >= 2*last {
			last = a.Attempt
			w.line(a.String())
		}
		printed[a.ID] = last
	}
	w.retries = printed
}
