package model

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomlx/go-xla/pjrt"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

// A micro-batch is computed by the device of its shard, in the order of its shard, and each once.
func TestOrderOfShards(t *testing.T) {
	for _, c := range []struct {
		of, devices, batches int
		want                 [][][]int // rounds, columns, micro-batches by device
	}{
		{1, 4, 3, [][][]int{{{0}, {1}, {2}}}},
		{4, 1, 6, [][][]int{{{0}, {4}}, {{1}, {5}}, {{2}}, {{3}}}},
		{4, 2, 7, [][][]int{{{0, 1}, {4, 5}}, {{2, 3}, {6}}}},
		{4, 3, 9, [][][]int{{{0, 1, 2}, {4, 5, 6}, {8}}, {{3}, {7}}}},
		{8, 4, 3, [][][]int{{{0, 1, 2}}}},
	} {
		order := shards{of: c.of, devices: c.devices, batches: c.batches}
		var got [][][]int
		for done, round := 0, [][]int(nil); done < c.batches; {
			round = append(round, order.next())
			done += len(order.next())
			if order.advance() {
				got, round = append(got, round), nil
			}
		}
		require.Equal(t, c.want, got, "%+v", c)
	}
}

// An update in shards has the same bits and metrics on 1, 2, 3 and 4 devices, for any number of
// micro-batches, also where one has nothing to learn from: of a policy, of adapters and of a
// critic. Nothing is left on the devices.
func TestShardsGiveTheSameBits(t *testing.T) {
	const of = 4
	programs := filepath.Join(t.TempDir(), "programs")
	sh := Shapes{MicroBatch: 3, Sequence: 7, Sharded: true}
	type end struct {
		state   string
		metrics any
	}
	var want []end
	var trained Snapshot
	for n := 1; n <= 4; n++ {
		d := openDevices(t, programs, DeviceOptions{VirtualDevices: n})
		before := pjrt.BuffersAlive()
		p, err := d.Programs(tiny(), nil, sh)
		require.NoError(t, err)
		q, err := d.Programs(tiny().Critic(), nil, sh)
		require.NoError(t, err)
		var batches []batch.MicroBatch
		for i := range 9 {
			b := batchOf(randomRows(uint64(i), p.c, 3, 7), float32(i)-3.3)
			b.Columns[batch.Returns], b.Columns[batch.OldValues] = b.Columns[batch.Advantages], b.Columns[batch.OldLogProbs]
			batches = append(batches, b)
		}
		none := batches[0]
		none.RowWeights = []float32{0, 0, 0}
		var got []end
		for _, minibatch := range [][]batch.MicroBatch{
			batches[:1], batches[:3], batches[:8], batches, {batches[0], none, batches[1], {}, batches[2], none, batches[3]}, {none, batches[1]},
		} {
			s, err := p.NewState(tinyParams(tiny()))
			require.NoError(t, err)
			g, err := p.Learner.Gradient(minibatch, testSettings())
			require.NoError(t, err)
			s, m := sharded(t, g, of, s)
			got = append(got, end{mark(t, s), m})
			s.Free()
			v, err := q.NewState(trainedCritic())
			require.NoError(t, err)
			c, err := q.Learner.CriticGradient(minibatch, criticSettings())
			require.NoError(t, err)
			v, of := sharded(t, c, of, v)
			got = append(got, end{mark(t, v), of})
			v.Free()
		}
		got = append(got, end{shardedAdapters(t, d, sh, batches), nil})
		s, err := p.NewState(tinyParams(tiny()))
		require.NoError(t, err)
		for range 2 {
			g, err := p.Learner.Gradient(batches, testSettings())
			require.NoError(t, err)
			s, _ = sharded(t, g, of, s)
			requireOwned(t, s)
		}
		read, err := s.Download()
		require.NoError(t, err)
		if n == 1 {
			trained = read
		}
		require.Equal(t, trained, read, "%d devices", n)
		loaded, _, err := p.LoadVersion(trained.source())
		require.NoError(t, err)
		requireOwned(t, loaded)
		require.Equal(t, mark(t, s), mark(t, loaded), "%d devices", n)
		loaded.Free()
		s.Free()
		p.Free()
		q.Free()
		require.LessOrEqual(t, pjrt.BuffersAlive(), before)
		if n == 1 {
			want = got
		}
		require.Equal(t, want, got, "%d devices", n)
	}
}

