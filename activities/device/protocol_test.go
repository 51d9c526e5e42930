package device

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/envs/starter"
)

// A run whose prompts have RAGEN's words is repeated and rebuilt as all others, and its
// recorded contexts have these words.
func TestRagenProtocol(t *testing.T) {
	t.Parallel()
	r := exact(t, `rollout.protocol="ragen"`)
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	turns, err := recorded.Turns(t.Context(), r.store, r.commits[0].Turns)
	require.NoError(t, err)
	require.Contains(t, tok.Decode(turns[0].Generate[0].PromptIDs), "Strictly follow this format.")
}

// The start of a run takes a user's templates in: the prompts have their words, and the run is
// rebuilt without the file.
func TestTemplatesOfAUser(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "words.txt")
	require.NoError(t, os.WriteFile(path, []byte("[first]\n{instructions}\n{turn}\n[turn]\n{state}\nYour move, {number}: {format}\n"), 0o644))
	r := begun(t, "templates", tinySpec(t, `rollout.protocol="file:`+path+`"`, "evaluation.every=0", "snapshot.every=5"))
	require.NoError(t, os.Remove(path))
	first := r.iterate(t)
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	turns, err := recorded.Turns(t.Context(), r.store, first.Turns)
	require.NoError(t, err)
	require.Contains(t, tok.Decode(turns[0].Generate[0].PromptIDs), "Your move, 1: <answer> your action </answer>")
	r.rebuilt(t)
}
