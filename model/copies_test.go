package model

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

// halfPrograms are programs in bfloat16.
func halfPrograms(t *testing.T, c Config) *Programs {
	t.Helper()
	sh := tinyShapes
	if c.ValueHead {
		sh = Shapes{MicroBatch: 3, Sequence: 7}
	}
	sh.ComputeDtype = "bfloat16"
	p, err := testDevice(t).Programs(c, nil, sh)
	require.NoError(t, err)
	t.Cleanup(p.Free)
	return p
}

// executions counts those of the programs of a kind, from the call on.
func executions(t *testing.T, p *Programs, k kind) *int {
	t.Helper()
	n := 0
	failing(t, p, k, 1<<30, nil)
	count := p.device.Before
	p.device.Before = func(name string) error {
		for _, prog := range p.progs[p.named(k)].distinct() {
			if prog.name == name {
				n++
			}
		}
		return count(name)
	}
	return &n
}

// In bfloat16 the matrices are copied once after a load and once after an update, whatever is
// computed with them, and also the state's fingerprint does not depend on that. The copies are
// freed before an update writes, and with the state.
func TestOneCopyAnUpdate(t *testing.T) {
	p := halfPrograms(t, tiny())
	alive := pjrt.BuffersAlive()
	s, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	before, held := mark(t, s), pjrt.BuffersAlive()
	matrices := 1 + 7*tiny().Layers
	require.Len(t, p.net.copiedTensors(), matrices)
	copied := executions(t, p, kindCopy)
	in := GenerateInput{Prompts: randomRows(1, tiny(), 4, 5), Greedy: true}
	for n := 1; n <= 3; n++ {
		b := scoredBatch(t, p, s, 1, 1)
		_, err := p.Sampler.Generate(bg, s, in)
		require.NoError(t, err)
		require.Equal(t, n*matrices, *copied)
		require.Equal(t, held+int64(matrices), pjrt.BuffersAlive())
		if n == 1 {
			require.Equal(t, before, mark(t, s))
		}
		failing := p.device.Before
		var least int64
		p.device.Before = func(name string) error {
			if slices.ContainsFunc(p.progs[kindApply], func(prog *program) bool { return prog.name == name }) && least == 0 {
				least = pjrt.BuffersAlive()
			}
			return failing(name)
		}
		next, _, err := p.Learner.Update(bg, s, []batch.MicroBatch{b, b}, testSettings())
		p.device.Before = failing
		require.NoError(t, err)
		require.LessOrEqual(t, least, held+int64(len(tiny().Tensors()))+2, "state, gradients, metrics, and the optimizer's numbers")
		require.Equal(t, n*matrices, *copied)
		require.Equal(t, held, pjrt.BuffersAlive())
		s = next
	}
	require.NotEqual(t, before, mark(t, s))
	b := scoredBatch(t, p, s, 1, 1)
	b.Columns[batch.Advantages] = [][]float32{{0, 0, 0, 3e38, 3e38, 3e38, 3e38}, b.Columns[batch.Advantages][1], b.Columns[batch.Advantages][2]}
	*copied = 0
	same, m, err := p.Learner.Update(bg, s, []batch.MicroBatch{b}, testSettings())
	require.NoError(t, err)
	require.True(t, m.Skipped)
	scoredBatch(t, p, same, 1, 1)
	require.Zero(t, *copied, "an update that was skipped changed nothing")
	same.Free()
	require.LessOrEqual(t, pjrt.BuffersAlive(), alive) // buffers of tests before may be freed meanwhile
}

// What a copy is of: matrices that are trained whole.
func TestWhatIsCopied(t *testing.T) {
	untied := tiny()
	untied.TieEmbeddings = false
	matrices := 7 * tiny().Layers
	for _, test := range []struct {
		name   string
		config Config
		want   int
	}{
		{"tied", tiny(), matrices + 1}, {"untied", untied, matrices + 2}, {"critic", tiny().Critic(), matrices + 1},
		{"adapters", tinyLoRA(), 0}, {"critic's adapters", tinyLoRA().Critic(), 0},
	} {
		require.Len(t, halfPrograms(t, test.config).net.copiedTensors(), test.want, test.name)
		full, err := testDevice(t).Programs(test.config, nil, Shapes{MicroBatch: 3, Sequence: 7})
		require.NoError(t, err)
		require.Empty(t, full.net.copiedTensors(), test.name)
		full.Free()
	}
}

