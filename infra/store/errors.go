package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The kinds of failure that callers decide on, with errors.Is.
var (
	// ErrNotFound: no object has this key.
	ErrNotFound = errors.New("not found")
	// ErrExists: a conditional PUT met an object that was there before.
	ErrExists = errors.New("exists already")
	// ErrAltered: an object's bytes are not those its ref names; see [Altered].
	ErrAltered = errors.New("altered")
	// ErrDivergence: other bytes are committed under the key; see [Divergence].
	ErrDivergence = errors.New("divergence")
	// ErrInvalid: the bytes are the right ones, but not a valid manifest or table.
	ErrInvalid = errors.New("invalid")
	// ErrDenied: the credentials are missing, wrong or lack a permission.
	ErrDenied = errors.New("access denied")
	// ErrNoBucket: the bucket does not exist.
	ErrNoBucket = errors.New("no such bucket")
	// ErrConflict: another writer of the key was at work (409); try again.
	ErrConflict = errors.New("conflicting write")
	// ErrUnavailable: the server did not answer, or answered that it cannot
	// now (timeouts, 5xx, throttling, full); try again with backoff.
	ErrUnavailable = errors.New("store unavailable")
	// ErrRefused: the server refuses the request as it is; trying again for long is useless.
	ErrRefused = errors.New("request refused")
	// ErrTooLarge: an object is larger than the reader's limit.
	ErrTooLarge = errors.New("too large")
)

// Retryable says whether the same call may succeed later without anybody
// changing anything.
func Retryable(err error) bool { return errors.Is(err, ErrUnavailable) || errors.Is(err, ErrConflict) }

// Error is a failed operation: the operation, its object, the cause, and what a person
// can do.
type Error struct {
	// Op is the operation in plain words: "put", "read", "list".
	Op string
	// Where is the object's or the prefix's location.
	Where string
	// Kind is one of the package's sentinel errors, or nil.
	Kind error
	// Detail is what the server or the network said; may be empty.
	Detail string
	// Hint is what to do about it; may be empty.
	Hint string
	// Cause is the context's error if the caller gave up, else nil.
	Cause error
	// Answer is what the server's client library said, for those who tell causes of one kind apart. It is
	// not unwrapped, and its text may have more than a person should see.
	Answer error
}

// Error is one line: operation, place, kind, detail and hint.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", e.Op, e.Where)
	if e.Kind != nil {
		fmt.Fprintf(&b, ": %v", e.Kind)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, " (%s)", e.Hint)
	}
	return b.String()
}

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	var out []error
	if e.Kind != nil {
		out = append(out, e.Kind)
	}
	if e.Cause != nil {
		out = append(out, e.Cause)
	}
	return out
}

// Altered is an object whose bytes are not those its ref names. It is an
// [ErrAltered].
type Altered struct {
	Key                string
	WantDigest         string
	HaveDigest         string // empty if the size alone showed it
	WantSize, HaveSize int64
	location           string
}

// Error names the object, what was wanted and what was found.
func (e *Altered) Error() string {
	where := e.location
	if where == "" {
		where = e.Key
	}
	if e.HaveDigest == "" {
		return fmt.Sprintf("read %s: altered: want %d bytes with SHA-256 %s, have %d bytes (restore the object from a copy; reprise verify lists all that is damaged)",
			where, e.WantSize, e.WantDigest, e.HaveSize)
	}
	return fmt.Sprintf("read %s: altered: want SHA-256 %s, have %s (restore the object from a copy; reprise verify lists all that is damaged)",
		where, e.WantDigest, e.HaveDigest)
}

// Is makes errors.Is(err, ErrAltered) true.
func (e *Altered) Is(target error) bool { return target == ErrAltered }

// Divergence is a commit that met other bytes under its key: two attempts at
// the same step disagree. It is an [ErrDivergence], and never worth a retry.
type Divergence struct {
	// Key is the fixed key that was to be committed.
	Key string
	// HaveDigest is the SHA-256 of what is stored, which stays.
	HaveDigest string
	// WantDigest is the SHA-256 of what was to be committed.
	WantDigest string
	// Differences are JSON paths with both values, at most 20.
	Differences []string
}

// Error names the key, both digests and what differs.
func (e *Divergence) Error() string {
	s := fmt.Sprintf("commit %s: divergence: stored is %s, this attempt computed %s; nothing was overwritten", e.Key, e.HaveDigest, e.WantDigest)
	if len(e.Differences) > 0 {
		s += "; differences: " + strings.Join(e.Differences, "; ")
	}
	return s
}

// Is makes errors.Is(err, ErrDivergence) true.
func (e *Divergence) Is(target error) bool { return target == ErrDivergence }

// Canceled is the context's error if err came of its end; nil otherwise.
func Canceled(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && err != nil {
		return cause
	}
	return nil
}

// Clip cuts a text from a server to what an error message has room for.
func Clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
