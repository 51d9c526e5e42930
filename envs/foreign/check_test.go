package foreign_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/envs/starter"
)

// checked is the check of the stand-in with what change makes of its answers: the problems by part.
func checked(t *testing.T, fault string, instances int, change func(name string, out []byte) []byte) (problems, notes map[string]string) {
	t.Helper()
	server := standin.New(fault, "")
	s, err := foreign.Connect(t.Context(), "guess", nil, func(_ context.Context, name string, input []byte) ([]byte, error) {
		out, err := server.Answer(name, input)
		if err != nil {
			return nil, err
		}
		b, err := json.Marshal(out)
		return change(name, b), err
	})
	require.NoError(t, err)
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	problems, notes = map[string]string{}, map[string]string{}
	_, err = foreign.Check(t.Context(), s, s, foreign.CheckOptions{
		Instances: instances, Tokenizer: tok, Model: "starter",
		Prompts: func(m foreign.Met) (note, problem string) { return strings.Join(m.Actions, " "), m.Widest[0] },
		Report: func(f foreign.Finding) {
			notes[f.Part] = f.Note
			if f.Problem != "" {
				problems[f.Part] = f.Problem
			}
		},
	})
	require.NoError(t, err)
	return problems, notes
}

// Widths are compared in tokens: a text with as many bytes as the widest may have more of them. A run
// would pause, so the check fails.
func TestCheckCountsTokens(t *testing.T) {
	const part = "no observation is wider than widest"
	problems, notes := checked(t, standin.None, 16, same)
	require.NotContains(t, problems, part)
	require.Regexp(t, `^14 tokens of starter are allowed, the widest met has 14 and 6 bytes: a margin of 0; 4 different observations$`, notes[part])
	require.Equal(t, "256 episodes at random and 512 declared choices", notes["more episodes"])
	require.Equal(t, "1 2 3 4 5 6 7 8 9", notes["prompts and replies have room"])
	require.Equal(t, "Found.", problems["prompts and replies have room"])

	problems, notes = checked(t, standin.None, 16, func(name string, out []byte) []byte {
		if name != foreign.CallDescribe {
			return out
		}
		return bytes.Replace(out, []byte(`"widest":["Guess.","Higher.","Lower."]`), []byte(`"widest":["the the","the the","a longer text of words: the wall"]`), 1)
	})
	require.NotContains(t, problems, part, "a wide text leaves a margin")
	require.Contains(t, notes[part], "a margin of ")

	problems, _ = checked(t, standin.None, 16, func(name string, out []byte) []byte {
		if name != foreign.CallDescribe {
			return out
		}
		require.Contains(t, string(out), `["Guess.","Higher.","Lower."]`)
		return bytes.Replace(out, []byte(`["Guess.","Higher.","Lower."]`), []byte(`[" the the"]`), 1)
	})
	require.Contains(t, problems[part], `the observation "Found." has 14 tokens, the widest of the description 11: add it to widest`)
	require.Contains(t, problems[part], "a run pauses")
}

// The members of a group share their prompt: a run ends where they begin differently, so the check fails.
func TestCheckComparesBeginnings(t *testing.T) {
	problems, _ := checked(t, standin.Uneven, 16, same)
	require.Contains(t, problems["a group's episodes begin alike, and none has ended at its beginning"],
		`the beginning of an episode must come from the instance alone`)
}

// What breaks in an episode that was not recorded is found too.
func TestCheckPlaysMore(t *testing.T) {
	problems, _ := checked(t, standin.Broken, 1, same)
	require.NotContains(t, problems, "play")
	require.Contains(t, problems["more episodes"], "division by zero")
}

// same changes nothing.
func same(_ string, out []byte) []byte { return out }
