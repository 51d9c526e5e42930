package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// A turn's answers are those to the calls, in their order, and the one about the action.
func TestResults(t *testing.T) {
	s := store.NewMemory()
	read := func(name string, rows ...CallRow) ([]Answered, error) {
		ref, err := tables.Put(t.Context(), s, "run", name, rows)
		require.NoError(t, err)
		return Results(t.Context(), s, &ref, 3)
	}
	none, err := Results(t.Context(), s, nil, 3)
	require.NoError(t, err)
	require.Equal(t, make([]Answered, 3), none)
	got, err := read("good", CallRow{Row: 0, Call: 0, Answer: "a"}, CallRow{Row: 0, Call: 1, Answer: "b"}, CallRow{Row: 0, Call: GradeCall, Answer: "c", Failed: true},
		CallRow{Row: 2, Call: GradeCall, Answer: "d", Failed: true, Killed: true})
	require.NoError(t, err)
	require.Equal(t, []Answered{
		{Results: []string{"a", "b"}, Grade: &envs.ToolAnswer{Text: "c", Failed: true}}, {}, {Grade: &envs.ToolAnswer{Text: "d", Failed: true, Killed: true}},
	}, got)
	for name, rows := range map[string][]CallRow{
		"two grades": {{Call: GradeCall}, {Call: GradeCall}}, "a call that is missing": {{Call: 1}}, "no such row": {{Row: 3}}, "no such call": {{Call: -2}},
	} {
		_, err := read(name, rows...)
		require.ErrorIs(t, err, store.ErrInvalid, name)
	}
}

// CallTools follows the samples where there are tools, and where an environment asks outside.
func TestCallsTools(t *testing.T) {
	require.False(t, CallsTools(spec.Environment{Name: "bandit"}))
	require.False(t, CallsTools(spec.Environment{Name: "none such"}))
	require.True(t, CallsTools(spec.Environment{Name: "bandit", Tools: []spec.Tool{{Name: "calculator"}}}))
	require.True(t, CallsTools(spec.Environment{Name: "code"}))
	require.True(t, CallsTools(spec.Environment{Mixture: []spec.Part{{Name: "bandit"}, {Name: "code"}}}))
}
