package model

import (
	"errors"

	"github.com/reprise-rl/reprise/model/batch"
)

// ErrInput is the kind of errors about arguments with wrong shapes or values out of
// range: a mistake of the caller, never of the device.
var ErrInput = batch.ErrInput

var (
	// ErrFreed is returned when a freed State is used.
	ErrFreed = errors.New("state was freed")
	// ErrConsumed is returned when a State is used after an update has consumed it, and by
	// an update that failed while it wrote: then there is no state any more.
	ErrConsumed = errors.New("state was consumed")
)
