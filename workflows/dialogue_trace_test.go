package workflows

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// trace is what happened in a history, as a person reads it.
type trace struct {
	d        *dialogue
	lines    []string
	phase    string
	id, name string   // the activity that begins
	pending  []string // executions that commands wait for
	rests    int      // commands that wait for a rest
	measures bool     // an Evaluate workflow
}

// say adds a line: who, and what.
func (tr *trace) say(who, format string, args ...any) {
	tr.lines = append(tr.lines, strings.TrimRight(fmt.Sprintf("%-10s %s", who, fmt.Sprintf(format, args...)), " "))
}

// phaseNow prints the phase that the status shows, if it has changed. usual are the
// phases that the next line shows anyway.
func (tr *trace) phaseNow(usual ...string) {
	v, err := tr.d.p.QueryWorkflow("status")
	require.NoError(tr.d.t, err)
	var s struct{ Phase string }
	require.NoError(tr.d.t, v.Get(&s))
	if s.Phase != tr.phase && !slices.Contains(usual, s.Phase) {
		tr.say("phase", "%s", s.Phase)
	}
	tr.phase = s.Phase
}

// send sends an update, and says what became of it.
func (tr *trace) send(words []string, args ...any) {
	tr.say("person", "%s", strings.Join(words, " "))
	tr.d.p.UpdateWorkflow(words[0], "", &testsuite.TestUpdateCallback{
		OnAccept: func() {},
		OnReject: func(err error) { tr.say("answer", "refused: %s", strings.Join(strings.Fields(err.Error()), " ")) },
		OnComplete: func(v any, err error) {
			if err != nil {
				tr.say("answer", "error: %v", err)
				return
			}
			tr.say("answer", "%v", v)
		},
	}, args...)
}

// began says that an activity begins.
func (tr *trace) began(info *activity.Info, args converter.EncodedValues) {
	require.Less(tr.d.t, len(tr.lines), 1000, "the run does not end: %v", tr.lines[max(0, len(tr.lines)-8):])
	p := tr.d.p
	name := info.ActivityType.Name
	tr.id, tr.name = info.ActivityID, name
	queue := info.TaskQueue
	switch name {
	case "Acquire":
		tr.phaseNow(askingForDevice)
		queue = strings.TrimSuffix(strings.TrimPrefix(queue, "reprise-device."), ".line")
		if n := p.started[name] - p.absent; n > 0 {
			tr.say(fmt.Sprintf("session %d", n), "opened on %s", queue)
		} else {
			tr.say("nobody", "gives a lease of %s", queue)
		}
		return
	case "Hold":
		return
	case "Release":
		tr.say(strings.Replace(queue, "holder-", "session ", 1), "given back")
		return
	}
	in := tr.input(name, args)
	place, more := tr.describe(in)
	tr.phaseNow(place+" · "+strings.ToLower(name), usual(name, in, p.s.plan))
	where := map[string]string{activities.WorkflowQueue: "host", activities.AnyDeviceQueue: "any device"}[queue]
	if where == "" {
		where = strings.Replace(queue, "-", " ", 1)
	}
	if info.Attempt > 1 {
		more += fmt.Sprintf(", try %d", info.Attempt)
	}
	tr.say(where, "%-9s %s", name, strings.TrimPrefix(place+more, ", "))
}

// usual is the phase in which a step of no iteration runs.
func usual(name string, input any, p activities.Plan) string {
	switch in := input.(type) {
	case activities.WarmStartInput:
		done := 0
		if in.From != nil {
			done = in.From.Version
		}
		return fmt.Sprintf("warm start, step %d of %d", done, p.WarmStartSteps)
	case activities.FindInput:
		return fmt.Sprintf("rolling back to iteration %d", *in.Version-1)
	case activities.CommitInput: // the first samples of the next one run beside it
		return fmt.Sprintf("iteration %d · turn 1 · generate", in.Iteration+1)
	}
	return map[string]string{
		"Resolve": "resolving", "ResolveEvaluation": "resolving", "Load": "resolving",
		"Describe": "looking for a device", "Restore": "restoring", "Report": "writing the report",
	}[name]
}

