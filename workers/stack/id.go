package stack

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrID is the kind of errors about a workflow id that no workflow can have.
var ErrID = errors.New("unusable workflow id")

// CheckID refuses a workflow id that no workflow can have: an empty one, or bytes that are no text in UTF-8.
func CheckID(id string) error {
	if id == "" {
		return fmt.Errorf("%w: it is empty", ErrID)
	}
	if !utf8.ValidString(id) {
		return fmt.Errorf("%w: %q is not UTF-8", ErrID, id)
	}
	return nil
}
