package starlark

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// A child reads and writes lines of JSON: first a setup, which it answers by an empty line of its own kind (ready), then
// a request and its reply, again and again.
type (
	setup struct {
		// Memory is the most bytes that programs may take beside what the process has already.
		Memory int64 `json:"memory"`
	}
	ready struct {
		Ready bool `json:"ready"`
	}
	request struct {
		Program     string   `json:"program"`
		Expressions []string `json:"expressions,omitempty"`
		Steps       uint64   `json:"steps"`
		Output      int      `json:"output"`
		// Deadline, in nanoseconds, is the parent's, after which it kills this process.
		Deadline time.Duration `json:"deadline"`
	}
	reply struct {
		Text   string `json:"text"`
		Failed bool   `json:"failed,omitempty"`
		// Last says that the child ends now: the program left it with much memory, so that the next one would have less.
		Last bool `json:"last,omitempty"`
	}
)

// Exit codes of a child that stops its program.
const (
	exitMemory   = 86
	exitDeadline = 87
)

const (
	// maxLine is the most bytes of a request: a byte of a program or an expression takes at most six in JSON.
	maxLine = 6*2*MaxProgram + 3*MaxExpressions + 1024
	// watchEvery is how often a child looks at its memory while a program runs.
	watchEvery = 5 * time.Millisecond
	// orphaned is how long after the parent's deadline a child ends itself, if the parent did not kill it.
	orphaned = time.Second
)

// Serve is a child's main: it runs the programs that stdin brings, one after the other, and answers on stdout. It gives
// up what this process may do: memory, files, cores. So the process can be nothing else afterwards. It returns nil when
// stdin ends. stdin and stdout are the only things of the process that it uses.
func Serve(stdin io.Reader, stdout io.Writer) error {
	return serve(stdin, stdout, func(memory int64) (func() bool, error) {
		runtime.GOMAXPROCS(1) // a program is one thread; the garbage collector may wait
		base := mapped()
		debug.SetMemoryLimit(base + memory)
		debug.SetMaxStack(int(min(memory/4, 64<<20)))
		if err := confine(memory); err != nil {
			return nil, err
		}
		go watch(base+memory+memory/8, func() { os.Exit(exitMemory) })
		return func() bool { return mapped() > base+memory/2 }, nil
	})
}

// serve is Serve. limit bounds the process, and gives a function that says whether a program has left much memory.
func serve(in io.Reader, out io.Writer, limit func(memory int64) (worn func() bool, err error)) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	answers := json.NewEncoder(out)
	answers.SetEscapeHTML(false)
	var first setup
	if !lines.Scan() {
		return readError(lines)
	}
	if err := json.Unmarshal(lines.Bytes(), &first); err != nil || first.Memory <= 0 {
		return fmt.Errorf("starlark child: read the setup: %w", errors.Join(err, ErrProtocol))
	}
	worn, err := limit(first.Memory)
	if err != nil {
		return fmt.Errorf("starlark child: limit this process: %w", err)
	}
	if err := answers.Encode(ready{Ready: true}); err != nil {
		return fmt.Errorf("starlark child: write: %w", err)
	}
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("starlark child: read a request: %w", errors.Join(err, ErrProtocol))
		}
		guard := time.AfterFunc(r.Deadline+orphaned, func() { os.Exit(exitDeadline) })
		answer := r.answer()
		guard.Stop()
		last := worn()
		if err := answers.Encode(reply{Text: answer.Text, Failed: answer.Failed, Last: last}); err != nil {
			return fmt.Errorf("starlark child: write: %w", err)
		}
		if last {
			return nil
		}
	}
	return readError(lines)
}

// answer runs the program of a request.
func (r request) answer() Answer {
	i := Interpreter{Steps: r.Steps, Output: r.Output}
	if len(r.Expressions) > 0 {
		return i.Evaluate(r.Program, r.Expressions)
	}
	return i.Run(r.Program)
}

func readError(lines *bufio.Scanner) error {
	if err := lines.Err(); err != nil {
		return fmt.Errorf("starlark child: read: %w", err)
	}
	return nil
}

// watch waits until this process has more memory, and calls exceeded then. It sees memory that grows; a single large
// text is the kernel's to refuse, see confine.
func watch(most int64, exceeded func()) {
	for range time.Tick(watchEvery) {
		if mapped() > most {
			exceeded()
			return
		}
	}
}

// mapped is the memory in bytes that Go holds for this process.
func mapped() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
