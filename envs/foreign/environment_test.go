package foreign_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/model/draw"
)

// descriptionInOptions is the stand-in's environment with its description in the options.
func descriptionInOptions(t *testing.T) *foreign.Environment {
	t.Helper()
	made, err := envs.New(foreign.Name, []byte(`{"name":"guess","options":{"most":9}}`))
	require.NoError(t, err)
	e := made.(*foreign.Environment)
	_, ok := e.Description()
	require.False(t, ok)
	name, options := e.Server()
	require.Equal(t, "guess", name)
	server, err := foreign.Connect(t.Context(), name, options, standin.Call(standin.None))
	require.NoError(t, err)
	text, err := e.Described(server.Description)
	require.NoError(t, err)
	made, err = envs.New(foreign.Name, text)
	require.NoError(t, err)
	e = made.(*foreign.Environment)
	d, ok := e.Description()
	require.True(t, ok)
	require.Equal(t, server.Description, d)
	return e
}

func TestOptionsOfASpec(t *testing.T) {
	require.NotContains(t, envs.Names(), foreign.Name, "nothing of it can be played here")
	for options, want := range map[string]string{
		`{}`:                              `name: found "", want the name of an environment`,
		`{"name":"Guess it"}`:             `name: found "Guess it", want the name of an environment`,
		`{"name":"guess","options":[]}`:   "options: found [], want an object",
		`{"name":"guess","command":"rm"}`: `command: found "rm", want one of the options name, options, description`,
		`{"name":"guess","description":{"protocol":1}}`: "what the environment answers to EnvDescribe, or no such option",
	} {
		_, err := envs.New(foreign.Name, []byte(options))
		require.ErrorContains(t, err, want)
	}
}

// A recorded episode is what was answered: replayed turn by turn it shows the same, and nothing
// else is legal in it.
func TestRecordedEpisodes(t *testing.T) {
	e := descriptionInOptions(t)
	d, _ := e.Description()
	server := foreign.Described("guess", nil, d, standin.Call(standin.None))
	instance, chance := draw.Address{Purpose: draw.Instance}, draw.Address{Purpose: draw.Chance}
	asked := foreign.Asked{Instance: foreign.Number(instance), Chance: foreign.Number(chance)}
	recording := foreign.NewRecording()
	var turns [][]string
	var rewards []float64
	var shown []string
	for _, next := range [][]string{nil, {"nothing"}, {"9"}, {"1"}, {"5"}} {
		asked.Next = next
		answers, err := server.Play(t.Context(), []foreign.Asked{asked})
		require.NoError(t, err)
		a := answers[0]
		// Before the turn is recorded as done, the episode is played up to it.
		recording.Add(asked.Instance, asked.Chance, a)
		shown = append(shown, a.Observation)
		if next != nil {
			episode, _, err := envs.Replay(e.With(recording), instance, chance, turns)
			require.NoError(t, err)
			played := envs.Protocol{FormatPenalty: -1}.Play(episode, envs.Reply{Actions: next}, 5-len(asked.Played))
			require.Equal(t, a.Invalid, played.Invalid)
			require.Len(t, played.Actions, len(a.Steps))
			require.Equal(t, len(a.Steps) == 0, played.Penalty == -1)
			require.Equal(t, a.Done, played.Done)
			turns, rewards = append(turns, played.Actions), append(rewards, played.Reward)
			for _, s := range a.Steps {
				asked.Played = append(asked.Played, s.Action)
			}
		}
		asked.Chain = a.Chain
		if a.Done {
			break
		}
	}
	recording.Add(asked.Instance, asked.Chance, foreign.Answer{Err: errors.New("broken")})
	var seen []string
	_, played, err := envs.ReplayEach(e.With(recording), instance, chance, turns, func(episode envs.Episode) { seen = append(seen, episode.Observation()) })
	require.NoError(t, err)
	require.Equal(t, shown, seen)
	for i, turn := range played {
		require.Equal(t, rewards[i], turn.Reward)
	}
	_, _, err = envs.Replay(e.With(recording), instance, chance, [][]string{{"3"}})
	require.ErrorIs(t, err, envs.ErrReplay)
	_, _, err = envs.Replay(e.With(foreign.NewRecording()), instance, chance, turns)
	require.ErrorIs(t, err, envs.ErrReplay, "what nobody recorded")
}

// Without a recording there are only imagined episodes, of the widest texts: for widths and for
// transcripts of the form of a reply.
func TestImaginedEpisodes(t *testing.T) {
	e := descriptionInOptions(t)
	require.Len(t, e.Cases(), 3)
	episode := e.Reset(draw.Address{}, draw.Address{})
	require.Contains(t, []string{"Guess.", "Higher.", "Lower."}, episode.Observation())
	require.Len(t, episode.Choices(), 9)
	require.Zero(t, episode.Step("3").Reward)
	require.False(t, episode.Done())
}
