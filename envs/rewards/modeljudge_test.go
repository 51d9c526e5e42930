package rewards

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/judge"
)

// A language model's verdicts are paid as those of a judge of one's own. What it is asked is in its form.
func TestModelJudge(t *testing.T) {
	m := newModule(t, "judge", `{"judge":"grader","model":"m","components":"correct 0.5, polite -2","criteria":{"polite":"is it kind?","correct":"is it right?"},
		"scale":"1 to 5","temperature":0.25,"max_tokens":7,"unreadable":0.5,"timeout_seconds":9,"failed_share":0.25}`)
	require.Equal(t, judge.Form{
		Judge: "grader", Model: "m", Prompt: judge.OfEpisode, Scale: judge.Scale{Least: 1, Most: 5}, Temperature: 0.25, MaxTokens: 7, Unreadable: 0.5,
		Criteria: []judge.Criterion{{Name: "correct", Asks: "is it right?"}, {Name: "polite", Asks: "is it kind?"}},
	}, *m.Judge.Form)
	require.Equal(t, "grader", m.Judge.Name)
	require.Equal(t, []string{"correct", "polite"}, m.Judge.Components)
	require.Equal(t, 9, m.Judge.TimeoutSeconds)
	require.Equal(t, 0.25, m.Judge.FailedShare)
	var written judge.Form
	require.NoError(t, json.Unmarshal(m.Judge.Options, &written))
	require.Equal(t, *m.Judge.Form, written, "the options name the question")
	require.Nil(t, m.Criteria)
	group := []Episode{{Turns: make([]Turn, 2), Judged: []float64{1, 0.25}}}
	require.Equal(t, [][]float64{{0, 0}}, m.Score(group, nil))
	require.Equal(t, map[string]float64{"verdicts/correct/mean": 1, "verdicts/polite/mean": 0.25}, m.Figures(group))

	turns := newModule(t, "judge", `{"judge":"grader","model":"m","level":"turn"}`)
	require.True(t, turns.Judge.ByTurn)
	require.Equal(t, judge.OfTurn, turns.Judge.Form.Prompt)
	require.Equal(t, []string{"score"}, turns.Criteria.Names)
	require.Equal(t, [][]bool{{true}, {false}}, turns.Criteria.Holds(Episode{Turns: make([]Turn, 2), Judged: []float64{1, 0}}))
	require.NotEqual(t, newModule(t, "judge", `{"judge":"grader","model":"m"}`).Judge.Form.Criteria, turns.Judge.Form.Criteria)

	own := newModule(t, "judge", `{"judge":"run"}`).Judge.Form
	require.True(t, own.Own())
	require.Equal(t, judge.First, own.Model)
	require.Equal(t, 1024, own.PromptTokens)
	require.Equal(t, judge.Current, newModule(t, "judge", `{"judge":"run","model":"current"}`).Judge.Form.Model)
	require.Zero(t, m.Judge.Form.PromptTokens)
	for _, wrong := range []string{`{"judge":"run","model":"m"}`, `{"judge":"run","temperature":0.1}`} {
		_, problems, err := New("judge", json.RawMessage(wrong))
		require.NoError(t, err)
		require.Len(t, problems, 1, wrong)
	}

	_, problems, err := New("judge", json.RawMessage(`{"judge":"grader","model":"m","criteria":{"score":"a","score":"b"}}`))
	require.NoError(t, err)
	require.Len(t, problems, 1)
	require.Equal(t, "criteria", problems[0].Path)
	_, problems, err = New("judge", json.RawMessage(`{"judge":"grader","model":"m","components":"correct 1"}`))
	require.NoError(t, err)
	require.Len(t, problems, 1)
	require.Equal(t, `nothing about "correct"`, problems[0].Found)
}
