package bench

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	activitypb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/train"
)

func TestPeakMemory(t *testing.T) {
	peak, err := PeakMemory(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, peak, int64(1<<20))
	_, err = PeakMemory(1 << 30)
	require.ErrorContains(t, err, "peak memory of process 1073741824")
}

// told makes a history from events, one a call, at seconds after an epoch.
type told struct {
	t      *testing.T
	epoch  time.Time
	events []*historypb.HistoryEvent
}

func (h *told) add(kind enumspb.EventType, at float64, set func(*historypb.HistoryEvent)) int64 {
	e := &historypb.HistoryEvent{
		EventId: int64(len(h.events) + 1), EventType: kind,
		EventTime: timestamppb.New(h.epoch.Add(time.Duration(at * float64(time.Second)))),
	}
	set(e)
	h.events = append(h.events, e)
	return e.EventId
}

// activity adds an activity that was started; it gives its schedule's id.
func (h *told) activity(name string, scheduled, started float64) int64 {
	id := h.add(enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, scheduled, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
			ActivityType: &activitypb.ActivityType{Name: name},
		}}
	})
	h.add(enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED, started, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskStartedEventAttributes{ActivityTaskStartedEventAttributes: &historypb.ActivityTaskStartedEventAttributes{
			ScheduledEventId: id,
		}}
	})
	return id
}

func (h *told) completed(id int64, at float64, result any) {
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(result)
	require.NoError(h.t, err)
	h.add(enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, at, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{
			ScheduledEventId: id, Result: payloads,
		}}
	})
}

func (h *told) timedOut(id int64, at float64) {
	h.add(enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT, at, func(e *historypb.HistoryEvent) {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskTimedOutEventAttributes{ActivityTaskTimedOutEventAttributes: &historypb.ActivityTaskTimedOutEventAttributes{
			ScheduledEventId: id,
		}}
	})
}

func TestRecoveryInHistory(t *testing.T) {
	h := &told{t: t, epoch: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}
	session := h.activity(steps.Hold.Name, 0, 0.1)
	h.completed(h.activity("Restore", 1, 1), 2, activities.RestoreResult{Telemetry: activities.Telemetry{Seconds: 100}})
	h.completed(h.activity("Generate", 3, 3), 4, activities.GenerateResult{})
	h.activity("Update", 5, 5)
	killed := h.epoch.Add(6 * time.Second)

	_, done, err := recoveryIn(h.events, killed)
	require.NoError(t, err)
	require.False(t, done, "nothing has happened yet")

	h.timedOut(session, 10)
	h.activity(steps.Hold.Name, 10.5, 11)
	h.completed(h.activity("Restore", 11.5, 12), 15, activities.RestoreResult{Telemetry: activities.Telemetry{
		Seconds: 3, CompileSeconds: 1, LoadSeconds: 0.5, Recomputed: 4,
	}})
	_, done, err = recoveryIn(h.events, killed)
	require.NoError(t, err)
	require.False(t, done, "no step has run again")

	h.completed(h.activity("Restore", 15.5, 16), 17, activities.RestoreResult{Telemetry: activities.Telemetry{Seconds: 1, Recomputed: 2}})
	h.completed(h.activity("Update", 18, 18.5), 19, activities.UpdateResult{})
	got, done, err := recoveryIn(h.events, killed)
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, Recovery{Detection: 4, Dispatch: 2, Compile: 1, Load: 0.5, Rebuild: 2.5, Updates: 6, Total: 12.5}, got)
}

func TestRecoveryWithoutLostSession(t *testing.T) {
	h := &told{t: t, epoch: time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.activity(steps.Hold.Name, 0, 0.1)
	h.completed(h.activity("Update", 7, 7), 8, activities.UpdateResult{})
	_, _, err := recoveryIn(h.events, h.epoch.Add(6*time.Second))
	require.ErrorIs(t, err, errNoSession)
}

// The restarts of a history are the restores that loaded a model, in order.
func TestLoadsInHistory(t *testing.T) {
	h := &told{t: t}
	restore := func(at float64, took activities.Telemetry) {
		h.completed(h.activity("Restore", at, at), at+1, activities.RestoreResult{Telemetry: took})
	}
	first, second := activities.Telemetry{Seconds: 9, LoadSeconds: 4}, activities.Telemetry{Seconds: 3, LoadSeconds: 2}
	restore(0, first)
	h.completed(h.activity("Generate", 1, 1), 2, activities.GenerateResult{Telemetry: activities.Telemetry{LoadSeconds: 1}})
	restore(3, activities.Telemetry{Seconds: 1, Recomputed: 1})
	restore(4, second)
	got, err := loadsIn(h.events)
	require.NoError(t, err)
	require.Equal(t, []activities.Telemetry{first, second}, got)
}

// quickEngine is an engine on a device that compiles quickly.
func quickEngine(t *testing.T) *device.Engine {
	plugintest.Needs(t)
	opened, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	t.Cleanup(func() { opened.Close() })
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	return engine
}

func TestLocalTrainsTheSameBits(t *testing.T) {
	engine := quickEngine(t)
	text, err := presets.Read("smoke")
	require.NoError(t, err)

	s := store.NewMemory()
	first, err := train.New(engine, s).Train(context.Background(), "a", text)
	require.NoError(t, err)
	require.Len(t, first.Iterations, 3)
	require.NotEmpty(t, first.State)
	for n, i := range first.Iterations {
		require.Positive(t, i.Seconds)
		for _, step := range []string{"generate", "step", "select", "update", "commit"} {
			require.Contains(t, i.Steps, step, "iteration %d", n)
		}
	}
	// On another store, another worker's memory: the same state.
	again, err := train.New(engine, store.NewMemory()).Train(context.Background(), "b", text)
	require.NoError(t, err)
	require.Equal(t, first.State, again.State)
}
