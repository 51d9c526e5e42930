package store

import (
	"context"
	"errors"
	"strings"

	"github.com/minio/minio-go/v7"
)

// kindOf gives an S3 error code its kind. Codes not here go by HTTP status.
var kindOf = map[string]error{
	"NoSuchKey":                  ErrNotFound,
	"NoSuchVersion":              ErrNotFound,
	"NoSuchUpload":               ErrNotFound,
	"NoSuchBucket":               ErrNoBucket,
	"PreconditionFailed":         ErrExists,
	"ConditionalRequestConflict": ErrConflict,
	"OperationAborted":           ErrConflict,
	"XAdminUserNotFound":         ErrDenied, // versitygw's, with status 404
	"AccessDenied":               ErrDenied,
	"InvalidAccessKeyId":         ErrDenied,
	"SignatureDoesNotMatch":      ErrDenied,
	"InvalidToken":               ErrDenied,
	"ExpiredToken":               ErrDenied,
	"TokenRefreshRequired":       ErrDenied,
	"AccountProblem":             ErrDenied,
	"AllAccessDisabled":          ErrDenied,
	"RequestTimeTooSkewed":       ErrDenied,
	"SlowDown":                   ErrUnavailable,
	"RequestTimeout":             ErrUnavailable,
	"InternalError":              ErrUnavailable,
	"ServiceUnavailable":         ErrUnavailable,
	// What arrived was not what was sent: the network's fault, so worth a retry.
	"BadDigest":                   ErrUnavailable,
	"XAmzContentSHA256Mismatch":   ErrUnavailable,
	"XAmzContentChecksumMismatch": ErrUnavailable,
	"IncompleteBody":              ErrUnavailable,
	"QuotaExceeded":               ErrUnavailable,
	"XMinioStorageFull":           ErrUnavailable,
}

var hintOf = map[error]string{
	ErrDenied:      "check the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or the shared credentials file), their permissions on the bucket, and this machine's clock",
	ErrNoBucket:    "create the bucket, or name another one",
	ErrUnavailable: "check that the server is up, reachable and not full; this is retried",
}

// fail turns what minio-go answers into an [Error] of a kind; nil stays nil. Texts
// come from the server's message and code alone, never from the request, so no
// header or secret can appear in them.
func (s *S3) fail(ctx context.Context, op, key string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Where: s.Location(key)}
	if cause := canceled(ctx, err); cause != nil {
		e.Cause = cause
		return e
	}
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	var resp minio.ErrorResponse
	if !errors.As(err, &resp) {
		// Not an answer at all: connection refused, reset, timed out, TLS.
		e.Kind, e.Detail = ErrUnavailable, "at "+s.endpoint+": "+err.Error()
		e.Hint = hintOf[ErrUnavailable]
		return e
	}
	e.Kind = kindOf[resp.Code]
	if e.Kind == nil {
		e.Kind = kindOfStatus(resp.StatusCode)
	}
	e.Hint = hintOf[e.Kind]
	e.Detail = resp.Code
	if resp.Message != "" && !strings.EqualFold(resp.Message, resp.Code) {
		e.Detail = strings.TrimPrefix(resp.Code+": "+strings.TrimSuffix(resp.Message, "."), ": ")
	}
	if e.Kind == ErrExists || e.Kind == ErrNotFound {
		e.Detail = "" // the kind says it all
	}
	e.Detail = clip(e.Detail)
	return e
}

func kindOfStatus(status int) error {
	switch {
	// Not 404: "not found" must mean the key, and a server that means the key says NoSuchKey.
	case status == 401 || status == 403:
		return ErrDenied
	case status == 409:
		return ErrConflict
	case status == 412:
		return ErrExists
	case status == 408 || status == 429 || status >= 500:
		return ErrUnavailable
	}
	return ErrRefused
}

// CheckConditional finds out whether the server keeps the promise that commits
// are built on: a PUT with If-None-Match: * must not overwrite. It writes and
// deletes one small object under the prefix; the error is [ErrRefused] where the
// promise is broken.
func CheckConditional(ctx context.Context, s Store, probe string) error {
	if err := s.Delete(ctx, probe); err != nil {
		return err
	}
	if err := s.Put(ctx, probe, []byte("first"), PutOptions{IfAbsent: true}); err != nil {
		return err
	}
	second := s.Put(ctx, probe, []byte("second"), PutOptions{IfAbsent: true})
	body, _, readErr := ReadFixed(ctx, s, probe, 16)
	if err := s.Delete(ctx, probe); err != nil {
		return err
	}
	switch {
	case readErr != nil:
		return readErr
	case string(body) != "first" || second == nil:
		return &Error{Op: "conditional put", Where: s.Location(probe), Kind: ErrRefused,
			Detail: "the server overwrites in spite of If-None-Match: *", Hint: "use a server with conditional writes: Amazon S3, versitygw, MinIO"}
	case !errors.Is(second, ErrExists):
		return second
	}
	return nil
}
