package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/starter"
)

// A run whose prompts have RAGEN's words is repeated and rebuilt as all others, and its
// recorded contexts have these words.
func TestRagenProtocol(t *testing.T) {
	r := exact(t, `rollout.protocol="ragen"`)
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	turns, err := run.ReadTurns(t.Context(), r.store, r.commits[0].Turns)
	require.NoError(t, err)
	require.Contains(t, tok.Decode(turns[0].Generate[0].PromptIDs), "Strictly follow this format.")
}
