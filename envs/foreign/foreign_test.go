package foreign_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/model/draw"
)

const described = `{"protocol":1,"version":"v","instructions":"Go.","actions":["1","2"],"max_actions":5,"max_actions_per_turn":1,"instances":9,"widest":["Guess."],"replayable":true}`

func TestReadDescription(t *testing.T) {
	d, err := foreign.ReadDescription([]byte(described))
	require.NoError(t, err)
	require.Equal(t, foreign.Description{
		Version: "v", Instructions: "Go.", Actions: []string{"1", "2"}, MaxActions: 5, MaxActionsPerTurn: 1,
		Instances: 9, Widest: []string{"Guess."}, Replayable: true,
	}, d)
	free, err := foreign.ReadDescription([]byte(strings.Replace(described, `["1","2"]`, "null", 1)))
	require.NoError(t, err)
	require.Nil(t, free.Actions)

	for change, wrong := range map[string]string{
		`"protocol":1→"protocol":2`:                         "protocol: found 2; allowed: 1",
		`"version":"v"→"version":""`:                        "version",
		`"version":"v"→"version":"v","version":"w"`:         "a second time",
		`"version":"v"→"Version":"v"`:                       "Version",
		`"max_actions":5→"max_actions":0`:                   "an integer from 1 to 1000",
		`"max_actions":5→"max_actions":5.0`:                 "an integer",
		`"max_actions_per_turn":1→"max_actions_per_turn":6`: "at most max_actions, 5",
		`["1","2"]→["a","A"]`:                               "case ignored",
		`["1","2"]→["a||b"]`:                                "actions[0]",
		`["1","2"]→"12"`:                                    "an array",
		`["Guess."]→[]`:                                     "widest",
		`["Guess."]→["\u0000"]`:                             "U+0000",
		`"replayable":true→"replayable":1`:                  "true or false",
		`{"protocol"→[{"protocol"`:                          "JSON",
		described + `→[]`:                                   "an object with protocol",
		`"Go."→"` + strings.Repeat("x", 65537) + `"`:        "65537 bytes",
	} {
		before, after, _ := strings.Cut(change, "→")
		require.Contains(t, described, before)
		_, err := foreign.ReadDescription([]byte(strings.Replace(described, before, after, 1)))
		require.ErrorIs(t, err, foreign.ErrAnswer, change)
		require.ErrorContains(t, err, wrong, change)
	}
}

// answerOf is an answer to a guess of 1 at the beginning of an episode.
func answerOf() (asked foreign.Asked, out string) {
	asked = foreign.Asked{Instance: 7, Chance: 8, Chain: foreign.Begin("Guess."), Next: []string{"1"}}
	step := foreign.Step{Action: "1", RewardText: "-0.1", Observation: "Higher."}
	chain := foreign.Extend(asked.Chain, step, false, false)
	return asked, `{"version":"v","episodes":[{"instance":"7","chance":"8","observation":"Higher.","choices":null,"steps":[{"action":"1","reward":-0.1,"text":"","effective":true,"observation":"Higher."}],"invalid":0,"done":false,"success":false,"chain":"` + chain + `"}]}`
}

