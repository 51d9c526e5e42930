package model

import (
	"errors"
	"fmt"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/xla/failure"
)

// Errors and panics of libraries have a kind, which is named once, and those of ours stay.
func TestTrySortsErrors(t *testing.T) {
	for text, want := range map[string]error{
		"PJRT error (code=8): RESOURCE_EXHAUSTED: Out of memory":            failure.ErrOutOfMemory,
		"PJRT error (code=14): UNAVAILABLE: the device is gone":             failure.ErrDeviceFailed,
		"PJRT error (code=2): UNKNOWN: something":                           failure.ErrDeviceUnclear,
		"PJRT error (code=3): INVALID_ARGUMENT: buffer 3 has another shape": nil,
		"upload 3 values as [4]":                                            nil,
	} {
		cause := errors.New(text)
		err := try("run program p", func() error { return fmt.Errorf("backend: %w", cause) })
		panicked := try("run program p", func() error { panic(cause) })
		require.ErrorIs(t, err, cause, text)
		require.ErrorIs(t, panicked, cause, text)
		for _, kind := range []error{failure.ErrOutOfMemory, failure.ErrDeviceFailed, failure.ErrDeviceUnclear} {
			require.Equal(t, kind == want, errors.Is(err, kind), "%s: %v", text, kind)
			require.Equal(t, kind == want, errors.Is(panicked, kind), "%s: %v", text, kind)
		}
		again := try("update", func() error { return err })
		require.Equal(t, "update: "+err.Error(), again.Error(), "the kind is named once")
	}
	for _, kind := range []error{ErrInput, ErrClosed, ErrFreed} {
		err := fmt.Errorf("%w: PJRT error (code=13): INTERNAL", kind)
		require.EqualError(t, try("x", func() error { return err }), "x: "+err.Error())
	}
}

// The plugin itself says that memory is exhausted as the table expects.
func TestPluginIsOutOfMemory(t *testing.T) {
	d := testDevice(t)
	const side = 1 << 23 // side² float32 are 256 TiB
	p := &program{name: "huge", device: d, build: func(in *inputs) []*graph.Node {
		x := in.next(dtypes.Float32)
		wide := graph.BroadcastToShape(x, shapes.Make(dtypes.Float32, side, side))
		return []*graph.Node{wide}
	}}
	d.run.Lock()
	defer d.run.Unlock()
	b, err := upload(d, 0, []float32{1})
	require.NoError(t, err)
	out, err := p.call(b)
	if err == nil {
		_, err = download[float32](out[0], 1)
	}
	t.Log(err)
	require.ErrorIs(t, err, failure.ErrOutOfMemory)
}

// The device counts what it ends; while the host compiles, it counts by itself.
func TestProgress(t *testing.T) {
	d := testDevice(t)
	before := d.Progress()
	require.Equal(t, before, d.Progress())
	seen := before
	p := &program{name: "watched", device: d, build: func(in *inputs) []*graph.Node {
		seen = d.Progress()
		return []*graph.Node{graph.Neg(in.next(dtypes.Float32))}
	}}
	d.run.Lock()
	defer d.run.Unlock()
	b, err := upload(d, 0, []float32{1})
	require.NoError(t, err)
	require.Equal(t, before+1, d.Progress())
	out, err := p.call(b)
	require.NoError(t, err)
	require.Equal(t, before+2, seen, "while it is lowered")
	require.Equal(t, before+3, d.Progress(), "it has run")
	free(append(out, b))
	p.finalize()
}