// input is what an activity is given.
func (tr *trace) input(name string, args converter.EncodedValues) any {
	method := reflect.ValueOf(tr.d.p.s).MethodByName(name)
	require.True(tr.d.t, method.IsValid(), name)
	if method.Type().NumIn() < 2 {
		return nil
	}
	in := reflect.New(method.Type().In(1))
	require.NoError(tr.d.t, args.Get(in.Interface()))
	return in.Elem().Interface()
}

// state names a policy's state after its version: 2, and 2b, 2c where other updates
// made it.
func (tr *trace) state(version int, state string) string {
	if state == "" {
		return fmt.Sprint(version)
	}
	if name, ok := tr.d.states[state]; ok {
		return name
	}
	taken := 0
	for _, name := range tr.d.states {
		if strings.TrimRight(name, "bcdefgh") == fmt.Sprint(version) {
			taken++
		}
	}
	tr.d.states[state] = strings.TrimSuffix(fmt.Sprintf("%d%c", version, 'a'+taken), "a")
	return tr.d.states[state]
}

// rolled names a rollout.
func rolled(r activities.Rollout, turn int) string {
	out := fmt.Sprintf("iteration %d", r.Iteration)
	if r.Evaluation != nil {
		out = fmt.Sprintf("version %d · %s", r.Iteration, r.Evaluation.Suite)
	}
	if r.Round > 0 {
		out += fmt.Sprintf(" · round %d", r.Round+1)
	}
	if turn > 0 {
		out += fmt.Sprintf(" · turn %d", turn)
	}
	return out
}

// list is text that is added where it holds.
type list string

func (l *list) add(yes bool, format string, args ...any) {
	if yes {
		*l += list(", " + fmt.Sprintf(format, args...))
	}
}

// described says that a spec has another description than at first.
func described(l *list, s store.Ref) { l.add(s.Digest != "" && s != specOf(""), "the new description") }

