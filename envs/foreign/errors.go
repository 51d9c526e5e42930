package foreign

import "errors"

// The kinds of refusals and failures. Errors of this package and of the transports wrap
// exactly one of them.
var (
	// ErrAnswer is an answer that is not of the protocol's form or breaks its bounds.
	ErrAnswer = errors.New("the environment's answer is not valid")
	// ErrOther is an answer to another request, or one about another episode.
	ErrOther = errors.New("the environment answered another request")
	// ErrChain is an answer whose chain does not follow from its steps.
	ErrChain = errors.New("the environment's chain does not follow from its answer")
	// ErrVersion is a server whose version is not the one it was described with.
	ErrVersion = errors.New("the environment's version changed")
	// ErrDrift is a server that did not arrive at the recorded chain when it replayed the
	// actions: the environment is not deterministic, or it is another one.
	ErrDrift = errors.New("the environment's replay differs from what was recorded")
	// ErrBroken is an environment that raised an error of its own. Asking again does not
	// help. It is never a reward.
	ErrBroken = errors.New("the environment is broken")
	// ErrBusy is a server that asks to be called again later.
	ErrBusy = errors.New("the environment is busy")
	// ErrTimeout is a server that did not answer in time.
	ErrTimeout = errors.New("the environment did not answer in time")
	// ErrFlood is a request or an answer that is longer than the transport's bound.
	ErrFlood = errors.New("the environment's request or answer is too long")
	// ErrExited is a server that ended before it answered, that did not start or that is not
	// there.
	ErrExited = errors.New("the environment's server ended or is not there")
)

// Kind is a kind of error of another package, in that package's words, that is also of kind like.
func Kind(text string, like error) error { return &kind{text, like} }

type kind struct {
	text string
	like error
}

// Error is the text.
func (k *kind) Error() string { return k.text }

// Unwrap is the kind that this one is too.
func (k *kind) Unwrap() error { return k.like }
