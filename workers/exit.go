package workers

import (
	"errors"

	"github.com/reprise-rl/reprise/activities/device"
)

// Exits are the ends of a worker's process that a new process can mend, by exit code. They
// keep clear of the codes of sysexits.h, shells and systemd.
var Exits = []Exit{
	{81, device.OutOfMemory, "the device had too little memory for a step"},
	{82, device.Failed, "the device is gone, its state cannot be trusted, or a step panicked (the log has where)"},
	{83, device.Stuck, "an execution did not end in one and a half times its step's bound"},
	{84, device.Refused, "the device did not repeat its bits in the self-test, or several did not agree"},
}

// Exit is an exit code of a worker's process.
type Exit struct {
	Code    int
	Cause   device.Cause
	Meaning string
}

// ExitCode is the exit code of a program that ends with an error.
func ExitCode(err error) int {
	if end, ok := errors.AsType[*device.Ending](err); ok {
		for _, e := range Exits {
			if e.Cause == end.Cause {
				return e.Code
			}
		}
	}
	return 1
}

// ExitMeaning is what an exit code means; false for a code that a new process does not mend.
func ExitMeaning(code int) (string, bool) {
	for _, e := range Exits {
		if e.Code == code {
			return e.Meaning, true
		}
	}
	return "", false
}
