package model

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

// programsAlive counts the device's programs, and the compiled ones among them.
func programsAlive(d *Device) (known, compiled int) {
	d.run.Lock()
	defer d.run.Unlock()
	for _, p := range d.programs {
		p.mu.Lock()
		if p.exec != nil {
			compiled++
		}
		p.mu.Unlock()
	}
	return len(d.programs), compiled
}

// ownedBy counts the programs that only the state uses.
func ownedBy(s *State) (owned int) {
	uses := map[*program]int{}
	for _, p := range s.fingerprint {
		uses[p]++
	}
	for p, n := range uses {
		if p.users == n {
			owned++
		}
	}
	return owned
}

// Compiled programs end with the last that uses them, and those that stay give the
// same bits.
func TestFreedProgramsAreReleased(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	require.NoError(t, p.Compile(bg, nil))
	b := scoredBatch(t, p, s, 1, 1)
	in := GenerateInput{Prompts: randomRows(1, p.c, 6, 5), Uniforms: uniforms(1, 6, 8), Temperature: 1}
	bits := func(p *Programs, s *State) []any {
		out, err := p.Sampler.Generate(bg, s, in)
		require.NoError(t, err)
		logProbs, entropy, err := p.Scorer.Score(bg, s, b, 1)
		require.NoError(t, err)
		next, _, err := p.Learner.Update(bg, twin(t, p, s), []batch.MicroBatch{b}, testSettings())
		require.NoError(t, err)
		defer next.Free()
		return []any{out, logProbs, entropy, mark(t, next)}
	}
	want := bits(p, s)
	known, compiled := programsAlive(p.device)
	for i := range 3 {
		sh := p.Shapes()
		sh.PromptTokens += i + 1
		q, err := p.device.Programs(tiny(), nil, sh)
		require.NoError(t, err)
		require.NoError(t, q.Compile(bg, nil))
		more, _ := programsAlive(p.device)
		require.Equal(t, known+2, more, "prefill and decode of another width")
		q.Free()
		q.Free()
		now, executables := programsAlive(p.device)
		require.Equal(t, known, now)
		require.Equal(t, compiled, executables)
		_, err = q.Sampler.Generate(bg, s, in)
		require.ErrorIs(t, err, ErrInput)
		require.NoError(t, q.Compile(bg, nil), "there is nothing left to compile")
		require.Equal(t, want, bits(p, s))
	}
	now, _ := programsAlive(p.device)
	require.Equal(t, known, now)
}

// Programs that one maker compiled serve the others that share it, and a state keeps the
// program of its fingerprint.
func TestSharedProgramsOutliveTheirMaker(t *testing.T) {
	c := tiny()
	c.IntermediateSize += 8 // of this test alone
	d := testDevice(t)
	known, compiled := programsAlive(d)
	sh := Shapes{MicroBatch: 2, Sequence: 5}
	first, err := d.Programs(c, nil, sh)
	require.NoError(t, err)
	second, err := d.Programs(c, nil, sh)
	require.NoError(t, err)
	require.NoError(t, first.Compile(bg, nil))
	executable := second.progs[kindForward][0].exec
	require.NotNil(t, executable)
	first.Free()
	require.Same(t, executable, second.progs[kindForward][0].exec)
	s, err := second.NewState(tinyParams(c))
	require.NoError(t, err)
	b := batch.MicroBatch{IDs: randomRows(3, c, 2, 5), Lengths: []int32{5, 5}}
	logProbs, _, err := second.Scorer.Score(bg, s, b, 1)
	require.NoError(t, err)
	before := mark(t, s)

	forward := second.progs[kindForward][0]
	second.Free()
	require.ErrorIs(t, forward.compile(), ErrInput, "nobody is left to free it")
	require.Equal(t, before, mark(t, s))
	now, _ := programsAlive(d)
	require.Equal(t, known+ownedBy(s), now, "the state's fingerprint")
	s.Free()
	now, executables := programsAlive(d)
	require.Equal(t, known, now)
	require.Equal(t, compiled, executables)

	again, err := d.Programs(c, nil, sh)
	require.NoError(t, err)
	defer again.Free()
	s, err = again.NewState(tinyParams(c))
	require.NoError(t, err)
	defer s.Free()
	anew, _, err := again.Scorer.Score(bg, s, b, 1)
	require.NoError(t, err)
	require.Equal(t, logProbs, anew)
	require.Equal(t, before, mark(t, s))
}
