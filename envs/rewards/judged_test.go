package rewards

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

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
