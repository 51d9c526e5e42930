package chaos

import (
	"fmt"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/notices"
	"github.com/reprise-rl/reprise/infra/notices/noticestest"
)

// noticeStall is how long a step takes in which a notice comes.
const noticeStall = 1500 * time.Millisecond

// told is a notice that comes in a step. The device's steps run on the worker that gets it; Credit runs on
// the host's worker, and the device has nothing to do meanwhile.
type told struct {
	kind      string
	iteration int  // -1: the worker's first step of the kind
	signal    bool // Slurm's signal in place of the cloud's notice
	short     bool // the machine ends before the step can
}

// fault makes the step take longer.
func (n told) fault() string {
	place := n.kind
	if n.iteration >= 0 {
		place = fmt.Sprintf("%s#%d", n.kind, n.iteration)
	}
	return fmt.Sprintf("%s/stall:%d/1", place, noticeStall.Milliseconds())
}

// TestChaosNotices has each cloud say that the machine ends while a step runs on it, and while none does: the worker ends
// the step, the next worker repeats nothing, and the run has the same bytes. Where the machine ends before the step
// can, the step is done again, as after a kill.
func TestChaosNotices(t *testing.T) {
	t.Parallel()
	of := []told{{kind: "Generate"}, {kind: "Credit", iteration: 1}, {kind: "Update", iteration: 2}, {kind: "Snapshot", iteration: -1}}
	for cloud, more := range map[string]told{
		notices.AWS: {kind: "Update", iteration: 4, short: true}, notices.GCP: {kind: "Generate", iteration: 4, signal: true}, notices.Azure: {},
	} {
		t.Run(cloud, func(t *testing.T) {
			beside(t)
			list := slices.Clone(of)
			if more != (told{}) {
				list = append(list, more)
			}
			notified(t, cloud, list)
		})
	}
}

// notified gives notices to the workers of a run, in the order in which their steps come, each to the worker that has the run.
func notified(t *testing.T, cloud string, list []told) {
	t.Helper()
	want := reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	flags := func(role string) workerOptions {
		return workerOptions{trace: true, heartbeat: "20s", flags: []string{"--roles", role}}
	}
	hosts := flags("workflow,host")
	hosts.fault = list[slices.IndexFunc(list, func(n told) bool { return n.kind == "Credit" })].fault()
	host := l.worker(hosts)
	device := func(i int) (*process, *noticestest.Server) {
		s := noticestest.New(t, cloud)
		o := flags("device")
		o.env, o.flags = s.Env(), append(o.flags, "--notices", cloud)
		if i < len(list) && list[i].kind != "Credit" {
			o.fault = list[i].fault()
		}
		return l.worker(o), s
	}
	p, server := device(0)
	l.start(chaosRun, preset(t, "chaos", nil))
	var moments []time.Time
	var failed []string
	for i, n := range list {
		p.says(t, "took", patience) // so the next worker does not get the run before this one
		next, nextServer := device(i + 1)
		in := p
		if n.kind == "Credit" {
			in = host
		}
		in.says(t, n.fault()+" stalls", patience)
		moments = append(moments, n.give(t, cloud, p, server))
		p.stops(t, patience)
		t.Logf("in %s: ended %s after the notice", n.kind, time.Since(moments[i]).Round(10*time.Millisecond))
		if i == 0 { // the notice stands: a worker that starts now on that machine takes nothing
			again := flags("device")
			again.env, again.flags = server.Env(), append(again.flags, "--notices", cloud)
			late := l.worker(again)
			late.stops(t, patience)
			require.Contains(t, late.text(), ": nothing is started on this machine")
		}
		if n.short {
			failed = append(failed, n.kind)
			l.processes = slices.DeleteFunc(l.processes, func(one *process) bool { return one == p }) // its heartbeats are refused
		}
		p, server = next, nextServer
	}
	l.completes(chaosRun)
	l.isAs(chaosRun, want)
	if l.hindered() {
		return
	}
	undisturbed := &lane{t: t, stack: sharedStack(t), namespace: single.lane}
	undisturbed.dial()
	have := l.work(chaosRun)
	require.Equal(t, undisturbed.work(chaosRun).completed, have.completed, "each step is done once")
	require.Equal(t, failed, have.failed, "only a step that had no time is done again")
	for i, n := range list {
		require.Equal(t, []string{n.kind}, have.at(moments[i]), "what ran when notice %d came", i)
	}
}

// give gives the notice to a worker, and returns when the worker got it.
func (n told) give(t *testing.T, cloud string, p *process, s *noticestest.Server) time.Time {
	t.Helper()
	now := time.Now()
	switch {
	case n.signal:
		require.NoError(t, syscall.Kill(p.pid, syscall.SIGUSR1))
		return now
	case n.short:
		s.Notify(now.Add(time.Second))
	default:
		s.Notify(now.Add(2 * time.Minute))
	}
	p.says(t, ": stopping", patience)
	return loggedNotice(t, p, cloud)
}

// loggedNotice is when a worker got its notice, by its log.
func loggedNotice(t *testing.T, p *process, cloud string) time.Time {
	t.Helper()
	line := regexp.MustCompile(`(?m)^(\S+)\s+WARN\s+a notice: ` + cloud + `: .*: stopping$`).FindStringSubmatch(p.text())
	require.NotNil(t, line, p.text())
	at, err := time.Parse(time.RFC3339, line[1])
	require.NoError(t, err)
	return at
}

// attempt is one of an activity.
type attempt struct {
	kind       string
	began, end time.Time // end is zero where the history has none
	completed  bool
	refused    bool // by a worker that drains: nothing was done
}

// work is what a history says of a run's steps, without those that bring a policy to a device.
type work struct {
	completed map[string]int // by kind
	failed    []string       // kinds of attempts that began and did not complete
	attempts  []*attempt
}

// at are the kinds of steps that ran at a moment.
func (w work) at(moment time.Time) []string {
	var out []string
	for _, a := range w.attempts {
		if !a.refused && a.began.Before(moment) && (a.end.IsZero() || moment.Before(a.end)) {
			out = append(out, a.kind)
		}
	}
	return out
}

// work reads the history of a run.
func (l *lane) work(id string) work {
	l.t.Helper()
	out := work{completed: map[string]int{}}
	of := map[int64]*attempt{} // by the event that scheduled it
	events := l.client.GetWorkflowHistory(l.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(l.t, err)
		at := e.EventTime.AsTime()
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil && slices.Contains(kinds[3:], a.ActivityType.Name) {
			of[e.EventId] = &attempt{kind: a.ActivityType.Name, began: at}
			out.attempts = append(out.attempts, of[e.EventId])
		}
		if a := e.GetActivityTaskStartedEventAttributes(); a != nil && of[a.ScheduledEventId] != nil {
			of[a.ScheduledEventId].began = at
			require.EqualValues(l.t, 1, a.Attempt, "%s: %v", of[a.ScheduledEventId].kind, a.LastFailure)
		}
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil && of[a.ScheduledEventId] != nil {
			of[a.ScheduledEventId].end, of[a.ScheduledEventId].completed = at, true
		}
		if a := e.GetActivityTaskFailedEventAttributes(); a != nil && of[a.ScheduledEventId] != nil {
			of[a.ScheduledEventId].end = at
			of[a.ScheduledEventId].refused = a.Failure.GetApplicationFailureInfo().GetType() == activities.KindDraining
		}
	}
	for _, a := range out.attempts {
		switch {
		case a.completed:
			out.completed[a.kind]++
		case !a.refused:
			out.failed = append(out.failed, a.kind)
		}
	}
	return out
}
