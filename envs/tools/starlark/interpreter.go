// Package starlark runs programs that a policy writes, in Starlark: a language like Python without files, network,
// clock and chance (go.starlark.net).
//
// An Interpreter runs a program in this process. What a program can do to it is bounded by steps, but not what single
// built-in functions take: memory, and time beside the steps. So a Pool runs programs in processes of their own
// (children), which may take so much memory and time and are killed beyond that. Whether a program is killed depends on
// the machine. So its answers are recorded, and are no pure function of the program.
//
// A child is this program, started again with an argument upon which its main calls Serve.
package starlark

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.starlark.net/lib/json"
	"go.starlark.net/lib/math"
	"go.starlark.net/resolve"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// Limits of programs and their answers.
const (
	// MaxProgram is the most bytes of a program.
	MaxProgram = 64 << 10
	// maxMessage is the most bytes of what an error says: it may show values of the program.
	maxMessage = 300
)

// Answer is what a program says.
type Answer struct {
	// Text is what the program printed, and behind that, if it failed, a sentence that begins with "Error" and says why.
	Text string
	// Failed says that the program has an error or exceeded a limit: the policy's failure.
	Failed bool
	// Killed says that the program's process was killed, since it took too much memory or time. It is Failed too.
	// Another machine might not have killed it.
	Killed bool
}

// Interpreter runs programs in this process. Its answers follow from the program and the limits alone. It may be used by
// several goroutines.
type Interpreter struct {
	// Steps is the most steps of a program: operations of Starlark's machine.
	Steps uint64
	// Output is the most bytes that a program may print.
	Output int
}

// dialect is Starlark's as specified (no while, no recursion, so that programs end), with sets, and with statements
// and new values of names at top level.
var dialect = &syntax.FileOptions{Set: true, TopLevelControl: true, GlobalReassign: true}

// modules are what a program has beside Starlark's own functions. None depends on time, chance or addresses.
var modules = starlark.StringDict{"json": json.Module, "math": math.Module}

// file is the program's name in positions.
const file = "program"

// Run runs a program and answers. It never fails and never panics, but memory and the time of built-in functions have
// no bound here, and a program that nests deeply enough ends this process: see Pool.
func (i Interpreter) Run(program string) Answer {
	answer, _ := i.execute(program, false)
	return answer
}

// execute runs a program. names are what it has defined. If silent, nothing that it prints is in the answer.
func (i Interpreter) execute(program string, silent bool) (answer Answer, names starlark.StringDict) {
	if answer, refused := refuse(program); refused {
		return answer, nil
	}
	out := printed{most: i.Output, silent: silent}
	thread, stopped := i.thread(&out)
	defer func() {
		if r := recover(); r != nil { // a defect of the interpreter, which the same program meets everywhere
			answer = failure(out.text(), "the interpreter failed")
		}
	}()
	names, err := starlark.ExecFileOptions(dialect, thread, file, program, modules)
	return i.outcome(&out, *stopped, err), names
}

// thread is a thread of the interpreter's bounds. stopped says which of them it exceeded.
func (i Interpreter) thread(out *printed) (thread *starlark.Thread, stopped *string) {
	stopped = new(string)
	thread = &starlark.Thread{
		Name:  file,
		Print: out.print,
		Load: func(*starlark.Thread, string) (starlark.StringDict, error) {
			return nil, errors.New("there are no other files")
		},
	}
	thread.SetMaxExecutionSteps(i.Steps)
	thread.OnMaxSteps = func(t *starlark.Thread) {
		*stopped = fmt.Sprintf("the program took more than %d steps", i.Steps)
		t.Cancel(*stopped)
	}
	return thread, stopped
}

// outcome is the answer of what ran in a thread.
func (i Interpreter) outcome(out *printed, stopped string, err error) Answer {
	switch {
	case out.full:
		return failure(out.text(), fmt.Sprintf("the program printed more than %d bytes", i.Output))
	case err == nil:
		return Answer{Text: out.text()}
	case stopped != "":
		return failure(out.text(), stopped)
	}
	return wrong(out.text(), err)
}

// refuse answers a program that is not run.
func refuse(program string) (answer Answer, refused bool) {
	switch {
	case len(program) > MaxProgram:
		return failure("", fmt.Sprintf("the program has %d bytes, at most %d are allowed", len(program), MaxProgram)), true
	case !utf8.ValidString(program):
		return failure("", "the program is not UTF-8"), true
	}
	return Answer{}, false
}

// failure is an answer with a sentence behind what was printed.
func failure(text, message string) Answer {
	return Answer{Text: joined(text, "Error: "+message+"."), Failed: true}
}

// wrong is the answer of a program with an error: the line, and what is wrong there.
func wrong(text string, err error) Answer {
	line, message := int32(0), err.Error()
	var syntactic syntax.Error
	var unresolved resolve.ErrorList
	var running *starlark.EvalError
	switch {
	case errors.As(err, &syntactic):
		line, message = lineOf(syntactic.Pos), syntactic.Msg
	case errors.As(err, &unresolved) && len(unresolved) > 0:
		line, message = lineOf(unresolved[0].Pos), unresolved[0].Msg
	case errors.As(err, &running):
		message = running.Msg
		for _, frame := range running.CallStack { // the innermost that is the program's comes last
			line = cmp.Or(lineOf(frame.Pos), line)
		}
	}
	where := "Error"
	if line > 0 {
		where = fmt.Sprintf("Error in line %d", line)
	}
	message = strings.ToValidUTF8(message, "\uFFFD")
	return Answer{Text: joined(text, where+": "+cut(message, maxMessage)), Failed: true}
}

// lineOf is the line of a position in the program, 0 for one elsewhere.
func lineOf(at syntax.Position) int32 {
	if at.Filename() != file {
		return 0
	}
	return at.Line
}

// joined puts a sentence on a line of its own behind what was printed.
func joined(text, sentence string) string {
	if text == "" {
		return sentence
	}
	return text + "\n" + sentence
}

// cut is the beginning of a text, of whole characters.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// printed is what a program has printed.
type printed struct {
	most   int
	silent bool // is counted only, and text is empty
	b      bytes.Buffer
	full   bool
}

// print implements Thread.Print. The line that exceeds the bound is cut, and the program stopped.
func (p *printed) print(thread *starlark.Thread, line string) {
	if p.full {
		return
	}
	if room := p.most - p.b.Len(); len(line)+1 > room {
		p.full = true
		line = cut(line, room)
		thread.Cancel("too much output")
	}
	p.b.WriteString(line)
	p.b.WriteByte('\n')
}

// text is what was printed, without line breaks at its end. A string of Starlark may hold any bytes; what is not UTF-8
// is replaced.
func (p *printed) text() string {
	if p.silent {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimRight(p.b.String(), "\n"), "\uFFFD")
}
