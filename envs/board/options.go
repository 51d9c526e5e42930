package board

import (
	"errors"

	"github.com/reprise-rl/reprise/envs"
)

// WrongLayout reports what is wrong with the option layout.
func WrongLayout(o *envs.Options, err error) {
	found, want := err.Error(), "a layout"
	if wrong, ok := errors.AsType[*LayoutError](err); ok {
		found, want = wrong.Place(), wrong.Want
	}
	o.WrongFound("layout", found, want)
}

// Limits of the options that grid environments share.
const (
	// MaxInstances is the most instances of a pool.
	MaxInstances = 1 << 20
	// MaxActions is the most actions of an episode, and of a turn.
	MaxActions = 1000
)
