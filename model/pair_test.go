package model

import (
	"io/fs"
	"maps"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
)

// The fingerprints of policies are those they have always had.
func TestFingerprintsOfPoliciesStay(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	require.Equal(t, "a5b9097c97f308027b6f6245d170fdde", mark(t, s))
	snap := NewSnapshot(tinyParams(tiny()))
	snap.Step = 1<<33 + 5
	snap.M.Values[1][2] = 3
	other, err := p.Upload(snap)
	require.NoError(t, err)
	defer other.Free()
	require.Equal(t, "91a42afca246c43d3e136d45cc7c5e4b", mark(t, other))
	alone, err := PairFingerprint(other, nil)
	require.NoError(t, err)
	require.Equal(t, mark(t, other), alone)
}

func TestPairFingerprintSeesBoth(t *testing.T) {
	q, _ := tinyPrograms(t, tiny())
	p, _, _ := tinyCritic(t)
	seen := map[string]string{}
	for name, change := range map[string]func(policy, critic *Snapshot){
		"nothing":       func(_, _ *Snapshot) {},
		"policy's step": func(s, _ *Snapshot) { s.Step = 1 },
		"critic's step": func(_, c *Snapshot) { c.Step = 1 },
		"critic's last bit": func(_, c *Snapshot) {
			v := c.Params.Values[1]
			v[0] = math.Nextafter32(v[0], 2)
		},
		"the head's bias":        func(_, c *Snapshot) { c.Params.Values[c.Params.Config.valueHead()+1][0] = 1 },
		"policy's first moment":  func(s, _ *Snapshot) { s.M.Values[0][0] = 1 },
		"critic's first moment":  func(_, c *Snapshot) { c.M.Values[0][0] = 1 },
		"critic's second moment": func(_, c *Snapshot) { c.V.Values[0][0] = 1 },
		"embeddings swapped": func(s, c *Snapshot) {
			s.Params.Values[0][5]++
			s.Params.Values[0], c.Params.Values[0] = c.Params.Values[0], s.Params.Values[0]
		},
		"embeddings not swapped": func(s, _ *Snapshot) { s.Params.Values[0][5]++ },
	} {
		// Each has numbers of its own: NewCritic shares.
		policy, critic := NewSnapshot(tinyParams(tiny())), NewSnapshot(NewCritic(tinyParams(tiny())))
		change(&policy, &critic)
		s, err := q.Upload(policy)
		require.NoError(t, err)
		c, err := p.Upload(critic)
		require.NoError(t, err)
		pair, err := PairFingerprint(s, c)
		require.NoError(t, err)
		require.Len(t, pair, 32)
		require.NotEqual(t, mark(t, s), pair)
		require.NotEqual(t, mark(t, c), pair)
		require.Empty(t, seen[pair], name)
		seen[pair] = name
		s.Free()
		c.Free()
		_, err = PairFingerprint(s, c)
		require.ErrorIs(t, err, ErrFreed)
	}
}

