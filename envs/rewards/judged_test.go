package rewards

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// A judge by turn pays each turn what it says of it. A component of weight 0 is a metric alone.
func TestForeignJudgeByTurn(t *testing.T) {
	m := newModule(t, "foreign", `{"name":"judge","level":"turn","components":"correct 0.5, polite -2, made_up 0"}`)
	require.True(t, m.Judge.ByTurn)
	require.Equal(t, 6, m.Judge.Values(2))
	group := []Episode{
		{Turns: make([]Turn, 2), Judged: []float64{1, 0, 0.25, 1, 1, 1}},
		{Turns: make([]Turn, 1), Judged: []float64{0, 1, 0}},
		{Judged: []float64{}},
	}
	require.Equal(t, [][]float64{{0, -2}, {-2}, {}}, m.Score(group, nil))
	got := m.Figures(group)
	require.Len(t, got, 3)
	for name, want := range map[string]float64{"correct": 1. / 3, "polite": 0.75, "made_up": 2. / 3} {
		require.InDelta(t, want, got["verdicts/"+name+"/mean"], 1e-12, "a mean over turns")
	}
	require.Equal(t, 0.0, m.Figures(group[2:])["verdicts/correct/mean"], "there is no turn")

	// Its components are criteria, which hold from a half on.
	require.Equal(t, []string{"correct", "polite", "made_up"}, m.Criteria.Names)
	require.Equal(t, []float64{0.5, -2, 0}, m.Criteria.Weights)
	require.Equal(t, []int{-1, -1, -1}, m.Criteria.After)
	require.Equal(t, [][]bool{{true, false, true}, {false, true, true}}, m.Criteria.Holds(group[0]))
	require.Equal(t, [][]bool{{true, false, false}}, m.Criteria.Holds(Episode{Turns: make([]Turn, 1), Judged: []float64{0.5, 0.4999, -1}}))

	require.Nil(t, newModule(t, "foreign", `{"name":"judge"}`).Criteria, "a judge of episodes has none")
	require.Nil(t, newModule(t, "length", "").Criteria)
	episode := newModule(t, "foreign", `{"name":"judge","level":"episode","components":"correct 0.5, polite -2"}`)
	require.Equal(t, 2, episode.Judge.Values(7))
	require.False(t, newModule(t, "foreign", `{"name":"judge"}`).Judge.ByTurn)
}

// The components of a verdict are paid by their weights, at the last turn.
func TestForeignJudge(t *testing.T) {
	m := newModule(t, "foreign", `{"name":"judge","components":"correct 0.5, polite -2"}`)
	require.Equal(t, []string{"correct", "polite"}, m.Judge.Components)
	require.Equal(t, 8, m.Judge.Episodes)
	require.Equal(t, 0.05, m.Judge.FailedShare)
	group := []Episode{{Turns: make([]Turn, 2), Judged: []float64{1, 0.25}}, {Turns: make([]Turn, 1), Judged: []float64{0, 1}}}
	require.Equal(t, [][]float64{{0, 0}, {-2}}, m.Score(group, nil))
	require.Equal(t, map[string]float64{"verdicts/correct/mean": 0.5, "verdicts/polite/mean": 0.625}, m.Figures(group))
	require.Equal(t, []string{"score"}, newModule(t, "foreign", `{"name":"judge"}`).Judge.Components)
	for options, paths := range map[string][]string{
		``:               {"name"},
		`{"name":"A b"}`: {"name"},
		`{"name":"judge","components":"correct"}`:                  {"components"},
		`{"name":"judge","components":""}`:                         {"components"},
		`{"name":"judge","components":"a 1, a 2"}`:                 {"components"},
		`{"name":"judge","components":"a NaN"}`:                    {"components"},
		`{"name":"judge","components":"A 1"}`:                      {"components"},
		`{"name":"judge","components":"a 1,"}`:                     {"components"},
		`{"name":"judge","level":"step"}`:                          {"level"},
		`{"name":"judge","episodes":0}`:                            {"episodes"},
		`{"name":"judge","failed_share":1.5,"timeout_seconds":-1}`: {"failed_share", "timeout_seconds"},
		`{"name":"judge","url":"http://127.0.0.1"}`:                {"url"},
	} {
		_, problems, err := New("foreign", json.RawMessage(options))
		require.NoError(t, err)
		var found []string
		for _, p := range problems {
			found = append(found, p.Path)
		}
		require.ElementsMatch(t, paths, found, options)
	}
}
