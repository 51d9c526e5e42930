package jinja

import (
	"fmt"
	"strings"
)

// Error is why a template cannot be parsed or rendered.
type Error struct {
	// Line is where, counted from 1.
	Line int
	// Construct is what stands there: "filter join", "statement include".
	Construct string
	// Reason says what is wrong.
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s: %s", e.Line, e.Construct, e.Reason) }

// fail ends parsing or rendering; catch returns the error.
func fail(line int, construct, format string, a ...any) {
	reason := fmt.Sprintf(format, a...)
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	panic(&Error{line, construct, reason})
}

// maxReason bounds what an error repeats of a template.
const maxReason = 2 << 10

func catch(err *error) {
	switch e := recover().(type) {
	case nil:
	case *Error:
		*err = e
	default:
		panic(e)
	}
}