// shardedAdapters trains adapters in shards and gives their fingerprint.
func shardedAdapters(t *testing.T, d *Device, sh Shapes, batches []batch.MicroBatch) string {
	t.Helper()
	c := tinyLoRA()
	p, err := d.Programs(c, nil, sh)
	require.NoError(t, err)
	defer p.Free()
	base, err := p.LoadBase(tinyParams(c.Base()).source())
	require.NoError(t, err)
	defer base.Free()
	s, err := p.Load(tinyAdapters(c).source().Over(base))
	require.NoError(t, err)
	defer func() { s.Free() }()
	for range 2 {
		g, err := p.Learner.Gradient(batches, testSettings())
		require.NoError(t, err)
		s, _ = sharded(t, g, 4, s)
		requireOwned(t, s)
	}
	return mark(t, s)
}

// requireOwned requires that the weights and moments of each tensor are on its owner, and that the
// owners have about equally many numbers.
func requireOwned(t *testing.T, s *State) {
	t.Helper()
	has, largest := make([]int, s.device.Count()), 0
	for i, ts := range s.c.Tensors() {
		has[s.owner[i]] += ts.Elements()
		largest = max(largest, ts.Elements())
		for p := range s.parts() {
			on, err := s.buffers(p)[i].DeviceNum()
			require.NoError(t, err)
			require.Equal(t, s.device.numbers[s.owner[i]], on, "part %d of %s", p, ts.Name)
		}
	}
	require.LessOrEqual(t, slices.Max(has)-slices.Min(has), largest)
}

// Tensors are dealt by size, and their order decides among equals.
func TestOwners(t *testing.T) {
	var tensors []TensorShape
	for _, n := range []int{4, 10, 4, 6, 1} {
		tensors = append(tensors, TensorShape{Shape: []int{n}})
	}
	require.Equal(t, []int{0, 0, 0, 0, 0}, owners(tensors, bundles(tensors, 1), 1))
	require.Equal(t, []int{1, 0, 0, 1, 1}, owners(tensors, bundles(tensors, 1), 2))
	require.Equal(t, []int{2, 0, 2, 1, 1}, owners(tensors, bundles(tensors, 1), 3))
	require.Equal(t, []int{2, 0, 3, 1, 4}, owners(tensors, bundles(tensors, 1), 6), "the sixth has none")
}

// sharded makes a step in shards.
func sharded[M any](t *testing.T, g *Gradient[M], of int, s *State) (*State, M) {
	t.Helper()
	defer g.Free()
	require.NoError(t, g.Shard(of))
	for g.Left() > 0 {
		require.NoError(t, g.Add(bg, s))
	}
	next, m, err := g.Apply(s)
	require.NoError(t, err)
	return next, m
}

// One shard is the order without shards. The largest ratio is the largest of the shards, and the other
// metrics are sums, so they agree up to rounding.
func TestShardsAddUp(t *testing.T) {
	sh := tinyShapes
	sh.Sharded = true
	p, err := testDevice(t).Programs(tiny(), nil, sh)
	require.NoError(t, err)
	defer p.Free()
	s, err := p.NewState(tinyParams(tiny()))
	require.NoError(t, err)
	defer s.Free()
	var batches []batch.MicroBatch
	for i := range 5 {
		b := scoredBatch(t, p, s, uint64(i), 1)
		b.Columns[batch.OldLogProbs][0][3] += 0.1 * float32(i%3)
		batches = append(batches, b)
	}
	whole, want, err := p.Learner.Update(bg, twin(t, p, s), batches, testSettings())
	require.NoError(t, err)
	defer whole.Free()
	for _, of := range []int{1, 2, 3, 8} {
		g, err := p.Learner.Gradient(batches, testSettings())
		require.NoError(t, err)
		next, got := sharded(t, g, of, twin(t, p, s))
		defer next.Free()
		if of == 1 {
			require.Equal(t, mark(t, whole), mark(t, next))
			require.Equal(t, want, got)
			continue
		}
		require.Equal(t, want.RatioMax, got.RatioMax)
		require.InEpsilon(t, want.GradNorm, got.GradNorm, 1e-5)
		require.InDelta(t, want.PolicyLoss, got.PolicyLoss, 1e-6)
		require.InEpsilon(t, want.Entropy, got.Entropy, 1e-5)
		require.InDelta(t, want.ClipFraction, got.ClipFraction, 1e-6)
		require.InDelta(t, want.ApproxKL, got.ApproxKL, 1e-6)
	}

	g, err := p.Learner.Gradient(batches, testSettings())
	require.NoError(t, err)
	defer g.Free()
	require.ErrorIs(t, g.Shard(0), ErrInput)
	require.NoError(t, g.Add(bg, s))
	require.ErrorContains(t, g.Shard(2), "1 micro-batches were added before")
	plain, _ := tinyPrograms(t, tiny())
	g, err = plain.Learner.Gradient(batches, testSettings())
	require.NoError(t, err)
	defer g.Free()
	require.ErrorContains(t, g.Shard(2), "prepared without Sharded")
}
