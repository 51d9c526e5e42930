package envs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
)

// forgetful is a corridor that greets at its beginning, or says something at its second
// step: its Cases miss both.
type forgetful struct {
	corridor
	at    int // where it speaks
	words int
}

func (f forgetful) Reset(instance, _ draw.Address) envs.Episode {
	return &speaking{walk: walk{at: int(instance.Group % 2)}, env: f}
}

type speaking struct {
	walk
	env  forgetful
	step int
}

func (s *speaking) Step(action string) envs.Outcome {
	s.step++
	return s.walk.Step(action)
}

func (s *speaking) Observation() string {
	if s.step == s.env.at {
		return "The vault" + strings.Repeat(" is closed", s.env.words)
	}
	return s.walk.Observation()
}

// Random play meets an observation that the Cases have forgotten, and the error names it;
// one for which there is room all the same is no error.
func TestMaxPromptTokensChecksCases(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	for _, at := range []int{0, 2} {
		_, err = envs.MaxPromptTokens(forgetful{at: at, words: 30}, tok, think, 3, 20)
		require.ErrorIs(t, err, envs.ErrCases)
		require.ErrorContains(t, err, `environment corridor shows "The vault is closed is closed`)
		require.ErrorContains(t, err, `Add an episode with this observation to Cases()`)
	}
	want, err := envs.MaxPromptTokens(corridor{}, tok, think, 3, 20)
	require.NoError(t, err)
	got, err := envs.MaxPromptTokens(forgetful{at: 9, words: 30}, tok, think, 3, 20)
	require.NoError(t, err, "it never speaks")
	require.Equal(t, want, got)
}
