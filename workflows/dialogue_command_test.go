package workflows

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// option sets what a run is, name=value.
func (d *dialogue) option(s *stage, option string) {
	name, value, _ := strings.Cut(option, "=")
	p := &s.plan
	switch name {
	case "iterations":
		p.Iterations = d.number(value)
	case "turns":
		p.Turns = d.number(value)
	case "snapshot":
		p.Snapshot.Every = d.number(value)
	case "evaluate":
		p.EvaluateEvery = d.number(value)
	case "online":
		p.Freshness.Online = d.number(value)
	case "reuse":
		p.Freshness.Reuse = d.number(value)
	case "replay":
		p.Freshness.ReplayIterations = d.number(value)
	case "diagnose":
		p.Diagnostics.Every = d.number(value)
	case "credit":
		methodstest.Needs(d.t, value)
		p.Settings.Credit.Algorithm = value
	case "suites": // name:turns, …
		p.Suites = nil
		for suite := range strings.SplitSeq(value, ",") {
			name, turns, _ := strings.Cut(suite, ":")
			p.Suites = append(p.Suites, activities.PlanSuite{Name: name, Turns: d.number(turns), Rows: 8})
		}
	case "detectors":
		p.Collapse = collapse.Defaults()
		p.Collapse.OnDetection = collapse.Action(value)
	case "model":
		s.base = d.one(value, "imported")
	case "failures": // of a step in a row
		p.StepFailures = d.number(value)
	case "environment": // asked over a protocol
		p.Foreign = d.one(value, "foreign")
	case "warm-start": // of an imported model
		s.base, s.teach, p.WarmStartSteps = true, true, d.number(value)
	case "report":
		p.Report = d.one(value, "end")
	case "build": // of the workers
		s.build = value
	case "alive": // episodes left after each turn
		alive := d.numbers(value)
		s.alive = func(turn int) int { return alive[turn-1] }
	case "rows": // selected, of each iteration
		rows := d.numbers(value)
		s.selected = func(iteration int) int { return rows[iteration] }
	case "parts": // rows of the iterations that share a rollout
		s.parts = d.numbers(value)
	case "rounds": // so many until enough groups vary
		rounds := d.number(value)
		s.more = func(n int) bool { return n < rounds }
	case "tokens": // after so many the run ends; each rollout samples 100
		p.StopTokens = d.number(value)
	case "success": // so many iterations in a row with the success of each rollout, after which the run ends
		in, rates, ok := strings.Cut(value, ":")
		require.True(d.t, ok, "success=FOR:RATE,RATE…, in percent")
		p.StopSuccess = spec.StopSuccess{AtLeast: 0.5, For: d.number(in)}
		s.success = d.numbers(rates)
	case "passes": // the turns of each update's
		s.passes = d.numbers(value)
	case "pieces": // of each Generate, Score, Diagnose, Update and Snapshot
		s.pieces = d.number(value)
	case "diverges": // the iteration of branch 0 whose gradients are not finite
		at := d.number(value)
		s.gradNorm = func(branch, iteration int) float64 {
			if branch == 0 && iteration == at {
				return math.Inf(1)
			}
			return 1
		}
	default:
		require.Fail(d.t, "there is no such option", option)
	}
}

func (d *dialogue) number(text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(d.t, err)
	return n
}

func (d *dialogue) numbers(text string) (out []int) {
	for n := range strings.SplitSeq(text, ",") {
		out = append(out, d.number(n))
	}
	return out
}

// one is true; the value must be the existing one.
func (d *dialogue) one(value, only string) bool {
	require.Equal(d.t, only, value)
	return true
}

// step is an activity by its name in a dialogue: lower case.
func (d *dialogue) step(name string) steps.Routing {
	for _, r := range steps.All() {
		if strings.ToLower(r.Name) == name {
			return r
		}
	}
	require.Fail(d.t, "there is no such step", name)
	return steps.Routing{}
}

// when has f done before the nth execution of a step, after what is due there already.
func (d *dialogue) when(name string, n int, f func()) {
	r := d.step(name)
	key := r.Name + " " + strconv.Itoa(n)
	before := d.p.hooks[key]
	d.pending = append(d.pending, key)
	d.p.hooks[key] = func() {
		if before != nil {
			before()
		}
		d.pending = slices.DeleteFunc(d.pending, func(k string) bool { return k == key })
		f()
	}
}

