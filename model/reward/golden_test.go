package reward

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

func TestChecklistGolden(t *testing.T) {
	type in struct {
		Weights [][]float64  // [turns][items]
		Steps   [][][][]bool // [rows][turns][steps][items]
		// Of the paper's advantages, which credit computes by its own algorithms.
		LeastHolders json.RawMessage `json:"least_holders"`
	}
	type out struct {
		TurnScores           [][]float64     `json:"turn_scores"`
		TurnAdvantages       json.RawMessage `json:"turn_advantages"`
		TrajectoryReward     json.RawMessage `json:"trajectory_reward"`
		TrajectoryAdvantages json.RawMessage `json:"trajectory_advantages"`
	}
	g := golden.ReadMethod[in, out](t, "cm2")
	for i, c := range g.Cases {
		scores := make([][]float64, len(c.In.Steps))
		for row, turns := range c.In.Steps {
			for turn, steps := range turns {
				u, err := Checklist(c.In.Weights[turn], steps)
				require.NoError(t, err)
				paid, err := ChecklistSteps(c.In.Weights[turn], steps)
				require.NoError(t, err)
				sum := 0.0
				for _, p := range paid {
					sum += p
				}
				require.InDelta(t, u, sum, 1e-12, "the steps' payments add up to the score")
				scores[row] = append(scores[row], u)
			}
		}
		for row := range scores {
			golden.Near(t, c.Out.TurnScores[row], scores[row], g.Tolerance, "case %d row %d", i, row)
		}
	}
}

func TestStateGolden(t *testing.T) {
	type in struct {
		Truth, Said       []Relation
		FrequentText      bool `json:"frequent_text"`
		Weight            float64
		EnvironmentReward float64 `json:"environment_reward"`
		FormatOK          bool    `json:"format_ok"`
		FormatReward      float64 `json:"format_reward"`
	}
	type out struct {
		F1Box      float64 `json:"f1_box"`
		F1Target   float64 `json:"f1_target"`
		StateScore float64 `json:"state_score"`
		TurnReward float64 `json:"turn_reward"`
	}
	g := golden.ReadMethod[in, out](t, "vagen_state")
	for i, c := range g.Cases {
		box, target := F1("box", c.In.Said, c.In.Truth), F1("target", c.In.Said, c.In.Truth)
		score := State([]float64{box, target}, c.In.FrequentText)
		require.InDelta(t, c.Out.F1Box, box, g.Tolerance, "case %d", i)
		require.InDelta(t, c.Out.F1Target, target, g.Tolerance, "case %d", i)
		require.InDelta(t, c.Out.StateScore, score, g.Tolerance, "case %d", i)
		turn := c.In.EnvironmentReward + StateTurn(c.In.FormatOK, c.In.FormatReward, c.In.Weight, score)
		require.InDelta(t, c.Out.TurnReward, turn, g.Tolerance, "case %d", i)
	}
}

func TestAttemptsGolden(t *testing.T) {
	type in struct {
		Reward1 []float64 `json:"reward_1"`
		Reward2 []float64 `json:"reward_2"`
		KL1     []float64 `json:"kl_1"`
		KL2     []float64 `json:"kl_2"`
		Alpha   float64
		Beta1   float64 `json:"beta_1"`
		Beta2   float64 `json:"beta_2"` // of stage 1, which no module pays
	}
	type out struct {
		Stage1             []float64 `json:"stage_1"`
		Bonus              []float64
		Attempt1           []float64 `json:"attempt_1"`
		Attempt2           []float64 `json:"attempt_2"`
		Accuracy1          float64   `json:"accuracy_1"`
		Accuracy2          float64   `json:"accuracy_2"`
		Delta              float64
		IncorrectToCorrect float64 `json:"incorrect_to_correct"`
		CorrectToIncorrect float64 `json:"correct_to_incorrect"`
	}
	g := golden.ReadMethod[in, out](t, "score")
	for i, c := range g.Cases {
		a := Attempts{Reward1: c.In.Reward1, Reward2: c.In.Reward2, KL1: c.In.KL1, KL2: c.In.KL2}
		o := AttemptOptions{Alpha: c.In.Alpha, Beta1: c.In.Beta1}
		first, second, bonus, err := a.Stage2(o)
		require.NoError(t, err)
		f, err := a.Figures()
		require.NoError(t, err)
		golden.Near(t, c.Out.Bonus, bonus, g.Tolerance, "case %d", i)
		golden.Near(t, c.Out.Attempt1, first, g.Tolerance, "case %d", i)
		golden.Near(t, c.Out.Attempt2, second, g.Tolerance, "case %d", i)
		require.InDelta(t, c.Out.Accuracy1, f.Accuracy1, g.Tolerance, "case %d", i)
		require.InDelta(t, c.Out.Accuracy2, f.Accuracy2, g.Tolerance, "case %d", i)
		require.InDelta(t, c.Out.Delta, f.Delta(), g.Tolerance, "case %d", i)
		require.InDelta(t, c.Out.IncorrectToCorrect, f.IncorrectToCorrect, g.Tolerance, "case %d", i)
		require.InDelta(t, c.Out.CorrectToIncorrect, f.CorrectToIncorrect, g.Tolerance, "case %d", i)
	}
}
