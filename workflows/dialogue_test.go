package workflows

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/activities"
)

var rewrite = flag.Bool("rewrite", false, "write what the dialogues give into testdata/*.txt")

// A dialogue is a file of testdata: commands, a line "----", and what the workflow then
// did, line by line: where, what. Further commands after an empty line are another
// history of the same run. Lines that begin with # are for the reader.
//
//	go test ./workflows -run TestDialogues -rewrite
//
// writes what happened into the files; the difference is to be read like code. The
// phase of the run's status has a line where the step that follows does not say the
// same. 2b is another state of version 2 than 2.
//
// The commands:
//
//	start [model=imported] [iterations=3] [turns=1] …      a run; see dialogue.option
//	continue                                                the history after a continue-as-new
//	start-again                                             Temporal's database was lost; the store is there
//	evaluate                                                an Evaluate workflow instead of a run
//	continue-as-new N                                       begin a new history after N iterations
//	long-history at STEP N                                  the server suggests a new history
//	pause, resume, stop-after N, roll-back N [describe], describe TEXT,
//	change-knob PATH VALUE, report, snapshot-now,
//	adopt-programs [FINGERPRINT], upgrade BUILD, move FINGERPRINT, cancel, ask at STEP N   by a person, while STEP runs for the Nth time
//	the same at rest                                        when nothing happens any longer, one rest each
//	kill STEP N, forget STEP N, drain STEP N                the session ends; the policy is not held; the worker stops
//	out-of-memory STEP N, fail-device STEP N, late STEP N   too little memory; the device is gone; the step takes too long
//	other-programs restore N                                the worker's build lowers other programs
//	                                                        the first of these commands ends session 1, the next session 2
//	slow-commit N                                           the Nth commit begins when the samples beside it have ended
//	fail STEP N [KIND]                                      an error, which a retry corrects or which has a kind
//	starve STEP N                                           as kill, but the worker lives, and takes the next session
//	absent N                                                the first N tries to open a session find no device
//	silent N                                                the first N questions what devices there are find none
type dialogue struct {
	t      *testing.T
	stage  *stage // of the history before
	carry  *Carry
	after  int // iterations of a history
	states map[string]string

	p *play
	trace
	kills   int           // sessions that a command ends
	noticed chan struct{} // closed when the workflow has noticed a lost session
	run     func()
}

func TestDialogues(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			d := &dialogue{t: t, states: map[string]string{}}
			got := d.play(string(text))
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, strings.Split(string(text), "\n"), strings.Split(got, "\n"))
		})
	}
}

// play is the text with what happened instead of what was expected.
func (d *dialogue) play(text string) string {
	var out []string
	var commands []string
	expected := false
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case expected:
			expected = line != ""
			if !expected {
				out = append(out, "")
			}
		case line == "----":
			expected = true
			d.history(commands)
			out, commands = append(append(out, line), d.lines...), nil
		default:
			out = append(out, line)
			if line != "" && !strings.HasPrefix(line, "#") {
				commands = append(commands, line)
			}
		}
	}
	require.Empty(d.t, commands, "commands without a line ----")
	return strings.Join(out, "\n") + "\n"
}

// history runs one history of the workflow, with the commands that come to it.
func (d *dialogue) history(commands []string) {
	for i, line := range commands {
		words := strings.Fields(line)
		if i == 0 {
			d.begin(words[0], words[1:])
			continue
		}
		d.command(words)
	}
	d.run()
	d.ended()
	d.stage = d.p.s
}

// begin sets a history up.
func (d *dialogue) begin(how string, options []string) {
	s := &stage{plan: testPlan()}
	if d.stage != nil { // the store and the environment are as they were
		s.plan, s.base, s.commits, s.build = d.stage.plan, d.stage.base, d.stage.commits, d.stage.build
		s.success, s.description = d.stage.success, d.stage.description
		s.selected, s.parts, s.more, s.pieces, s.gradNorm, s.alive = d.stage.selected, d.stage.parts, d.stage.more, d.stage.pieces, d.stage.gradNorm, d.stage.alive
	}
	for _, o := range options {
		d.option(s, o)
	}
	carry := d.carry
	switch how {
	case "start":
		require.Nil(d.t, d.stage, "a dialogue starts once")
	case "continue":
		require.NotNil(d.t, carry, "nothing is carried")
	case "start-again":
		carry = nil
		s.head = newest(s.commits)
	case "evaluate":
	default:
		require.Fail(d.t, "a history begins with start, continue, start-again or evaluate", how)
	}
	d.p, d.kills = newPlay(d.t, s), 0
	d.p.w.ContinueAfter = d.after
	d.trace = trace{d: d}
	d.p.tell = d.began
	d.p.told = func(info *activity.Info, err error) {
		if err != nil && info.ActivityType.Name == "Hold" && d.noticed != nil {
			close(d.noticed)
			d.noticed = nil
		}
	}
	s.instead = map[string]func() error{}
	d.run = func() { d.p.train(carry) }
	if how == "evaluate" {
		d.run = func() { d.p.ExecuteWorkflow(d.p.w.Evaluate, evaluateInput) }
	}
}

// headOf is what is found in the store of an iteration that was committed.
func headOf(c activities.CommitInput, commits []activities.CommitInput) *activities.Head {
	c.Fingerprint = testPrint
	head := activities.HeadOf(c, ref("manifest", c.Branch, c.Iteration))
	head.Snapshot = newestSnapshot(commits, c.Iteration)
	return head
}

// newest is what Resolve finds in the store.
func newest(commits []activities.CommitInput) *activities.Head {
	c := commits[len(commits)-1]
	return headOf(c, commits)
}

// ended says how the history ended, and what is carried.
func (d *dialogue) ended() {
	require.True(d.t, d.p.IsWorkflowCompleted())
	require.Empty(d.t, d.pending, "a command never had its moment")
	err := d.p.GetWorkflowError()
	d.phaseNow()
	d.carry = nil
	switch {
	case workflow.IsContinueAsNewError(err):
		d.carry = carryOf(d.t, err)
		more := ""
		if d.carry.Current != nil {
			more = " under way"
		}
		if d.carry.Paused {
			more += ", paused"
		}
		d.say("run", "continues as new with iteration %d%s", d.carry.Next, more)
	case err != nil:
		d.say("run", "sessions opened: %d, given back: %d", d.p.opened, d.p.closed)
	case d.measures:
		var r EvaluateResult
		require.NoError(d.t, d.p.GetWorkflowResult(&r))
		for _, e := range r.Evaluations {
			d.say("run", "measured version %d of %s on %s", e.Version, r.Run, e.Suite)
		}
	default:
		r := d.p.result()
		d.say("run", "iterations: %d, branch %d, state %s; evaluated: %s; devices lost: %d, updates recomputed: %d",
			r.Iterations, r.Branch, d.state(r.Iterations, r.State), versions(r.First, r.Last), r.LostDevices, r.Recomputed)
	}
}

// versions are the versions of a run's first and last evaluation.
func versions(first, last *Evaluated) string {
	if first == nil {
		return "never"
	}
	return fmt.Sprintf("%d to %d", first.Version, last.Version)
}
