// Package faults makes a worker process fail at an exact place, on purpose: for
// the tests that kill real processes (workers/chaos). Nothing of it is active
// unless one of its environment variables is set, and then the worker says so
// on standard error.
//
//	REPRISE_FAULT=Update/written/2         kill this process (SIGKILL) at the 2nd Update
//	REPRISE_FAULT=Update/stall:1500/1      the 1st Update takes 1500 ms longer
//	REPRISE_FAULT_DIVERGE=Generate/3       the 3rd Generate answers other bytes
//	REPRISE_FAULT_BUILD=programs           lower one program with an operation more
//	REPRISE_FAULT_BUILD=numerics           have a higher model.Numerics
//	REPRISE_FAULT_TRACE=1                  print when activities compute
//
// A fault is KIND/PHASE/N: the kind of activity, the phase of it, and the
// occurrence in this process, from 1. It strikes once. If that occurrence never reaches
// the phase (for example, it was cancelled while it waited for the device), it strikes
// the next occurrence that does. REPRISE_FAULT takes several, separated by commas. KIND
// may say more, and then the occurrences of that alone count:
//
//	Update#3               of iteration 3; all from Generate to Commit
//	Generate@2             of turn 2 of an iteration's rollout; Step@2 too
//	Generate@slippery      of the suite slippery; Step and Measure too
//	Generate@slippery:2    of turn 2 of that suite; Step too
//	RUN!Update#3           any of these, of a run alone
//
// The phases:
//
//	decided   the workflow decided on the activity; the server does not know yet
//	begin     the activity was entered and has done nothing
//	inside    just before its first write; an activity that writes nothing: while
//	          it computes, 10 ms after it took the device, or when it returns
//	written   it has returned, its artifacts are written, the server does not know
//	delay:MS  MS milliseconds after its beginning, wherever it is then
//	stall:MS  no kill: it takes MS milliseconds longer, whatever becomes of its
//	          context, as a program on the device would; it holds the device then
//	oom       no kill: the device has too little memory for its next execution
//	lost      no kill: its next execution finds that the device is gone
//	poisoned  no kill: its next execution fails, and so does every later one
//	unclear   no kill: its next execution fails, and nothing says why
//	stuck     no kill: its next execution never ends
//	differs   no kill: its self-test finds that the device does not repeat its bits
//	panic     no kill: the workflow panics where it decides on the activity, from the Nth time on and not once, so that its
//	          task fails again and again: a build whose workflow code is bad
package faults

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/reprise-rl/reprise/model"
)

// The environment variables that turn faults on.
const (
	Env        = "REPRISE_FAULT"
	EnvDiverge = "REPRISE_FAULT_DIVERGE"
	EnvBuild   = "REPRISE_FAULT_BUILD"
	EnvTrace   = "REPRISE_FAULT_TRACE"
)

// Phases are the phases at which a process can be killed, but delay.
var Phases = []string{"decided", "begin", "inside", "written"}

// The failures of a device.
const (
	OutOfMemory = "oom"
	Lost        = "lost"
	Poisoned    = "poisoned"
	Unclear     = "unclear"
	Stuck       = "stuck"
	Differs     = "differs"
)

// DeviceFailures are the failures of a device, which kill no process themselves.
var DeviceFailures = []string{OutOfMemory, Lost, Poisoned, Unclear, Stuck, Differs}

// Panic is the phase at which a workflow panics: every time, as a build does that is bad.
const Panic = "panic"

// Fault is one place to fail at.
type Fault struct {
	// Kind is an activity's name, "Update", or with an iteration, a turn, a suite or
	// the last two: "Update#3", "Generate@2", "Measure@slippery", "Step@slippery:2".
	// A run may be named before all of them: "bandit-1!Update#3".
	Kind string
	// Phase is one of Phases, one of DeviceFailures, Panic, "delay" or "stall".
	Phase string
	// After is the time of a delay or a stall.
	After time.Duration
	// Nth is the occurrence in this process, from 1.
	Nth int
}

// String is the fault as REPRISE_FAULT takes it.
func (f Fault) String() string {
	phase := f.Phase
	if f.After > 0 {
		phase += fmt.Sprintf(":%d", f.After.Milliseconds())
	}
	return fmt.Sprintf("%s/%s/%d", f.Kind, phase, f.Nth)
}

