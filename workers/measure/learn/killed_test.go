package learn

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Of nine kills two each are in Generate, Update, Snapshot and Commit, and one in Restore, which
// follows another kill; the second in an activity that writes is at another place of it.
func TestNineKills(t *testing.T) {
	in := map[string][]string{}
	for n := range 9 {
		f := planned(n, 3)
		in[f.Kind] = append(in[f.Kind], f.Phase)
		want := 3
		if f.Kind == "Restore" || f.Kind == "Snapshot" {
			want = 1
		}
		require.Equal(t, want, f.Nth, f.String())
	}
	require.Equal(t, map[string][]string{
		"Generate": {"inside", "written"}, "Update": {"inside", "written"}, "Snapshot": {"inside", "inside"}, "Commit": {"inside", "written"},
		"Restore": {"inside"},
	}, in)
	require.Equal(t, planned(0, 2), planned(9, 2), "they begin again")
}

func TestTwins(t *testing.T) {
	s := settings[0]
	undisturbed, killed, text, err := twins(s, 1)
	require.NoError(t, err)
	require.Equal(t, "learn-p25-keep25-s1-killed", killed)
	require.Equal(t, "learn-p25-keep25-undisturbed-s1", runOf(undisturbed, 1))
	same, err := specOf(undisturbed, 1)
	require.NoError(t, err)
	require.NotEqual(t, string(text), "")
	decoded, err := spec.Decode(text, run.Known())
	require.NoError(t, err)
	other, err := spec.Decode(same, run.Known())
	require.NoError(t, err)
	require.Equal(t, decoded.Snapshot, other.Snapshot)
	require.Equal(t, 5, decoded.Snapshot.Every)
	require.Equal(t, map[string]any{"every": 30}, s.Fields["snapshot"], "the setting itself is left alone")
}

// scene is a history with one activity of which an attempt was lost.
type scene struct {
	events []*historypb.HistoryEvent
	began  time.Time
}

func (s *scene) at(seconds int, kind enumspb.EventType, fill func(*historypb.HistoryEvent)) {
	e := &historypb.HistoryEvent{EventId: int64(len(s.events) + 1), EventType: kind, EventTime: timestamppb.New(s.began.Add(time.Duration(seconds) * time.Second))}
	fill(e)
	s.events = append(s.events, e)
}

func (s *scene) scheduled(seconds int, name string) {
	s.at(seconds, enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityType: &commonpb.ActivityType{Name: name}},
		}
	})
}

func (s *scene) started(seconds int, of int64, pid string, attempt int32) {
	s.at(seconds, enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{
			ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{ScheduledEventId: of, Identity: pid + "@vm@", Attempt: attempt},
		}
	})
}

func (s *scene) timedOut(seconds int, of int64) {
	s.at(seconds, enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskTimedOutEventAttributes{
			ActivityTaskTimedOutEventAttributes: &historypb.ActivityTaskTimedOutEventAttributes{ScheduledEventId: of},
		}
	})
}

func (s *scene) completed(seconds int, of int64) {
	s.at(seconds, enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: of},
		}
	})
}

func (s *scene) lost() []*lost {
	var out []*lost
	under := map[int64]*lost{}
	for _, e := range s.events {
		if l := read(e, under); l != nil {
			out = append(out, l)
		}
	}
	return out
}

func TestWitnesses(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := &scene{began: began}
	s.scheduled(0, "Update") // 1
	s.started(0, 1, "11", 1) // 2
	s.timedOut(9, 1)         // 3
	s.scheduled(10, "Update")
	s.started(10, 4, "12", 1)
	s.completed(12, 4)
	s.scheduled(12, "Commit") // 7
	s.started(20, 7, "13", 2) // 8: what the first attempt's process was is not written
	s.completed(21, 7)
	kills := func(activities ...string) (out []Kill) {
		for _, a := range activities {
			out = append(out, Kill{Activity: a})
		}
		return out
	}
	dies := func(pid, seconds int) life {
		return life{pid: pid, died: began.Add(time.Duration(seconds) * time.Second)}
	}

	two := kills("Update", "Commit")
	require.NoError(t, testify(two, []life{dies(11, 5), dies(12, 14)}, s.lost()))
	require.Equal(t, "event 3, ActivityTaskTimedOut", two[0].Witness)
	require.Equal(t, "event 8, ActivityTaskStarted", two[1].Witness)

	for name, c := range map[string]struct {
		kill string
		of   life
	}{
		"another activity":    {"Generate", dies(11, 5)},
		"another process":     {"Update", dies(12, 5)},
		"died before":         {"Commit", dies(12, 11)},
		"died after the loss": {"Update", dies(11, 11)},
	} {
		require.ErrorIs(t, testify(kills(c.kill), []life{c.of}, s.lost()), errNoWitness, name)
	}
	require.ErrorIs(t, testify(kills("Commit", "Commit"), []life{dies(12, 14), dies(12, 14)}, s.lost()), errNoWitness, "one loss is one kill's witness")
}

func TestPicture(t *testing.T) {
	k := Killed{
		Setting: "bandit", Undisturbed: []Committed{{0.25, "a"}, {0.5, "b"}}, Killed: []Committed{{0.25, "a"}, {0.5, "b"}},
		Kills: []Kill{{Activity: "Update", Phase: "inside", Iteration: 1, Witness: "event 3, ActivityTaskTimedOut"}}, Equal: true,
	}
	one, err := k.Picture()
	require.NoError(t, err)
	again, err := k.Picture()
	require.NoError(t, err)
	require.Equal(t, one, again)
	require.Contains(t, string(one), "all 2 state fingerprints equal")
	require.Contains(t, string(one), "kill -9 in Update")
	require.Contains(t, k.String(), "event 3")
	k.Equal = false
	other, err := k.Picture()
	require.NoError(t, err)
	require.Contains(t, string(other), "STATE FINGERPRINTS DIFFER")
}

func TestRecords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "records", "learn-x-s1.json")
	_, found, err := readRecord(file, []byte("spec"))
	require.NoError(t, err)
	require.False(t, found)
	out := Outcome{Run: "learn-x-s1", Seed: 1, Rise: 3.5, State: "abc", Curve: []float64{0.25, 0.5}}
	require.NoError(t, writeRecord(file, []byte("spec"), out))
	got, found, err := readRecord(file, []byte("spec"))
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, out, got)
	_, _, err = readRecord(file, []byte("another spec"))
	require.ErrorIs(t, err, ErrOtherSpec)
	require.ErrorContains(t, err, file)
}
