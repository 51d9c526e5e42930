package device

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model"
)

// The self-test has each device of a process compute what the first one computes, and refuses one
// that computes other bits by its number: in a generation, in scoring and in an update in shards, of
// the policy and of the critic.
func TestDevicesAgree(t *testing.T) {
	t.Parallel()
	e, endings := ownEngine(t, model.DeviceOptions{VirtualDevices: 2})
	e.trusted = false
	r := resolved(t, "agree", tinySpec(t, `credit.algorithm="gae"`, "update.micro_batch=2", "update.shards=2", "rollout.max_new_tokens=8"))
	r.Device = &Device{Store: r.store, Engine: e}
	backward := 0
	e.device.Before = func(program string) error {
		if kind, _, _ := strings.Cut(program, " "); kind == "backward" {
			backward++
		}
		return nil
	}
	asked, differs := 0, 0
	e.Differ = func(context.Context) bool { asked++; return asked == differs }
	restore := func() error {
		for _, p := range e.programs {
			p.tested = false
		}
		e.draining.Store(false)
		asked = 0
		_, err := r.Device.Restore(t.Context(), activities.RestoreInput{Version: activities.Version{Run: r.Run}})
		return err
	}
	require.NoError(t, restore())
	require.Equal(t, 8, asked)
	require.Equal(t, 2*2+2*2, backward, "of an update of two micro-batches, twice, and once on each device")
	require.Positive(t, e.device.Busy()[1])
	for _, x := range []struct {
		at   int
		what string
	}{{3, "a generation"}, {4, "scoring"}, {5, "an update"}, {7, "scoring of the critic"}, {8, "an update of the critic"}} {
		differs = x.at
		err := restore()
		require.ErrorContains(t, err, "devices do not compute the same bits: "+x.what+" gave ")
		require.ErrorContains(t, err, " on device 1")
		require.Equal(t, activities.KindDeviceFailed, run.KindOf(err))
		require.Equal(t, Refused, (<-endings).Cause)
	}
}