func TestReadAnswers(t *testing.T) {
	d, err := foreign.ReadDescription([]byte(described))
	require.NoError(t, err)
	asked, out := answerOf()
	answers, err := foreign.ReadAnswers([]byte(out), d, []foreign.Asked{asked})
	require.NoError(t, err)
	require.Equal(t, -0.1, answers[0].Steps[0].Reward)
	require.Equal(t, "Higher.", answers[0].Observation)

	for change, kind := range map[string]error{
		`"reward":-0.1→"reward":9`:                                           foreign.ErrChain,
		`"reward":-0.1→"reward":-0.10`:                                       foreign.ErrChain,
		`"action":"1"→"action":"2"`:                                          foreign.ErrChain,
		`"done":false→"done":true`:                                           foreign.ErrChain,
		`"reward":-0.1→"reward":1e9`:                                         foreign.ErrAnswer,
		`"reward":-0.1→"reward":NaN`:                                         foreign.ErrAnswer,
		`"reward":-0.1→"reward":"1"`:                                         foreign.ErrAnswer,
		`"action":"1"→"action":"3"`:                                          foreign.ErrAnswer,
		`"success":false→"success":true`:                                     foreign.ErrAnswer,
		`"invalid":0→"invalid":1`:                                            foreign.ErrAnswer,
		`"invalid":0→"invalid":-1`:                                           foreign.ErrAnswer,
		`"observation":"Higher.","choices"→"observation":"Lower.","choices"`: foreign.ErrAnswer,
		`"text":"",→`:                                                        foreign.ErrAnswer,
		`"text":""→"text":"","note":1`:                                       foreign.ErrAnswer,
		`"instance":"7"→"instance":"9"`:                                      foreign.ErrOther,
		`"chance":"8"→"chance":"08"`:                                         foreign.ErrOther,
		`"episodes":[{→"episodes":[],"x":[{`:                                 foreign.ErrAnswer,
		`"version":"v"→"version":"w"`:                                        foreign.ErrVersion,
	} {
		before, after, _ := strings.Cut(change, "→")
		require.Contains(t, out, before)
		_, err := foreign.ReadAnswers([]byte(strings.Replace(out, before, after, 1)), d, []foreign.Asked{asked})
		require.ErrorIs(t, err, kind, change)
	}
	_, err = foreign.ReadAnswers([]byte(`{"version":"v","episodes":[]}`), d, []foreign.Asked{asked})
	require.ErrorIs(t, err, foreign.ErrOther)

	for text, kind := range map[string]error{
		`"drift":{"chain":"00"}`:                       foreign.ErrDrift,
		`"error":{"kind":"broken","message":"1 / 0"}`:  foreign.ErrBroken,
		`"error":{"kind":"busy","message":"starting"}`: foreign.ErrBusy,
	} {
		answers, err := foreign.ReadAnswers([]byte(`{"version":"v","episodes":[{"instance":"7","chance":"8",`+text+`}]}`), d, []foreign.Asked{asked})
		require.NoError(t, err)
		require.ErrorIs(t, answers[0].Err, kind)
		require.Empty(t, answers[0].Steps)
	}
}

// The chain is that of Python's json.dumps and hashlib: these digests are Python's.
func TestChainIsPythons(t *testing.T) {
	begin := foreign.Begin("Guess.")
	require.Equal(t, "b72739cceeacc9bccd9a1ccbfed61ad33819a6b4d3c9a358103d444044887134", begin)
	step := foreign.Step{Action: `say "é"`, RewardText: "-0.1", Observation: "a\\b\n\t\x1f\u2028<&>\x7f"}
	require.Equal(t, "730ffac78ba87fc836ecddd0f88732d87a22865584b3224252048956ca64666f", foreign.Extend(begin, step, true, false))
}

// Episodes that do not fit into one call are asked about in several: same answers.
func TestLargeCallsAreHalved(t *testing.T) {
	server := standin.New(standin.None, "")
	calls, most := 0, 1<<20
	call := func(_ context.Context, name string, input []byte) ([]byte, error) {
		if len(input) > most {
			return nil, fmt.Errorf("%w: %d bytes", foreign.ErrFlood, len(input))
		}
		calls++
		out, err := server.Answer(name, input)
		require.NoError(t, err)
		return json.Marshal(out)
	}
	s, err := foreign.Connect(t.Context(), "guess", nil, call)
	require.NoError(t, err)
	asked := make([]foreign.Asked, 9)
	for i := range asked {
		asked[i].Instance = uint64(i)
	}
	want, err := s.Play(t.Context(), asked)
	require.NoError(t, err)
	require.Equal(t, 2, calls)
	most = 200 // two episodes
	got, err := s.Play(t.Context(), asked)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, 2+5, calls)
	most = 20
	_, err = s.Play(t.Context(), asked)
	require.ErrorIs(t, err, foreign.ErrFlood)
}

