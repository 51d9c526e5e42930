package model

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

// failing fails the n-th execution of a program of the kind from now on, by f.
func failing(t *testing.T, p *Programs, k kind, n int, f func() error) {
	t.Helper()
	of := map[string]bool{}
	for _, prog := range p.progs[p.named(k)] {
		of[prog.name] = true
	}
	p.device.Before = func(name string) error {
		if !of[name] {
			return nil
		}
		if n--; n == -1 {
			return f()
		}
		return nil
	}
	t.Cleanup(func() { p.device.Before = nil })
}

// An update consumes its state, also when it is skipped.
func TestUpdateConsumesItsState(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	b := scoredBatch(t, p, s, 1, 1)
	before := mark(t, s)
	whole := b.Columns[batch.Advantages]
	b.Columns[batch.Advantages] = [][]float32{{0, 0, 0, 3e38, 3e38, 3e38, 3e38}, whole[1], whole[2]}
	same, m, err := p.Learner.Update(bg, s, []batch.MicroBatch{b}, testSettings())
	require.NoError(t, err)
	require.True(t, m.Skipped)
	require.Equal(t, before, mark(t, same))
	b.Columns[batch.Advantages] = whole
	next, m, err := p.Learner.Update(bg, same, []batch.MicroBatch{b}, testSettings())
	require.NoError(t, err)
	require.False(t, m.Skipped)
	for consumed, by := range map[*State]string{s: "the update to step 1, which was skipped", same: "the update to step 1"} {
		_, print := consumed.Fingerprint()
		_, download := consumed.Download()
		_, generate := p.Sampler.Generate(bg, consumed, GenerateInput{Prompts: [][]int32{{1, 2}}})
		_, _, score := p.Scorer.Score(bg, consumed, b, 1)
		_, _, update := p.Learner.Update(bg, consumed, []batch.MicroBatch{b}, testSettings())
		for _, err := range []error{print, download, generate, score, update} {
			require.ErrorIs(t, err, ErrConsumed)
			require.ErrorContains(t, err, "state was consumed by "+by)
		}
		consumed.Free()
		consumed.Free()
	}
	require.Len(t, mark(t, next), 32, "what a consumed state gave away is not freed with it")
	next.Free()
	_, err = next.Fingerprint()
	require.ErrorIs(t, err, ErrFreed)
}

// An update that fails before it writes leaves its state; one that fails while it writes
// leaves none, whatever the tensor, and nothing on the device.
func TestUpdateThatFails(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	b := scoredBatch(t, p, s, 1, 1)
	q, c, _ := tinyCritic(t)
	d := criticBatch(t, q, c, 1)
	injected := errors.New("injected")
	fail := func() error { return injected }
	for _, of := range []struct {
		role   string
		p      *Programs
		state  *State
		update func(*State) (*State, error)
	}{
		{"policy", p, s, func(s *State) (*State, error) {
			next, _, err := p.Learner.Update(bg, s, []batch.MicroBatch{b, b}, testSettings())
			return next, err
		}},
		{"critic", q, c, func(s *State) (*State, error) {
			next, _, err := q.Learner.CriticUpdate(bg, s, []batch.MicroBatch{d, d}, criticSettings())
			return next, err
		}},
	} {
		next, err := of.update(twin(t, of.p, of.state))
		require.NoError(t, err)
		want := mark(t, next)
		next.Free()
		tensors := len(of.p.c.Tensors())

		for _, x := range []struct {
			k kind
			n int
		}{{kindForward, 0}, {kindForward, 1}, {kindFill, 1}, {kindBackward, 0}, {kindBackward, 1}, {kindSquare, 0}, {kindSquare, tensors - 1}} {
			t.Run(fmt.Sprintf("%s/%s/%d", of.role, x.k, x.n), func(t *testing.T) {
				own := twin(t, of.p, of.state)
				alive := pjrt.BuffersAlive()
				failing(t, of.p, x.k, x.n, fail)
				_, err := of.update(own)
				require.ErrorIs(t, err, injected)
				require.NotErrorIs(t, err, ErrConsumed)
				require.LessOrEqual(t, pjrt.BuffersAlive(), alive)
				next, err := of.update(own) // it fails once
				require.NoError(t, err)
				defer next.Free()
				require.Equal(t, want, mark(t, next))
			})
		}
		for name, f := range map[string]func() error{"error": fail, "panic": func() error { panic(injected) }} {
			for _, n := range []int{0, 1, tensors - 1} {
				t.Run(fmt.Sprintf("%s/apply/%d/%s", of.role, n, name), func(t *testing.T) {
					alive := pjrt.BuffersAlive()
					own := twin(t, of.p, of.state)
					failing(t, of.p, kindApply, n, f)
					_, err := of.update(own)
					require.ErrorIs(t, err, injected)
					require.ErrorIs(t, err, ErrConsumed)
					require.ErrorContains(t, err, fmt.Sprintf("tensor %d of %d", n, tensors))
					require.LessOrEqual(t, pjrt.BuffersAlive(), alive)
					_, err = of.update(own)
					require.ErrorIs(t, err, ErrConsumed)
				})
			}
		}
	}
}

