package environments

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func starterModel() Model {
	files := starter.Files()
	files[model.ConfigFile] = device.StarterConfig(spec.Starter{Layers: 1, HiddenSize: 16, IntermediateSize: 32, Heads: 2, KVHeads: 1}).JSON()
	return Model{Name: "starter", Files: files}
}

func qwenModel(t *testing.T) Model {
	files, err := tokenizer.ReadFolder(filepath.Join("..", "..", "..", "model", "tokenizer", "testdata", "qwen2-tiny"))
	require.NoError(t, err)
	require.Contains(t, files, model.ConfigFile)
	return Model{Name: "qwen2-tiny", Files: files}
}

func TestRate(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		count int
		took  time.Duration
		err   error
		least time.Duration
		want  float64
		fails string
	}{
		{"as long as asked for", 3, time.Second, nil, 2 * time.Second, 3, ""},
		{"at least once", 5, time.Second, nil, 0, 5, ""},
		{"too short for the clock", 1, 0, nil, 0, 1e9, ""},
		{"nothing made", 0, time.Second, nil, 0, 0, "made nothing"},
		{"an error", 1, time.Second, broken, 0, 0, "broken"},
	} {
		got, err := work(func() (int, time.Duration, error) { return c.count, c.took, c.err }).rate(t.Context(), c.least)
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		require.InDelta(t, c.want, got, 1e-6*c.want, c.name)
	}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := work(func() (int, time.Duration, error) { return 1, 0, nil }).rate(done, time.Hour)
	require.ErrorIs(t, err, context.Canceled)
}

func TestRateOf(t *testing.T) {
	for _, c := range []struct {
		section, name string
		here, python  []float64
		want          Rate
	}{
		{"generation", "bandit", []float64{4, 2, 3}, nil, Rate{Name: "bandit", PerSecond: 3}},
		{"steps", lakes, []float64{194_000}, []float64{97_000, 1, 200_000},
			Rate{Name: lakes, PerSecond: 194_000, Python: 97_000, Ratio: 2, Recorded: 194_000, RecordedRatio: 1}},
		{"generation", roomsLarge, []float64{25}, nil, Rate{Name: roomsLarge, PerSecond: 25, Recorded: 12.5, RecordedRatio: 2}},
		{"replays", roomsSimple, nil, nil, Rate{Name: roomsSimple}},
	} {
		require.Equal(t, c.want, rateOf(c.section, c.name, c.here, c.python), "%s of %s", c.section, c.name)
	}
}

func TestCalculate(t *testing.T) {
	for _, c := range []struct {
		name string
		in   HostStep
		want HostStep
	}{
		{"half", HostStep{Tokens: 1000, Seconds: 0.5}, HostStep{PolicySeconds: 0.5, Share: 0.5, FastestPolicy: 1000 * 0.05 / (0.95 * 0.5)}},
		{"at the goal", HostStep{Tokens: 19_000, Seconds: 0.5}, HostStep{PolicySeconds: 9.5, Share: 0.05, FastestPolicy: 2000}},
		{"nothing", HostStep{}, HostStep{}},
	} {
		got := c.in
		got.calculate(2000)
		require.Equal(t, 2000.0, got.PolicyRate, c.name)
		require.InDelta(t, c.want.PolicySeconds, got.PolicySeconds, 1e-12, c.name)
		require.InDelta(t, c.want.Share, got.Share, 1e-12, c.name)
		require.InDelta(t, c.want.FastestPolicy, got.FastestPolicy, 1e-9, c.name)
	}
}

func TestMedianStep(t *testing.T) {
	require.Zero(t, medianStep(nil))
	rounds := []HostStep{
		{Members: 2, Seconds: 5, TurnSeconds: []float64{1, 4}},
		{Members: 2, Seconds: 3, TurnSeconds: []float64{2, 1}},
		{Members: 2, Seconds: 9, TurnSeconds: []float64{3, 6}},
	}
	require.Equal(t, HostStep{Members: 2, Seconds: 5, TurnSeconds: []float64{2, 4}}, medianStep(rounds))
	require.Equal(t, []float64{1, 4}, rounds[0].TurnSeconds, "the rounds stay")
}

func TestReplies(t *testing.T) {
	for _, m := range []Model{starterModel(), qwenModel(t)} {
		s, err := newSpeaker(m)
		require.NoError(t, err)
		ids := s.reply(chanceOf(1, 2, 3), ReplyTokens, []string{"Up", "Left"})
		require.Len(t, ids, ReplyTokens)
		reply, truncated := s.protocol.ReadReply(s.tokenizer, s.env, ids)
		require.False(t, truncated, m.Name)
		require.True(t, reply.Formatted, m.Name)
		require.Equal(t, []string{"Up", "Left"}, reply.Actions, m.Name)
		require.NotEqual(t, ids, s.reply(chanceOf(1, 3, 3), ReplyTokens, []string{"Up", "Left"}), "members think of different things")
	}
}

func TestMeasureEnvironments(t *testing.T) {
	var said []string
	got, err := Measure(t.Context(), Options{Models: []Model{starterModel(), qwenModel(t)}, Rounds: 1},
		func(line string) { said = append(said, line) })
	require.NoError(t, err)
	require.Equal(t, []string{"environments, round 1 of 1"}, said)
	require.Equal(t, Python{Missing: "not asked for"}, got.Python)
	require.Len(t, got.Generation, 5)
	require.Len(t, got.Steps, 7)
	require.Len(t, got.Replays, 4)
	for _, rates := range [][]Rate{got.Generation, got.Steps, got.Replays} {
		for _, r := range rates {
			require.Positive(t, r.PerSecond, r.Name)
			require.Zero(t, r.Python, r.Name)
		}
	}
	require.Len(t, got.Text, 2)
	require.Len(t, got.Step, 2)
	for i, name := range []string{"starter", "qwen2-tiny"} {
		text, step := got.Text[i], got.Step[i]
		require.Equal(t, name, text.Tokenizer)
		for _, figure := range []float64{text.Prompts, text.Continuations, text.Replies, text.Parses} {
			require.Positive(t, figure, name)
		}
		require.Greater(t, text.PromptTokens, text.ContinuationTokens, name)
		require.Equal(t, name, step.Tokenizer)
		require.Equal(t, 128, step.Members)
		require.Len(t, step.TurnSeconds, 5)
		require.Greater(t, step.Replies, 4*step.Members, "%s: nearly all members play all turns", name)
		require.Equal(t, step.Replies*ReplyTokens, step.Tokens, name)
		require.Positive(t, step.Share, name)
	}
	_, err = Measure(t.Context(), Options{Models: []Model{{Name: "empty"}}, Rounds: 1}, func(string) {})
	require.ErrorIs(t, err, tokenizer.ErrFiles)
}