// describe says what an activity works on, and the rest of its input that matters to a
// reader.
func (tr *trace) describe(input any) (place, more string) {
	var l list
	policy := func(v activities.Version) {
		name := tr.state(v.Version, v.State)
		l.add(name != fmt.Sprint(v.Version), "state %s", name)
		l.add(v.Branch > 0, "branch %d", v.Branch)
	}
	switch in := input.(type) {
	case activities.WarmStartInput:
		from := 0
		if in.From != nil {
			from = in.From.Version
		}
		place = fmt.Sprintf("from step %d", from)
		l.add(true, "at most %d steps", in.Steps)
		l.add(in.Base != nil, "of an imported model")
		described(&l, in.Spec)
	case activities.ResolveInput:
		if d := in.Describe; d != nil {
			l.add(true, "asks for the description again")
			l.add(d.Take, "to take it")
			l.add(d.Base != nil, "with the model")
		}
	case activities.LoadInput:
		described(&l, in.Spec)
	case activities.AskInput:
		place = rolled(in.Rollout, in.Turn)
		l.add(in.Branch > 0, "branch %d", in.Branch)
		described(&l, in.Run.Spec)
	case activities.FindInput:
		place = fmt.Sprintf("version %d", *in.Version)
	case activities.RestoreInput:
		place = fmt.Sprintf("version %d", in.Version.Version)
		described(&l, in.Version.Run.Spec)
		policy(in.Version)
		for _, p := range in.Passed {
			l.add(true, "and the pass to %s", tr.state(in.Version.Version, p.State))
		}
		if in.Pending != nil {
			l.add(true, "and the update to %s", tr.state(in.Version.Version+1, in.Pending.State))
		}
		l.add(in.Updating != nil, "or with pieces of its update")
		l.add(in.Evaluate, "to evaluate")
		l.add(in.Adopt, "whatever made it")
	case activities.GenerateInput:
		place = rolled(in.Rollout, in.Turn)
		l.add(len(in.Pieces) > 0, "piece %d", len(in.Pieces)+1)
		policy(in.Policy)
	case activities.StepInput:
		place = rolled(in.Rollout, in.Turn)
		l.add(in.Branch > 0, "branch %d", in.Branch)
	case activities.SelectInput:
		place = rolled(in.Rollout, 0)
		l.add(len(in.Turns) > 1, "%d turns", len(in.Turns))
		l.add(in.Branch > 0, "branch %d", in.Branch)
	case activities.MeasureInput:
		place = rolled(in.Rollout, 0)
		l.add(in.Branch > 0, "branch %d", in.Branch)
		l.add(in.Rollout.Evaluation.Apart != "", "apart from the run")
		tr.measures = in.Rollout.Evaluation.Apart != ""
	case activities.ScoreInput:
		place = fmt.Sprintf("iteration %d", in.Iteration)
		l.add(len(in.Pieces) > 0, "piece %d", len(in.Pieces)+1)
		policy(in.Policy)
	case activities.DiagnoseInput:
		place = fmt.Sprintf("iteration %d", in.Iteration)
		l.add(len(in.Pieces) > 0, "piece %d", len(in.Pieces)+1)
		policy(in.Policy)
	case activities.GradeInput:
		place = rolled(in.Rollout, 0)
		l.add(in.Piece > 0, "piece %d", in.Piece+1)
		policy(in.Policy)
	case activities.CreditInput:
		place = fmt.Sprintf("iteration %d", in.Iteration)
		l.add(in.Scores == nil, "nothing is selected")
		if in.Rollout != nil {
			l.add(true, "part %d of %d of the rollout of iteration %d", in.Rollout.Update+1, in.Rollout.Updates, in.Rollout.Iteration)
		}
		if p := in.Pass; p != nil {
			l.add(true, "turn %d after turn %d", p.Turn, p.Updated)
			l.add(p.Corrections != nil, "corrected before")
		}
		l.add(len(in.Replay) > 0, "%d batches to replay", len(in.Replay))
		l.add(in.Branch > 0, "branch %d", in.Branch)
	case activities.UpdateInput:
		place = fmt.Sprintf("iteration %d", in.Policy.Version)
		if in.Begun != nil {
			l.add(true, "from micro-batch %d", in.Begun.Done+1)
			l.add(in.Begun.Lost > in.Begun.Done, "%d done before", in.Begun.Lost)
		}
		policy(in.Policy)
	case activities.SnapshotInput:
		place = fmt.Sprintf("iteration %d", in.Policy.Version-1)
		l.add(true, "version %d", in.Policy.Version)
		if in.Begun != nil {
			l.add(true, "from file %d", in.Begun.Sent+1)
		}
		policy(in.Policy)
	case activities.CommitInput:
		place = fmt.Sprintf("iteration %d", in.Iteration)
		tr.commit(&l, in)
	}
	return place, string(l)
}

// commit says what a manifest has.
func (tr *trace) commit(l *list, in activities.CommitInput) {
	l.add(true, "branch %d", in.Branch)
	described(l, in.Run.Spec)
	l.add(true, "state %s to %s", tr.state(in.Iteration, in.StateBefore), tr.state(in.Iteration+1, in.StateAfter))
	l.add(in.Update.Skipped, "no update")
	l.add(len(in.Turns) > 1, "%d turns", len(in.Turns))
	l.add(in.Rollout != nil && len(in.Turns) == 0, "no rollout")
	if in.Snapshot != nil {
		l.add(true, "snapshot %d", in.Snapshot.Version)
	}
	for _, e := range in.Evaluations {
		l.add(true, "%s of version %d", e.Suite, e.Version)
	}
	for _, c := range tr.d.p.s.plan.Settings.Diff(in.Settings) {
		l.add(true, "%s %s", c.Path, c.Other)
	}
	if d := in.Detected; d != nil {
		for _, e := range d.Events {
			l.add(true, "%s: %s", e.Detector, d.Decision.Action)
		}
	}
	if o := in.Opened; o != nil {
		l.add(true, "opened after iteration %d of branch %d", o.Iteration, o.Branch)
		l.add(o.Spec != "", "which has the description before")
		if a := o.Adopted; a != nil {
			l.add(true, "adopts %v on %s after %v on %s", in.Programs, in.Fingerprint, a.Programs, a.Fingerprint)
		}
	}
	for _, p := range in.Passes {
		l.add(true, "turn %d to %s", p.Turn, tr.state(in.Iteration, p.State))
	}
	l.add(in.Lost > 0, "devices lost: %d", in.Lost)
}
