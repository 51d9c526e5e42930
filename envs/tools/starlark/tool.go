package starlark

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Name is the tool's name in a spec.
const Name = "starlark"

// Summary describes the tool to people.
const Summary = "Runs a program that the policy writes, in Starlark: a Python without files, network, clock and chance. " +
	"A program that takes too much memory or time is killed, so answers are recorded."

// Declare declares the tool's options, and gives the limits that they name.
func Declare(o *envs.Options) Limits {
	var steps, output, memory int
	var seconds float64
	o.Int("steps", &steps, int(Defaults.Steps), 1, 1_000_000_000, "largest number of steps of a program, {range}: an operation of Starlark's machine is one")
	o.Number("seconds", &seconds, Defaults.Deadline.Seconds(), 0.05, 60, "how long a program may run until it is killed, 0.05 to 60")
	o.Int("memory_mb", &memory, int(Defaults.Memory>>20), MinMemory>>20, 16<<10, "how many MiB a program may take until it is killed, {range}")
	o.Int("output_bytes", &output, Defaults.Output, 1, 64<<10, "how many bytes a program may print, {range}")
	return Limits{
		Steps: uint64(steps), Output: output, Memory: int64(memory) << 20, Deadline: time.Duration(seconds * float64(time.Second)),
	}
}

// Describe is what the policy is told about the tool.
func Describe(l Limits) chat.Tool {
	return chat.Tool{
		Name: Name,
		Description: fmt.Sprintf("Runs a program in Starlark, a subset of Python, and answers what it prints. There are for, if, def, "+
			"comprehensions, lists, dicts, sets, strings, integers of any size, floats, json and math, and no import, while, recursion, "+
			"classes and exceptions. A program may take %d steps.", l.Steps),
		Parameters: calls.TextSchema("program", "The program; it prints its results."),
	}
}

// Program is the program of a call's arguments; not ok if there is none.
func Program(object json.RawMessage) (program string, ok bool) {
	return calls.Text(object, "program")
}

// Examples are arguments of calls that show their form, and help in no task.
func Examples() []json.RawMessage {
	programs := []string{
		"print(12 * 7)", "print(sorted([3, 1, 2]))", "x = 0\nfor i in range(10):\n    x += i\nprint(x)",
		"def double(n):\n    return 2 * n\nprint(double(21))", "print(len('reprise'))", "print([n for n in range(20) if n % 3 == 1])",
	}
	out := make([]json.RawMessage, len(programs))
	for i, program := range programs {
		out[i] = calls.OfText("program", program)
	}
	return out
}