// Parse reads KIND/PHASE/N.
func Parse(text string) (Fault, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || parts[0] == "" {
		return Fault{}, fmt.Errorf("fault %q is not KIND/PHASE/N", text)
	}
	kind := parts[0]
	if run, of, named := strings.Cut(kind, "!"); named {
		if run == "" || of == "" {
			return Fault{}, fmt.Errorf("fault %q: %q is not RUN!KIND", text, parts[0])
		}
		kind = of
	}
	if name, iteration, of := strings.Cut(kind, "#"); of {
		if _, err := strconv.ParseUint(iteration, 10, 31); err != nil || name == "" {
			return Fault{}, fmt.Errorf("fault %q: %q is not KIND#ITERATION", text, parts[0])
		}
	} else if name, place, at := strings.Cut(kind, "@"); at && (name == "" || place == "") {
		return Fault{}, fmt.Errorf("fault %q: %q is not KIND@TURN, KIND@SUITE or KIND@SUITE:TURN", text, parts[0])
	}
	f := Fault{Kind: parts[0], Phase: parts[1]}
	var err error
	if f.Nth, err = strconv.Atoi(parts[2]); err != nil || f.Nth < 1 {
		return Fault{}, fmt.Errorf("fault %q: %q is no occurrence, from 1", text, parts[2])
	}
	name, ms, timed := strings.Cut(f.Phase, ":")
	switch {
	case timed && (name == "delay" || name == "stall"):
		n, err := strconv.Atoi(ms)
		if err != nil || n < 1 {
			return Fault{}, fmt.Errorf("fault %q: %q are no milliseconds", text, ms)
		}
		f.Phase, f.After = name, time.Duration(n)*time.Millisecond
	case timed || !slices.Contains(Phases, name) && !slices.Contains(DeviceFailures, name) && name != Panic:
		return Fault{}, fmt.Errorf("fault %q: phase %q is none of %s, %s, delay:MS, stall:MS", text, f.Phase,
			strings.Join(slices.Concat(Phases, DeviceFailures), ", "), Panic)
	}
	return f, nil
}

// Ends tells whether one of the faults, as REPRISE_FAULT takes them, ends the process in which it strikes. Who waits for that end
// starts a worker that computes in its own process.
func Ends(list string) bool {
	for text := range strings.SplitSeq(list, ",") {
		if f, err := Parse(text); err == nil && f.Phase != "stall" && f.Phase != Panic {
			return true
		}
	}
	return false
}

// Plan is the faults of this process.
type Plan struct {
	faults  []Fault
	diverge *Fault // Kind and Nth only
	build   model.OtherBuild
	trace   bool
	out     io.Writer
	store   storeRef
	kill    func()

	mu      sync.Mutex
	counts  occurrences // activities begun
	decided occurrences // activities decided on
	spent   map[Fault]bool
	// current has the device; nil while nobody has.
	current  *call
	poisoned bool
}

// FromEnvironment reads the plan of this process: nil if no variable is set.
func FromEnvironment(getenv func(string) string) (*Plan, error) {
	p := &Plan{
		trace: getenv(EnvTrace) != "", out: os.Stderr, counts: occurrences{}, decided: occurrences{}, spent: map[Fault]bool{},
		kill: func() {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal may take effect a moment later: nothing more happens here
		},
	}
	if text := getenv(Env); text != "" {
		for one := range strings.SplitSeq(text, ",") {
			f, err := Parse(one)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", Env, err)
			}
			p.faults = append(p.faults, f)
		}
	}
	if text := getenv(EnvDiverge); text != "" {
		kind, nth, _ := strings.Cut(text, "/")
		n, err := strconv.Atoi(nth)
		if err != nil || n < 1 || kind != "Generate" {
			return nil, fmt.Errorf("%s: %q is not Generate/N", EnvDiverge, text)
		}
		p.diverge = &Fault{Kind: kind, Nth: n}
	}
	if text := getenv(EnvBuild); text != "" {
		var ok bool
		if p.build, ok = builds[text]; !ok {
			return nil, fmt.Errorf("%s: %q is none of %s", EnvBuild, text, strings.Join(slices.Sorted(maps.Keys(builds)), ", "))
		}
	}
	if len(p.faults) == 0 && p.diverge == nil && p.build == (model.OtherBuild{}) && !p.trace {
		return nil, nil
	}
	p.say("are on in this process: %s=%q %s=%q %s=%q", Env, getenv(Env), EnvDiverge, getenv(EnvDiverge), EnvBuild, getenv(EnvBuild))
	return p, nil
}

func (p *Plan) say(format string, arguments ...any) {
	fmt.Fprintf(p.out, "reprise faults: "+format+"\n", arguments...)
}

// strike kills the process at a fault's place.
func (p *Plan) strike(f Fault) {
	p.say("killed at %s", f)
	p.kill()
}

// panics finds a fault of Panic, which is never spent.
func (p *Plan) panics(of occurrences) (Fault, bool) {
	for _, f := range p.faults {
		if f.Phase == Panic && of[f.Kind] >= f.Nth {
			return f, true
		}
	}
	return Fault{}, false
}

// find gives the plan's fault of an activity and a phase, once.
func (p *Plan) find(of occurrences, phase string) (Fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if f.Phase == phase && of[f.Kind] >= f.Nth && !p.spent[f] {
			p.spent[f] = true
			return f, true
		}
	}
	return Fault{}, false
}