// command prepares what happens in a history.
func (d *dialogue) command(words []string) {
	if i := len(words) - 3; i > 0 && words[i] == "at" {
		what := words[:i]
		d.when(words[i+1], d.number(words[i+2]), func() { d.person(what) })
		return
	}
	if i := len(words) - 2; i > 0 && words[i] == "at" && words[i+1] == "rest" {
		d.rests++ // each has a rest of its own
		d.p.RegisterDelayedCallback(func() { d.phaseNow(); d.person(words[:i]) }, time.Duration(d.rests)<<40)
		return
	}
	switch words[0] {
	case "continue-as-new":
		d.after = d.number(words[1])
		d.p.w.ContinueAfter = d.after
	case "slow-commit":
		d.p.slow[d.number(words[1])] = true
	case "absent":
		d.p.absent = d.number(words[1])
	case "silent":
		d.p.s.errors = map[string][]error{"Describe": nil}
		for range d.number(words[1]) {
			d.p.s.errors["Describe"] = append(d.p.s.errors["Describe"], temporal.NewTimeoutError(1, nil))
		}
	case "kill", "starve":
		session, lose := d.loses()
		d.p.again[d.kills+1] = words[0] == "starve"
		onDevice := d.step(words[1]).Place == steps.OnSession
		d.when(words[1], d.number(words[2]), func() {
			if words[0] == "starve" {
				d.say(session, "is silent for too long")
			} else {
				d.say(session, "is lost")
			}
			noticed := make(chan struct{})
			d.noticed = noticed
			d.instead(func() error {
				<-noticed
				if onDevice {
					return temporal.NewNonRetryableApplicationError("nobody hears this", "Late", nil)
				}
				return nil // and then its work
			})
			lose()
		})
	case "drain":
		d.ends(words, "refuses: its worker is about to stop", "no", activities.KindDraining)
	case "out-of-memory":
		d.ends(words, "has too little memory", "asked for 3 GiB; a smaller update.micro_batch needs less", activities.KindOutOfMemory)
	case "fail-device":
		d.ends(words, "has failed", "the device is poisoned", activities.KindDeviceFailed)
	case "too-small":
		d.kills++ // the session ends with it
		d.when(words[1], d.number(words[2]), func() {
			d.say("device", "has less memory than the run is made for")
			d.answers(temporal.NewNonRetryableApplicationError("the run is made for a device of 80 GB (limits.device_gb), this one has 25.8 GB", activities.KindDeviceTooSmall, nil))
		})
	case "not-exact":
		d.kills++ // the session ends with it
		d.when(words[1], d.number(words[2]), func() {
			d.say("device", "gives other log-probs by the sampler than by the trainer")
			d.answers(temporal.NewNonRetryableApplicationError("the log-prob of row 0 at place 40 is -1.25 by the sampler and -1.5 by the trainer", activities.KindNotExact, nil))
		})
	case "other-programs":
		d.kills++ // the session ends with it
		d.when(words[1], d.number(words[2]), func() {
			d.say("device", "has other programs")
			d.answers(temporal.NewNonRetryableApplicationError("programs turn-1.decode differ", activities.KindProgramsDiffer, nil,
				activities.SamePrograms(map[string]string{"turn-1.decode": "p"}, map[string]string{"turn-1.decode": "q"})))
		})
	case "late":
		d.kills++ // the session ends with it
		d.when(words[1], d.number(words[2]), func() {
			d.say("step", "takes too long")
			d.answers(temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE, nil))
		})
	case "forget":
		d.kills++ // the session ends with it
		d.when(words[1], d.number(words[2]), func() {
			d.say("device", "refuses: it does not hold the policy")
			d.forgets()
			d.answers(temporal.NewNonRetryableApplicationError("no", activities.KindNotResident, nil))
		})
	case "fail":
		err, name := errors.New("the store is down"), "the store is down"
		if len(words) > 3 {
			err, name = temporal.NewNonRetryableApplicationError("no", words[3], nil), words[3]
		}
		d.when(words[1], d.number(words[2]), func() {
			d.say("error", "%s", name)
			d.answers(err)
		})
	default:
		require.Fail(d.t, "there is no such command", strings.Join(words, " "))
	}
}