func TestSnapshotOfAPairKeepsBits(t *testing.T) {
	q, policy := tinyPrograms(t, tiny())
	p, s, _ := tinyCritic(t)
	next, _, err := q.Learner.Update(bg, twin(t, q, policy), []batch.MicroBatch{scoredBatch(t, q, policy, 1, 1)}, testSettings())
	require.NoError(t, err)
	defer next.Free()
	critic, _, err := p.Learner.CriticUpdate(bg, twin(t, p, s), []batch.MicroBatch{criticBatch(t, p, s, 1)}, criticSettings())
	require.NoError(t, err)
	defer critic.Free()
	want, err := PairFingerprint(next, critic)
	require.NoError(t, err)

	files := map[string][]byte{}
	for _, state := range []*State{next, critic} {
		maps.Copy(files, stored(t, state))
	}
	require.Len(t, files, 5)
	back, err := readSnapshot(files)
	require.NoError(t, err)
	backCritic, err := readCritic(files)
	require.NoError(t, err)
	require.Equal(t, int64(1), backCritic.Step)
	one, err := q.Upload(back)
	require.NoError(t, err)
	defer one.Free()
	two, err := p.Upload(backCritic)
	require.NoError(t, err)
	defer two.Free()
	got, err := PairFingerprint(one, two)
	require.NoError(t, err)
	require.Equal(t, want, got)

	delete(files, CriticOptimizerFile)
	early, err := readCritic(files)
	require.NoError(t, err)
	require.Equal(t, NewSnapshot(backCritic.Params), early)
	other := maps.Clone(files)
	other[CriticFile] = other[WeightsFile]
	_, err = readCritic(other)
	require.ErrorIs(t, err, ErrTensors)
	delete(other, CriticFile)
	_, err = readCritic(other)
	require.ErrorIs(t, err, fs.ErrNotExist)
	delete(files, ConfigFile)
	_, err = readCritic(files)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func FuzzReadCritic(f *testing.F) {
	c := tiny()
	c.VocabSize, c.Layers = 3, 1
	files := filesOf(f, NewSnapshot(NewCritic(tinyParams(c))))
	config, weights, optimizer := c.JSON(), files[CriticFile], files[CriticOptimizerFile]
	f.Add(config, weights, optimizer)
	f.Add(config, weights[:len(weights)-1], optimizer)
	f.Add(config, weights, weights)
	f.Add([]byte("{}"), weights, []byte{})
	f.Fuzz(func(t *testing.T, config, weights, optimizer []byte) {
		s, err := readCritic(map[string][]byte{ConfigFile: config, CriticFile: weights, CriticOptimizerFile: optimizer})
		if err != nil {
			return
		}
		require.NoError(t, s.check())
		require.True(t, s.Params.Config.ValueHead)
	})
}

// The critic has an untied policy's weights without the head.
func TestNewCritic(t *testing.T) {
	for _, tied := range []bool{true, false} {
		c := tiny()
		c.TieEmbeddings = tied
		policy := tinyParams(c)
		critic := NewCritic(policy)
		require.NoError(t, critic.check())
		h := c.Critic().valueHead()
		require.Equal(t, policy.Values[:h], critic.Values[:h])
		require.Equal(t, [][]float32{make([]float32, c.HiddenSize), {0}}, critic.Values[h:])
		require.Equal(t, c.Critic().shape(), tiny().Critic().shape())
	}
}

// A reference is a policy that scores and nothing else.
func TestParametersAlone(t *testing.T) {
	p, s := tinyPrograms(t, tiny())
	reference, err := p.UploadParams(tinyParams(tiny()))
	require.NoError(t, err)
	defer reference.Free()
	b := scoredBatch(t, p, s, 1, 0.7)
	want, entropy, err := p.Scorer.Score(bg, s, b, 0.7)
	require.NoError(t, err)
	got, gotEntropy, err := p.Scorer.Score(bg, reference, b, 0.7)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, entropy, gotEntropy)
	in := GenerateInput{Prompts: randomRows(1, p.c, 4, 5)}
	x, err := p.Sampler.Generate(bg, s, in)
	require.NoError(t, err)
	y, err := p.Sampler.Generate(bg, reference, in)
	require.NoError(t, err)
	require.Equal(t, x, y)
	require.NotEqual(t, mark(t, s), mark(t, reference))

	_, _, err = p.Learner.Update(bg, reference, []batch.MicroBatch{b}, testSettings())
	require.ErrorIs(t, err, ErrInput)
	require.ErrorContains(t, err, "no moments")
	_, err = reference.Download()
	require.ErrorIs(t, err, ErrInput)
	broken := tinyParams(tiny())
	broken.Values = broken.Values[1:]
	_, err = p.UploadParams(broken)
	require.ErrorIs(t, err, ErrInput)
	_, err = p.UploadParams(NewCritic(tinyParams(tiny())))
	require.ErrorIs(t, err, ErrInput)
	reference.Free()
	_, _, err = p.Scorer.Score(bg, reference, b, 0.7)
	require.ErrorIs(t, err, ErrFreed)
}