func TestNumbersFitEveryLanguage(t *testing.T) {
	a := draw.Address{Seed: 1, Purpose: draw.Instance, Group: 2}
	require.Equal(t, foreign.Number(a), foreign.Number(a))
	require.Zero(t, foreign.Number(a)>>63)
	b := a
	b.Group++
	require.NotEqual(t, foreign.Number(a), foreign.Number(b))
}

func FuzzReadDescription(f *testing.F) {
	f.Add([]byte(described))
	f.Add([]byte(`{"protocol":1,"actions":[[[]]]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := foreign.ReadDescription(b)
		if err != nil {
			require.ErrorIs(t, err, foreign.ErrAnswer)
			return
		}
		require.NotEmpty(t, d.Version)
		require.Positive(t, d.MaxActions)
		require.LessOrEqual(t, len(d.Instructions), foreign.MaxText)
	})
}

func FuzzReadAnswers(f *testing.F) {
	asked, out := answerOf()
	f.Add([]byte(out))
	f.Add([]byte(`{"version":"v","episodes":[{"instance":"7","chance":"8","error":{"kind":"broken","message":""}}]}`))
	d := foreign.Description{Version: "v", Actions: []string{"1"}}
	f.Fuzz(func(t *testing.T, b []byte) {
		answers, err := foreign.ReadAnswers(b, d, []foreign.Asked{asked})
		if err != nil {
			return
		}
		require.Len(t, answers, 1)
		if answers[0].Err == nil {
			require.LessOrEqual(t, len(answers[0].Steps), len(asked.Next))
			require.LessOrEqual(t, len(answers[0].Observation), foreign.MaxText)
		}
	})
}

// An answer that is a web page, of a proxy or a login, is named.
func TestAnswerIsAWebPage(t *testing.T) {
	_, err := foreign.ReadDescription([]byte("<!DOCTYPE html><html><title>502 Bad Gateway</title>"))
	require.ErrorIs(t, err, foreign.ErrAnswer)
	require.ErrorContains(t, err, "the answer is a web page (HTML)")
}

// An environment's report of an error may have a traceback, whose end follows the message on lines of its own; a report
// without one reads as before.
func TestTracebacks(t *testing.T) {
	err := foreign.ReadFailure([]byte(`{"kind":"broken","message":"boom"}`))
	require.EqualError(t, err, foreign.ErrBroken.Error()+`: "boom"`)
	err = foreign.ReadFailure([]byte(`{"kind":"busy","message":"loading","traceback":""}`))
	require.EqualError(t, err, foreign.ErrBusy.Error()+`: "loading"`)
	lines := make([]string, 20)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d\x07 %s", i, strings.Repeat("x", 200))
	}
	report, err := json.Marshal(map[string]string{"kind": "broken", "message": strings.Repeat("m", 400), "traceback": strings.Join(lines, "\n") + "\n"})
	require.NoError(t, err)
	err = foreign.ReadFailure(report)
	require.ErrorIs(t, err, foreign.ErrBroken)
	told := strings.Split(err.Error(), "\n")
	require.Len(t, told, 9, "the last eight lines")
	require.True(t, strings.HasPrefix(told[1], "    line 12  xxx"), told[1])
	require.True(t, strings.HasPrefix(told[8], "    line 19"), told[8])
	require.Less(t, len(err.Error()), 1500)
	require.ErrorIs(t, foreign.ReadFailure([]byte(`{"kind":"broken","message":"boom","traceback":3}`)), foreign.ErrAnswer)
	require.ErrorIs(t, foreign.ReadFailure([]byte(`{"kind":"broken","message":"boom","trace":"x"}`)), foreign.ErrAnswer)
}
