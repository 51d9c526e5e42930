package stack

import (
	"errors"
	"fmt"
)

// ErrID is the kind of errors about a workflow id that no worker can serve.
var ErrID = errors.New("unusable workflow id")

// CheckID refuses a workflow id that is empty or not printable ASCII. A Temporal server
// accepts any id, but every call about a workflow carries the id in a header, which must
// be printable ASCII: no worker can ever take such a workflow's first task.
func CheckID(id string) error {
	if id == "" {
		return fmt.Errorf("%w: it is empty", ErrID)
	}
	for _, r := range id {
		if r < ' ' || r > '~' {
			return fmt.Errorf("%w: %q has %q, and ids must be printable ASCII. If a workflow has this id, no worker can serve it: terminate it and start it under another id", ErrID, id, r)
		}
	}
	return nil
}
