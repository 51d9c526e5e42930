package s3

import (
	"context"
	"errors"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/reprise-rl/reprise/infra/store"
)

// kindOf gives an S3 error code its kind. Codes not here go by HTTP status.
var kindOf = map[string]error{
	"NoSuchKey":                  store.ErrNotFound,
	"NoSuchVersion":              store.ErrNotFound,
	"NoSuchUpload":               store.ErrNotFound,
	"NoSuchBucket":               store.ErrNoBucket,
	"PreconditionFailed":         store.ErrExists,
	"ConditionalRequestConflict": store.ErrConflict,
	"OperationAborted":           store.ErrConflict,
	"XAdminUserNotFound":         store.ErrDenied, // versitygw's, with status 404
	"AccessDenied":               store.ErrDenied,
	"InvalidAccessKeyId":         store.ErrDenied,
	"SignatureDoesNotMatch":      store.ErrDenied,
	"InvalidToken":               store.ErrDenied,
	"ExpiredToken":               store.ErrDenied,
	"TokenRefreshRequired":       store.ErrDenied,
	"AccountProblem":             store.ErrDenied,
	"AllAccessDisabled":          store.ErrDenied,
	"RequestTimeTooSkewed":       store.ErrDenied,
	"SlowDown":                   store.ErrUnavailable,
	"RequestTimeout":             store.ErrUnavailable,
	"InternalError":              store.ErrUnavailable,
	"ServiceUnavailable":         store.ErrUnavailable,
	// The bytes that arrived were not the bytes that were sent: a fault of the network,
	// so a retry may help.
	"BadDigest":                   store.ErrUnavailable,
	"XAmzContentSHA256Mismatch":   store.ErrUnavailable,
	"XAmzContentChecksumMismatch": store.ErrUnavailable,
	"IncompleteBody":              store.ErrUnavailable,
	"QuotaExceeded":               store.ErrUnavailable,
	"XMinioStorageFull":           store.ErrUnavailable,
}

var hintOf = map[error]string{
	store.ErrDenied:      "check the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or the shared credentials file), their permissions on the bucket, and this machine's clock",
	store.ErrNoBucket:    "create the bucket, or name another one",
	store.ErrRefused:     "check endpoint, region and bucket, and that the server has conditional writes: reprise doctor",
	store.ErrUnavailable: "check that the server is up, reachable and not full; this is retried",
}

// fail turns what minio-go answers into an [Error] of a kind; nil stays nil. Texts
// come from the server's message and code alone, never from the request, so no
// header or secret can appear in them. ctx is the operation's: what has ended it counts.
func (s *Store) fail(ctx context.Context, op, key string, err error) error {
	if err == nil {
		return nil
	}
	e := &store.Error{Op: op, Where: s.Location(key), Answer: err}
	if s := silent(ctx, err); s != nil {
		e.Kind, e.Detail, e.Hint = store.ErrUnavailable, s.Error(), hintOf[store.ErrUnavailable]
		return e
	}
	if cause := store.Canceled(ctx, err); cause != nil {
		e.Cause = cause
		return e
	}
	if _, ok := errors.AsType[*store.Error](err); ok {
		return err
	}
	var resp minio.ErrorResponse
	if !errors.As(err, &resp) {
		// Not an answer at all: connection refused, reset, timed out, TLS.
		e.Kind, e.Detail = store.ErrUnavailable, "at "+s.endpoint+": "+err.Error()
		e.Hint = hintOf[store.ErrUnavailable]
		return e
	}
	e.Kind = kindOf[resp.Code]
	if e.Kind == nil {
		e.Kind = kindOfStatus(resp.StatusCode)
	}
	if !answers(op, resp.Code, e.Kind) {
		e.Kind = store.ErrRefused
	}
	e.Hint = hintOf[e.Kind]
	e.Detail = resp.Code
	if resp.Message != "" && !strings.EqualFold(resp.Message, resp.Code) {
		e.Detail = strings.TrimPrefix(resp.Code+": "+strings.TrimSuffix(resp.Message, "."), ": ")
	}
	if e.Kind == store.ErrExists || e.Kind == store.ErrNotFound {
		e.Detail = "" // the kind says it all
	}
	e.Detail = store.Clip(e.Detail)
	return e
}

// answers reports whether an operation can have an answer of this kind. Others come from what stands between, and say nothing of the
// object: a read has no condition that it could fail, and a write needs no object that is there.
func answers(op, code string, kind error) bool {
	writes := op != "read" && op != "stat" && op != "delete" && !strings.HasPrefix(op, "list")
	switch kind {
	case store.ErrExists:
		return writes
	case store.ErrNotFound:
		return !writes || code == "NoSuchUpload"
	}
	return true
}

func kindOfStatus(status int) error {
	switch {
	// Not 404: "not found" must mean the key, and a server that means the key says NoSuchKey.
	case status == 401 || status == 403:
		return store.ErrDenied
	case status == 409:
		return store.ErrConflict
	case status == 412:
		return store.ErrExists
	case status == 501 || status == 505: // the server cannot do it, however often it is asked
		return store.ErrRefused
	case status == 408 || status == 429 || status >= 500:
		return store.ErrUnavailable
	}
	return store.ErrRefused
}