// ends has a step answer an error, after which its worker ends the session in a moment.
func (d *dialogue) ends(words []string, says, text, kind string) {
	_, lose := d.loses()
	d.when(words[1], d.number(words[2]), func() {
		d.say("device", "%s", says)
		d.answers(temporal.NewNonRetryableApplicationError(text, kind, nil))
		time.AfterFunc(50*time.Millisecond, lose)
	})
}

// loses prepares the loss of the next session that is not lost yet.
func (d *dialogue) loses() (session string, lose func()) {
	d.kills++
	lost := make(chan struct{})
	d.p.lost[d.kills] = lost
	return "session " + strconv.Itoa(d.kills), func() {
		d.forgets()
		close(lost)
		d.p.RegisterDelayedCallback(func() { d.p.gone++; d.p.next() }, 0)
	}
}

// forgets has the device forget the pieces of an update.
func (d *dialogue) forgets() {
	d.p.s.mu.Lock()
	defer d.p.s.mu.Unlock()
	d.p.s.begun = 0
}

// answers has the activity that begins now give an error.
func (d *dialogue) answers(err error) { d.instead(func() error { return err }) }

// stalls has the activity that begins now never answer.
func (d *dialogue) stalls() {
	over := d.p.s.over
	d.instead(func() error { <-over; return errors.New("nobody hears this") })
}

// instead has the activity that begins now do this instead of its work.
func (d *dialogue) instead(do func() error) {
	d.p.s.mu.Lock()
	defer d.p.s.mu.Unlock()
	d.p.s.instead[d.id] = do
}

// person does what a person or the server does.
func (d *dialogue) person(words []string) {
	switch words[0] {
	case "cancel":
		d.say("person", "cancel")
		if d.name != "Commit" { // the run waits for that one
			d.stalls()
		}
		d.p.CancelWorkflow()
	case "long-history":
		d.say("server", "the history is long")
		d.p.SetContinueAsNewSuggested(true)
	case "ask":
		s := d.p.status()
		there := ""
		if s.Waiting != nil {
			there = fmt.Sprintf("; wanted %s, there %v", s.Waiting.Wanted, s.Waiting.Present)
			for _, p := range s.Waiting.Programs {
				there += fmt.Sprintf("; %s wanted %s, there %s", p.Name, p.Recorded, p.Present)
			}
		}
		d.say("status", "%s, iteration %d of %d, branch %d, updates at risk: %d%s", s.Phase, s.Iteration, s.Iterations, s.Branch, s.AtRisk, there)
		for _, of := range s.Failing {
			if of.Silent > 0 {
				d.say("status", "its worker was silent %d times: %s", of.Silent, of.Step)
			}
			if of.Count > 0 {
				d.say("status", "failed %d in a row: %s: %s", of.Count, of.Kind, of.Step)
			}
		}
		if s.PausedBy != nil {
			d.say("status", "last error: %s", s.PausedBy.Error)
			d.say("status", "what to do: %s", s.PausedBy.Do)
		}
		for _, w := range s.Warnings {
			if strings.Contains(w, "signal") {
				d.say("status", "warning: %s", w)
			}
		}
	case "signal":
		d.say("person", "signal %s", words[1])
		d.p.SignalWorkflow(words[1], nil)
	case "upgrade":
		d.say("person", "replaces the workers by those of build %s", words[1])
		d.p.s.mu.Lock()
		d.p.s.build = words[1]
		d.p.s.mu.Unlock()
	case "move":
		d.say("person", "has devices with fingerprint %s only", words[1])
		d.p.s.mu.Lock()
		d.p.s.print = words[1]
		d.p.s.mu.Unlock()
	case "adopt-programs":
		d.send(words, Adopt{Fingerprint: strings.Join(words[1:], "")})
	case "pause", "resume", "report", "snapshot-now":
		d.send(words)
	case "stop-after":
		d.send(words, StopAfter{Iteration: d.number(words[1])})
	case "roll-back":
		d.send(words, RollBack{Iteration: d.number(words[1]), Describe: len(words) > 2 && d.one(words[2], "describe")})
	case "describe":
		d.say("person", "has the environment describe itself by %q", words[1])
		d.p.s.mu.Lock()
		d.p.s.description = words[1]
		d.p.s.mu.Unlock()
	case "change-knob":
		d.send(words, knob(words[1], words[2]))
	default:
		require.Fail(d.t, "there is no such command", strings.Join(words, " "))
	}
}