// What an update needs beside its state and activations is 4 bytes a parameter, for the sums
// of its gradients, and less than the memory of two tensors: 16 bytes a parameter in all. By
// XLA's own count, programs that write in place need no more memory than their inputs.
func TestUpdateNeedsNoSecondState(t *testing.T) {
	c := wideConfig()
	c.Layers = 2
	for _, c := range []Config{c, c.Critic()} {
		p, err := testDevice(t).Programs(c, nil, Shapes{MicroBatch: 1, Sequence: 4})
		require.NoError(t, err)
		defer p.Free()
		require.NoError(t, p.Compile(bg, nil))
		parameters, largest := 4*c.Parameters(), int64(0)
		for i, ts := range c.Tensors() {
			tensor := int64(4 * ts.Elements())
			largest = max(largest, tensor)
			m := memoryOf(t, p.progs[p.named(kindApply)][i].exec)
			require.GreaterOrEqual(t, m.Inputs, 4*tensor)
			require.LessOrEqual(t, m.Outputs-m.Aliases+m.Temporary, int64(4096), "apply %s", ts.Name)
			m = memoryOf(t, p.progs[p.named(kindSquare)][i].exec)
			require.LessOrEqual(t, m.Outputs-m.Aliases+m.Temporary, tensor/16+4096, "square %s", ts.Name)
			m = memoryOf(t, p.progs[p.named(kindFill)][i].exec)
			require.LessOrEqual(t, m.Temporary, int64(4096), "fill %s", ts.Name)
			m = memoryOf(t, p.progs[p.named(kindFingerprint)][i].exec)
			require.LessOrEqual(t, m.Temporary, tensor/128+4096*5*lanes, "fingerprint %s", ts.Name)
		}
		prog, err := p.program(kindBackward)
		require.NoError(t, err)
		m := memoryOf(t, prog.exec)
		require.GreaterOrEqual(t, m.Inputs, 2*parameters, "parameters and sums")
		require.GreaterOrEqual(t, m.Aliases, parameters)
		require.Less(t, m.Outputs-m.Aliases+m.Temporary, 2*largest, "backward")
	}
}

// A probe has weights and zero moments, the same each time, and zeros that are made on the
// device are those of the host.
func TestStatesMadeOnTheDevice(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	zero, err := p.Upload(NewSnapshot(tinyParams(tiny())))
	require.NoError(t, err)
	defer zero.Free()
	require.Equal(t, mark(t, zero), mark(t, s))

	one, err := p.Probe()
	require.NoError(t, err)
	defer one.Free()
	two, err := p.Probe()
	require.NoError(t, err)
	defer two.Free()
	require.Equal(t, mark(t, one), mark(t, two))
	snap, err := one.Download()
	require.NoError(t, err)
	require.Equal(t, zeroParams(tiny()), snap.M)
	require.Equal(t, zeroParams(tiny()), snap.V)
	require.Zero(t, snap.Step)
	for i, ts := range tiny().Tensors() {
		least, most := float32(math.Inf(1)), float32(math.Inf(-1))
		for _, x := range snap.Params.Values[i] {
			least, most = min(least, x), max(most, x)
		}
		if strings.HasSuffix(ts.Name, "norm.weight") {
			require.Equal(t, []float32{1, 1}, []float32{least, most}, ts.Name)
			continue
		}
		require.True(t, -probeNoise <= least && least < most && most <= probeNoise, "%s from %v to %v", ts.Name, least, most)
	}
	next, m, err := p.Learner.Update(bg, one, []batch.MicroBatch{scoredBatch(t, p, one, 1, 1)}, testSettings())
	require.NoError(t, err)
	require.False(t, m.Skipped)
	next.Free()
}
