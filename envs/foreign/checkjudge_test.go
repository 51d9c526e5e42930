package foreign_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
)

// A judge's faults are found by the part of the check that is there for them.
func TestCheckJudge(t *testing.T) {
	check := func(fault string, share float64) (problems, notes map[string]string) {
		call := standin.Call(fault)
		judge := foreign.Judge{Name: "judge", Components: []string{"correct", "polite"}, Call: call}
		problems, notes = map[string]string{}, map[string]string{}
		findings, err := foreign.CheckJudge(t.Context(), judge, judge, foreign.JudgeCheck{
			Episodes: foreign.MadeUp(), PerCall: 8, FailedShare: share, Report: func(f foreign.Finding) { notes[f.Part] = f.Note },
		})
		require.NoError(t, err)
		require.Len(t, notes, len(findings))
		for _, f := range findings {
			if f.Problem != "" {
				problems[f.Part] = f.Problem
			}
		}
		return problems, notes
	}
	problems, notes := check(standin.None, 0.05)
	require.Empty(t, problems)
	require.Contains(t, notes["verdicts"], `8 episodes, `)
	require.Contains(t, notes["verdicts"], `, by "standin" with the prompt `)
	require.Equal(t, "-0.2 to 1, mean 0.1875", notes["component correct"])
	require.Contains(t, notes, "the same verdicts from another process")

	for fault, want := range map[string]string{standin.Noise: "is not valid", standin.Lie: "episodes[0].components.correct: found nothing", standin.Episode: "asked was"} {
		problems, _ := check(fault, 0.05)
		require.Len(t, problems, 1, fault)
		require.Contains(t, problems["verdicts"], want, fault)
	}
	problems, _ = check(standin.Broken, 0.05)
	require.Contains(t, problems["every episode has a verdict"], "1 of 8 episodes have none, and failed_share is 0.05: a run would pause; the first: episode 1 (reward 0.9")
	require.Contains(t, problems["every episode has a verdict"], "the reply is not JSON")
	// The stand-in breaks at the second place of a call: alone, the episode gets its verdict.
	problems, _ = check(standin.Broken, 0.5)
	require.NotContains(t, problems, "every episode has a verdict")
	require.Contains(t, problems["the same verdicts one by one"], "none, then correct 0.9, polite 0.9; a verdict must not depend on the other episodes of a call")

	problems, notes = check(standin.Random, 0.05)
	require.Empty(t, problems, "a judge may answer otherwise")
	require.Contains(t, notes["the same verdicts twice"], "no: 8 of 8 differ, as episode 0")
	require.NotContains(t, notes, "the same verdicts one by one")
	require.Contains(t, notes["component polite"], "the same for every episode")

	_, err := foreign.CheckJudge(t.Context(), foreign.Judge{}, foreign.Judge{}, foreign.JudgeCheck{PerCall: 8})
	require.ErrorContains(t, err, "want at least 1")
}