// A copy that fails leaves the state, and no buffer.
func TestCopyThatFails(t *testing.T) {
	p := halfPrograms(t, tiny())
	s, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	defer s.Free()
	before, alive := mark(t, s), pjrt.BuffersAlive()
	injected := errors.New("injected")
	b := batchOf(randomRows(1, p.c, 3, 7), 1)
	for name, f := range map[string]func() error{"error": func() error { return injected }, "panic": func() error { panic(injected) }} {
		for _, n := range []int{0, 1, len(p.net.copiedTensors()) - 1} {
			t.Run(fmt.Sprintf("%d/%s", n, name), func(t *testing.T) {
				failing(t, p, kindCopy, n, f)
				_, _, err := p.Scorer.Score(bg, s, b, 1)
				require.ErrorIs(t, err, injected)
				require.Equal(t, alive, pjrt.BuffersAlive())
				require.Equal(t, before, mark(t, s))
			})
		}
	}
	_, _, err = p.Scorer.Score(bg, s, b, 1)
	require.NoError(t, err)
}

// An update in bfloat16 that fails while it writes leaves nothing on the device.
func TestUpdateThatFailsWithCopies(t *testing.T) {
	p := halfPrograms(t, tiny())
	s, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	defer s.Free()
	b := scoredBatch(t, p, s, 1, 1)
	injected, tensors := errors.New("injected"), len(tiny().Tensors())
	for _, n := range []int{0, 1, tensors - 1} {
		alive := pjrt.BuffersAlive()
		own := twin(t, p, s)
		failing(t, p, kindApply, n, func() error { return injected })
		_, _, err := p.Learner.Update(bg, own, []batch.MicroBatch{b}, testSettings())
		require.ErrorIs(t, err, injected)
		require.ErrorIs(t, err, ErrConsumed)
		require.LessOrEqual(t, pjrt.BuffersAlive(), alive) // buffers of tests before may be freed meanwhile
	}
}

// In bfloat16 a state gives the bits of one whose matrices were rounded before: programs read
// them in no other precision, and the gradients are not rounded.
func TestCopiesAreWhatIsComputedWith(t *testing.T) {
	p := halfPrograms(t, tiny())
	exact := tinyParams(tiny())
	rounded := Params{Config: exact.Config}
	for i, ts := range exact.Config.Tensors() {
		v := slices.Clone(exact.Values[i])
		if len(ts.Shape) == 2 {
			for j, x := range v {
				v[j] = bfloat16.FromFloat32(x).Float32()
			}
			require.NotEqual(t, exact.Values[i], v, ts.Name)
		}
		rounded.Values = append(rounded.Values, v)
	}
	one, err := p.NewState(exact)
	require.NoError(t, err)
	defer one.Free()
	two, err := p.NewState(rounded)
	require.NoError(t, err)
	defer two.Free()
	require.NotEqual(t, mark(t, one), mark(t, two), "a fingerprint is of what is trained")
	in := GenerateInput{Prompts: randomRows(1, tiny(), 4, 5), Greedy: true}
	x, err := p.Sampler.Generate(bg, one, in)
	require.NoError(t, err)
	y, err := p.Sampler.Generate(bg, two, in)
	require.NoError(t, err)
	require.Equal(t, x, y)
	b := scoredBatch(t, p, one, 1, 1)
	require.Equal(t, b, scoredBatch(t, p, two, 1, 1))
	gx, mx := gradients(t, p, one, []batch.MicroBatch{b}, testSettings(), false)
	gy, my := gradients(t, p, two, []batch.MicroBatch{b}, testSettings(), false)
	require.Equal(t, gx, gy)
	require.Equal(t, mx, my)
	fine := false
	for _, v := range gx.Values[0] {
		fine = fine || v != bfloat16.FromFloat32(v).Float32()
	}
	require.True(t, fine, "gradients are float32")
}
