package device

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
)

// The self-test is done once for a set of programs, and needs the memory of a version. Where
// the device does not repeat its bits, it is refused: every part of the test can do so.
func TestSelfTest(t *testing.T) {
	t.Parallel()
	e, endings := ownEngine(t, model.DeviceOptions{})
	e.trusted = false
	r := resolved(t, "self-test", tinySpec(t, `credit.algorithm="gae"`, `update.kl_in="loss"`, "update.kl_coefficient=0.1", "rollout.max_new_tokens=12"))
	r.Device = &Device{Store: r.store, Engine: e}
	executed := map[string]int{}
	e.device.Before = func(program string) error {
		kind, _, _ := strings.Cut(program, " ")
		executed[kind]++
		return nil
	}
	asked, differs := 0, 0
	e.Differ = func(context.Context) bool { asked++; return asked == differs }
	restore := func() (activities.RestoreResult, error) {
		return r.Device.Restore(t.Context(), activities.RestoreInput{Version: activities.Version{Run: r.Run}})
	}

	begin := time.Now()
	first, err := restore()
	require.NoError(t, err)
	require.Equal(t, 3, asked, "a generation, an update and one of the critic")
	tensors := len(e.state.Config().Tensors()) + len(e.second.Config().Tensors())
	for program, times := range map[string]int{"decode": 2, "backward": 4, "critic-backward": 4, "square": 2 * tensors, "apply": 2 * tensors} {
		require.Equal(t, times, executed[program], program)
	}
	fingerprint := e.fingerprint
	require.NoError(t, e.computeFingerprint())
	require.Equal(t, fingerprint, e.fingerprint, "of the version, not of a probe")
	require.Equal(t, first.State, e.fingerprint)
	all := time.Since(begin)

	r.forget(t)
	again, err := restore()
	require.NoError(t, err)
	require.Equal(t, first.State, again.State)
	require.Equal(t, 3, asked, "programs are tested once")

	w, done, err := r.Device.begin(t.Context(), r.Run)
	require.NoError(t, err)
	for _, p := range e.programs {
		p.tested = false
	}
	shapes := w.Shapes(w.Training, 1)
	p, err := e.programsFor(w.Context, r.Run, shapes)
	require.NoError(t, err)
	prompts := w.selfTestPrompts(shapes, draw.Address{}.Rand())
	sampled, err := p.Sampler.Generate(t.Context(), e.state, prompts)
	require.NoError(t, err)
	for _, row := range sampled.Tokens {
		require.LessOrEqual(t, len(row), selfTestTokens)
		require.Equal(t, prompts.Stop[0], row[len(row)-1])
	}
	begin = time.Now()
	require.NoError(t, w.selfTest(t.Context(), r.Run, true))
	t.Logf("%s of %s to restore", time.Since(begin), all)
	done(&err)

	for part, what := range []string{"a generation gave", "an update gave", "an update of the critic gave"} {
		for _, p := range e.programs {
			p.tested = false
		}
		e.draining.Store(false)
		asked, differs = 0, part+1
		_, err = restore()
		require.ErrorContains(t, err, what)
		require.Equal(t, activities.KindDeviceFailed, run.KindOf(err))
		require.Equal(t, Refused, (<-endings).Cause)
	}
	require.Nil(t, e.state)
}

// refusesWhatDiffers has a device test itself for a run with a model beside the policy: once for its programs, and it is refused
// before the run begins if the test of that model, the third, comes out otherwise the second time. what names that test. passed looks
// at the engine that has passed.
func refusesWhatDiffers(t *testing.T, document []byte, what string, passed func(*Engine)) {
	t.Helper()
	e, endings := ownEngine(t, model.DeviceOptions{})
	e.trusted = false
	r := resolved(t, "self-test", document)
	r.Device = &Device{Store: r.store, Engine: e}
	asked, differs := 0, 0
	e.Differ = func(context.Context) bool { asked++; return asked == differs }
	restore := func() error {
		_, err := r.Device.Restore(t.Context(), activities.RestoreInput{Version: activities.Version{Run: r.Run}})
		return err
	}
	require.NoError(t, restore())
	require.Equal(t, 3, asked, "a generation, an update and "+what)
	passed(e)
	r.forget(t)
	require.NoError(t, restore())
	require.Equal(t, 3, asked, "programs are tested once")
	for _, p := range e.programs {
		p.tested = false
	}
	r.forget(t)
	asked, differs = 0, 3
	err := restore()
	require.ErrorContains(t, err, what+" gave")
	require.Equal(t, activities.KindDeviceFailed, run.KindOf(err))
	require.Equal(t, Refused, (<-endings).Cause)
}
