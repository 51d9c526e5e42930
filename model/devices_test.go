package model

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

// openDevices opens devices whose compiled programs are in a folder that tests share.
func openDevices(t *testing.T, programs string, o DeviceOptions) *Device {
	t.Helper()
	testDevice(t) // reads XLA's flags first
	o.ProgramCache = programs
	d, err := OpenDevice(o)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// severalDevices are one, two, four and three devices of a CPU.
var severalDevices = []DeviceOptions{{}, {Devices: []int{0, 1}}, {VirtualDevices: 4}, {VirtualDevices: 4, Devices: []int{3, 0, 2}}}

// What passes and micro-batches give does not depend on how many devices there are, before and
// after an update, in bfloat16 and so from copies of the weights. Neither does the fingerprint. Nothing is left on the devices.
func TestDevicesGiveTheSameBits(t *testing.T) {
	type given struct {
		device  Fingerprint
		sampled []GenerateOutput
		scored  [][]Scores
		states  []string
	}
	programs := filepath.Join(t.TempDir(), "programs")
	var want given
	for i, o := range severalDevices {
		d := openDevices(t, programs, o)
		require.Equal(t, []int{1, 2, 4, 3}[i], d.Count())
		before := pjrt.BuffersAlive()
		got := given{device: d.Fingerprint()}
		sh := tinyShapes
		sh.ComputeDtype, sh.ChunkTokens = "bfloat16", 3
		p, err := d.Programs(tiny(), nil, sh)
		require.NoError(t, err)
		s, err := p.NewState(tinyParams(tiny()))
		require.NoError(t, err)
		batches := make([]batch.MicroBatch, 5)
		for b := range batches {
			batches[b] = batchOf(randomRows(uint64(b), p.c, 3, 7), 1)
		}
		for range 2 {
			out, err := p.Sampler.Generate(bg, s, GenerateInput{Prompts: randomRows(1, p.c, 15, 5), Uniforms: uniforms(1, 15, 8), Temperature: 1})
			require.NoError(t, err)
			scores, err := p.Scorer.ScoreAll(bg, s, batches, 1)
			require.NoError(t, err)
			got.sampled, got.scored = append(got.sampled, out), append(got.scored, scores)
			s, _, err = p.Learner.Update(bg, s, batches[:2], testSettings())
			require.NoError(t, err)
			got.states = append(got.states, mark(t, s))
		}
		s.Free()
		p.Free()
		require.LessOrEqual(t, pjrt.BuffersAlive(), before)
		busy := d.Busy()
		require.Len(t, busy, d.Count())
		for k, worked := range busy {
			require.Positive(t, worked, "device %d", k)
		}
		if i == 0 {
			want = got
			continue
		}
		require.Equal(t, want, got, "%d devices", d.Count())
		require.Zero(t, d.Built().Compiled, "programs are compiled once, whatever device runs them")
	}
	require.NotEqual(t, want.sampled[0], want.sampled[1])
}

// The threads of the CPU plugin, on which bits depend, are in the fingerprint. They are those of
// the machine's cores, and at least four, however many virtual devices there are.
func TestThreads(t *testing.T) {
	testDevice(t)
	of := func(threads string, o DeviceOptions) Fingerprint {
		t.Setenv("PJRT_NPROC", threads)
		d, err := OpenDevice(o)
		require.NoError(t, err)
		defer d.Close()
		return d.Fingerprint()
	}
	four := of("4", DeviceOptions{})
	require.Zero(t, four.Threads)
	require.Equal(t, four, of("1", DeviceOptions{VirtualDevices: 4}))
	six := of("6", DeviceOptions{VirtualDevices: 5})
	require.Equal(t, 6, six.Threads)
	require.NotEqual(t, four.ID(), six.ID())
	t.Setenv("PJRT_NPROC", "six")
	_, err := OpenDevice(DeviceOptions{})
	require.ErrorContains(t, err, `PJRT_NPROC is "six"`)
}

// An error on one device ends the work of all, and so does the end of a context. Neither leaves
// anything behind.
func TestDevicesFail(t *testing.T) {
	d := openDevices(t, filepath.Join(t.TempDir(), "programs"), DeviceOptions{VirtualDevices: 2})
	p, err := d.Programs(tiny(), nil, tinyShapes)
	require.NoError(t, err)
	defer p.Free()
	s, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	defer s.Free()
	in := GenerateInput{Prompts: randomRows(1, p.c, 12, 5), Uniforms: uniforms(1, 12, 8), Temperature: 1}
	want, err := p.Sampler.Generate(bg, s, in)
	require.NoError(t, err)
	before := pjrt.BuffersAlive()

	var calls atomic.Int64
	injected := errors.New("injected")
	d.Before = func(program string) error {
		if calls.Add(1) == 3 {
			return injected
		}
		return nil
	}
	_, err = p.Sampler.Generate(bg, s, in)
	require.ErrorIs(t, err, injected)
	require.LessOrEqual(t, calls.Load(), int64(5), "what has begun ends")
	ctx, cancel := context.WithCancel(bg)
	d.Before = func(string) error { cancel(); return nil }
	_, err = p.Sampler.Generate(ctx, s, in)
	require.ErrorIs(t, err, context.Canceled)
	d.Before = nil
	require.LessOrEqual(t, pjrt.BuffersAlive(), before)
	got, err := p.Sampler.Generate(bg, s, in)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// Devices that the plugin does not have, or that are named twice, are refused.
func TestDevicesThatAreNotThere(t *testing.T) {
	testDevice(t)
	for _, x := range []struct {
		o    DeviceOptions
		want string
	}{
		{DeviceOptions{VirtualDevices: 2, Devices: []int{0, 2}}, "device 2 is named, and the plugin has 2, numbered from 0"},
		{DeviceOptions{Devices: []int{1, 0, 1}}, "the devices are [1 0 1]: name each by its number, from 0, and once"},
		{DeviceOptions{Devices: []int{-1}}, "the devices are [-1]"},
		{DeviceOptions{VirtualDevices: -1}, "-1 virtual devices: give from 1 to "},
		{DeviceOptions{VirtualDevices: 6500}, "6500 virtual devices: give from 1 to "},
	} {
		_, err := OpenDevice(x.o)
		require.ErrorIs(t, err, ErrInput)
		require.ErrorContains(t, err, x.want)
	}
	require.ErrorContains(t, DeviceOptions{VirtualDevices: 2}.checkDevices(0), "name GPUs by their numbers with --devices")
	require.Equal(t, pjrt.NamedValuesMap{"visible_devices": []int64{3, 1}}, DeviceOptions{Devices: []int{3, 1}}.clientOptions(true))
}

// Tensors that are made in bundles, by programs that run at once, as on CUDA, have the bits of those
// that are made one after the other: zeros, copies, norms, steps and fingerprints. That holds on
// several devices too.
func TestAbreast(t *testing.T) {
	ends := func(devices, atOnce, bundled int) (of []string) {
		d := openDevices(t, programs, DeviceOptions{VirtualDevices: devices})
		d.atOnce, d.bundled = atOnce, bundled
		p, err := d.Programs(tiny(), nil, Shapes{MicroBatch: 2, Sequence: 6, ComputeDtype: "bfloat16"})
		require.NoError(t, err)
		defer p.Free()
		s, err := p.Probe()
		require.NoError(t, err)
		for range 2 {
			b := scoredBatch(t, p, s, 1, 1)
			next, m, err := p.Learner.Update(bg, s, []batch.MicroBatch{b, b}, testSettings())
			require.NoError(t, err)
			s = next
			require.Positive(t, m.GradNorm)
			print, err := s.Fingerprint()
			require.NoError(t, err)
			sampler, err := p.Sampler.Fingerprint(s)
			require.NoError(t, err)
			of = append(of, print, sampler)
		}
		s.Free()
		return of
	}
	want := ends(1, 1, 1)
	require.NotEqual(t, want[0], want[2])
	require.Equal(t, want, ends(1, 4, 3))
	require.Equal(t, want, ends(2, 4, 3))
}

// Tensors of one shape are bundled, each once.
func TestBundles(t *testing.T) {
	var tensors []TensorShape
	for _, n := range []int{4, 10, 4, 6, 4, 4, 10} {
		tensors = append(tensors, TensorShape{Shape: []int{n}})
	}
	require.Equal(t, []bundle{{0}, {1}, {2}, {3}, {4}, {5}, {6}}, bundles(tensors, 1))
	require.Equal(t, []bundle{{0, 2, 4}, {1, 6}, {3}, {5}}, bundles(tensors, 3))
	require.Equal(t, []int{1, 0, 1, 1, 1, 1, 0}, owners(tensors, bundles(tensors, 3), 2))
}

// Once one has failed, also by a panic, no other begins.
func TestAbreastStops(t *testing.T) {
	broken := errors.New("broken")
	for _, atOnce := range []int{1, 4} {
		var began atomic.Int64
		d := &Device{atOnce: atOnce}
		err := d.abreast("test", 1000, func(i int) error {
			began.Add(1)
			if i == 3 {
				panic(broken)
			}
			return nil
		})
		require.ErrorIs(t, err, broken)
		require.Less(t, began.Load(), int64(1000))
		require.NoError(t, d.abreast("test", 0, nil))
	}
}
