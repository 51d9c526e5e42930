package run

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/model/search"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// learnt are two groups of two, of a later round: rows of one turn and of two, with other lengths, whose returns are
// 1 and 4, and 2 and −2.
func learnt() []episode.TrajectoryRow {
	row := func(at int32, weight float64, prompts, samples []int32, rewards, penalties []float64) episode.TrajectoryRow {
		r := episode.TrajectoryRow{
			Row: at, Group: at / 2, Member: at % 2, Weight: weight, Selected: true, PromptLengths: prompts, SampledLengths: samples, Rewards: rewards, Penalties: penalties,
			IDs: make([]int32, episode.Total(prompts)+episode.Total(samples)), RolloutLogProbs: make([]float32, episode.Total(samples)),
		}
		for k := range prompts {
			r.Restarts, r.Actions, r.Executed = append(r.Restarts, k == 0), append(r.Actions, "act"), append(r.Executed, 1)
			r.StateKeys = append(r.StateKeys, []string{"start", "middle"}[k])
		}
		r.StateKeys = append(r.StateKeys, "end")
		return r
	}
	return []episode.TrajectoryRow{
		row(10, 1, []int32{2, 1}, []int32{1, 2}, []float64{1, 1}, []float64{-1, 0}), row(11, 1, []int32{1}, []int32{3}, []float64{4}, []float64{0}),
		row(18, .5, []int32{1}, []int32{1}, []float64{2}, []float64{0}), row(19, .5, []int32{1, 0}, []int32{2, 1}, []float64{-1, -1}, []float64{0, 0}),
	}
}

// scoresOf are scores of the rows: each number names its row and its token.
func scoresOf(rows []episode.TrajectoryRow, values int) (out []episode.ScoreRow) {
	for _, r := range rows {
		s := episode.ScoreRow{Row: r.Row}
		for t := range r.Sampled() {
			at := float32(r.Row) + float32(t)/8
			s.LogProbs, s.Entropies, s.RefLogProbs = append(s.LogProbs, -at), append(s.Entropies, at), append(s.RefLogProbs, -2*at)
			s.SumSquares = append(s.SumSquares, at/32)
			for v := range values {
				s.Values = append(s.Values, at+100*float32(v))
			}
		}
		out = append(out, s)
	}
	return out
}

// Trajectories are laid out by rows, turns and tokens, each in its place.
func TestNewCreditInput(t *testing.T) {
	rows := learnt()
	rows[0].Success, rows[0].Added = true, []float64{8, 16}
	for i := range rows {
		rows[i].Parts = []episode.Part{{Name: "a", Weight: .5, Sum: float64(i)}, {Name: "b", Weight: -2, Sum: 10 * float64(i)}}
	}
	rows[3].Truncated, rows[3].Actions = true, []string{"Up || Down", ""}
	l := NewCreditInput(rows)
	require.Equal(t, []float64{25, 4, 2, -2}, l.Returns)
	require.Equal(t, [][]float64{{8, 17}, {4}, {2}, {-1, -1}}, l.Rewards)
	require.Equal(t, [][]credit.Span{{{From: 2, To: 3}, {From: 4, To: 6}}, {{From: 1, To: 4}}, {{From: 1, To: 2}}, {{From: 1, To: 3}, {From: 3, To: 4}}}, l.Turns)
	require.Equal(t, []int{6, 4, 2, 4}, l.Lengths)
	require.Equal(t, []int{5, 5, 9, 9}, l.Groups)
	require.Equal(t, [][]string{{"start", "middle"}, {"start"}, {"start"}, {"start", "middle"}}, l.Keys)
	require.Equal(t, []string{"Up || Down", ""}, l.Actions[3])
	require.Equal(t, []bool{true, false, false, false}, l.Successes)
	require.Equal(t, []string{"start", "start", "start", "start"}, l.Starts)
	// The environment's reward, the penalties, and each module's sum: the weight is beside them.
	require.Equal(t, [][]float64{{2, -1, 0, 0}, {4, 0, 1, 10}, {2, 0, 2, 20}, {-2, 0, 3, 30}}, l.Parts)
	require.Equal(t, []float64{1, 1, .5, -2}, l.PartWeights)
}

// The subgoals of turns are at their own tokens of the row. A turn is invalid without an action, and, as in the authors'
// projection.py, without a switch that says one of the two words, or without a subgoal.
func TestBySubgoals(t *testing.T) {
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	say := func(switches, goal string) []int32 {
		return tok.Encode("<think> <switch>" + switches + "</switch><subgoal>" + goal + "</subgoal></think><answer>Up</answer>")
	}
	var rows []episode.TrajectoryRow
	for i, turns := range [][][]int32{{say("SWITCH", "go up"), say("KEEP", "go up")}, {say("keep", "x"), tok.Encode("no form"), say("switch", "left"), say("perhaps", "left")}} {
		r := episode.TrajectoryRow{Row: int32(i), StateKeys: []string{"s", "s", "s", "s", "s"}, Actions: make([]string, len(turns)), Executed: []int32{1, 0, 2, 1}[:len(turns)]}
		for k, ids := range turns {
			r.IDs = append(append(r.IDs, make([]int32, k+1)...), ids...)
			r.PromptLengths, r.SampledLengths = append(r.PromptLengths, int32(k+1)), append(r.SampledLengths, int32(len(ids)))
			r.Rewards, r.Penalties = append(r.Rewards, 0), append(r.Penalties, 0)
		}
		rows = append(rows, r)
	}
	l := NewCreditInput(rows)
	l.BySubgoals(rows, tok)
	require.Equal(t, [][]bool{{false, true}, {false, true, false, true}}, l.Invalid)
	for row, want := range [][]struct {
		switches bool
		text     string
	}{{{true, "go up"}, {false, "go up"}}, {{false, "x"}, {false, ""}, {true, "left"}, {true, "left"}}} {
		require.Len(t, l.Subgoals[row], len(want))
		for k, w := range want {
			g, turn := l.Subgoals[row][k], l.Turns[row][k]
			require.Equal(t, w.switches, g.Switches)
			require.Equal(t, w.text, g.Text)
			text := func(s credit.Span) string { return tok.Decode(rows[row].IDs[s.From:s.To]) }
			if w.text == "" {
				require.Equal(t, turn, g.Action, "all of the turn")
				continue
			}
			require.Contains(t, text(g.Goal), w.text)
			require.Contains(t, text(g.Choice), "switch")
			require.Contains(t, text(g.Action), "answer>Up</answer>")
			require.True(t, turn.From <= g.Choice.From && g.Action.To <= turn.To)
		}
	}
}

// The trees of the rows are those of their members, in every group.
func TestByTrees(t *testing.T) {
	var l CreditInput
	l.ByTrees([]episode.TrajectoryRow{{Group: 0, Member: 0}, {Group: 0, Member: 2}, {Group: 7, Member: 1}, {Group: 7, Member: 3}, {Group: 7, Member: 5}}, search.Trees{Trees: 2, Branches: 1, Expansions: 2})
	require.Equal(t, []int{0, 0, 1, 1, 1}, l.Trees)
	require.Equal(t, []bool{false, true, false, true, true}, l.Branches)
}

// Scores are put at their tokens, each in its row; a second network's values are as many as it has.
func TestScored(t *testing.T) {
	methodstest.Needs(t, "grpo", "gae", "hiper", "istar", "optimal_token_baseline")
	rows := learnt()
	l := NewCreditInput(rows)
	require.NoError(t, l.Scored(rows, scoresOf(rows, 0), true, spec.Credit{Algorithm: "grpo"}))
	require.Equal(t, []float64{0, 0, -10, 0, -10.125, -10.25}, l.Old[0])
	require.Equal(t, []float64{0, -19, -19.125, -19.25}, l.Old[3])
	require.Equal(t, []float64{0, -38, -38.25, -38.5}, l.reference[3])
	require.Equal(t, [][]float64{{10, 10.1875}, {11.125}, {18}, {19.0625, 19.25}}, l.Entropies, "means over each turn's tokens")
	require.Equal(t, [][]bool{{false, false, true, false, true, true}, {false, true, true, true}, {false, true}, {false, true, true, true}}, l.Mask)
	require.Nil(t, l.Values)
	require.Nil(t, l.PRM)

	l = NewCreditInput(rows)
	require.NoError(t, l.Scored(rows, scoresOf(rows, 1), false, spec.Credit{Algorithm: "gae"}))
	require.Equal(t, []float64{0, 0, 10, 0, 10.125, 10.25}, l.Values[0])
	require.Nil(t, l.reference)
	l = NewCreditInput(rows)
	require.NoError(t, l.Scored(rows, scoresOf(rows, 3), false, spec.Credit{Algorithm: "hiper"}))
	require.Equal(t, []float64{0, 0, 0, 18, 118, 218}, l.Values[2])
	l = NewCreditInput(rows)
	require.NoError(t, l.Scored(rows, scoresOf(rows, 1), false, spec.Credit{Algorithm: "istar"}))
	require.Equal(t, []float64{0, 11, 11.125, 11.25}, l.PRM[1])
	require.Nil(t, l.Values)
	require.Nil(t, l.SumSquares)
	l = NewCreditInput(rows)
	require.NoError(t, l.Scored(rows, scoresOf(rows, 0), false, spec.Credit{Algorithm: "optimal_token_baseline"}))
	require.Equal(t, []float64{0, 11. / 32, 11.125 / 32, 11.25 / 32}, l.SumSquares[1])
	require.Equal(t, []float64{0, -11, -11.125, -11.25}, l.Old[1])
	few := scoresOf(rows, 0)
	few[1].SumSquares = few[1].SumSquares[:2]
	require.ErrorIs(t, l.Scored(rows, few, false, spec.Credit{Algorithm: "optimal_token_baseline"}), store.ErrInvalid)

	for name, change := range map[string]func(scores []episode.ScoreRow) []episode.ScoreRow{
		"fewer rows":      func(s []episode.ScoreRow) []episode.ScoreRow { return s[:3] },
		"another order":   func(s []episode.ScoreRow) []episode.ScoreRow { s[0], s[2] = s[2], s[0]; return s },
		"another row":     func(s []episode.ScoreRow) []episode.ScoreRow { s[1].Row = 12; return s },
		"log-probs":       func(s []episode.ScoreRow) []episode.ScoreRow { s[1].LogProbs = s[1].LogProbs[:2]; return s },
		"entropies":       func(s []episode.ScoreRow) []episode.ScoreRow { s[1].Entropies = nil; return s },
		"reference":       func(s []episode.ScoreRow) []episode.ScoreRow { s[1].RefLogProbs = nil; return s },
		"values":          func(s []episode.ScoreRow) []episode.ScoreRow { s[1].Values = s[1].Values[:1]; return s },
		"too many values": func(s []episode.ScoreRow) []episode.ScoreRow { s[1].Values = append(s[1].Values, 1); return s },
	} {
		l := NewCreditInput(rows)
		require.ErrorIs(t, l.Scored(rows, change(scoresOf(rows, 1)), true, spec.Credit{Algorithm: "gae"}), store.ErrInvalid, name)
	}
	bad := NewCreditInput(rows)
	bad.Lengths = bad.Lengths[:3]
	require.ErrorIs(t, bad.Scored(rows, scoresOf(rows, 0), false, spec.Credit{Algorithm: "grpo"}), store.ErrInvalid)
	require.Equal(t, []float64{0, 1.5}, turnMeans([]float32{1, 2}, []credit.Span{{}, {From: 1, To: 3}}), "a turn without a token")
}

// What is spread over the tokens of a row is gathered from them again.
func TestSpreadAndGather(t *testing.T) {
	l := NewCreditInput(learnt())
	for row := range l.Turns {
		for each := 1; each < 4; each++ {
			var sampled []float32
			var want []float64
			for n := range each * learnt()[row].Sampled() {
				sampled, want = append(sampled, float32(n+1)), append(want, float64(n+1))
			}
			spread := l.spreadOf(row, sampled, each)
			require.Len(t, spread, each*l.Lengths[row])
			require.Equal(t, want, gatherOf(l.Turns[row], spread, each))
			if each == 1 {
				require.Equal(t, want, gather(l.Turns[row], l.spread(row, sampled)))
			}
		}
	}
}

// signalOf is the signal of rows with an algorithm.
func signalOf(t *testing.T, settings spec.Settings, rows []episode.TrajectoryRow, scores []episode.ScoreRow) (*CreditInput, TrainingSignal, error) {
	t.Helper()
	l := NewCreditInput(rows)
	l.ByTrees(rows, search.Trees{Trees: 2})
	require.NoError(t, l.Scored(rows, scores, settings.Update.Reference(), settings.Credit))
	signal, err := l.TrainingSignal(settings, rows, nil)
	return &l, signal, err
}

// The advantages of a row are at its sampled tokens, with the weight of its group; the figures are of what is
// learned.
func TestTrainingSignal(t *testing.T) {
	methodstest.Needs(t, "dr_grpo")
	rows := learnt()
	_, signal, err := signalOf(t, spec.Settings{Credit: spec.Credit{Algorithm: "dr_grpo"}}, rows, scoresOf(rows, 0))
	require.NoError(t, err)
	require.Equal(t, [][]float64{{-1.5, -1.5, -1.5}, {1.5, 1.5, 1.5}, {1}, {-1, -1, -1}}, signal.Advantages)
	require.Nil(t, signal.Returns)
	require.Nil(t, signal.Learns)
	require.Nil(t, signal.Worth)
	require.Equal(t, activities.Metrics{"critic/advantages/max": 1.5, "critic/advantages/min": -1.5}, signal.Metrics)

	// Whether a row is worth a step follows from its advantages without the weight: below, at and above.
	for _, c := range []struct {
		least float64
		want  []bool
	}{
		{1.4, []bool{true, true, true, true}}, {1.5, []bool{true, true, true, true}}, {1.75, []bool{false, false, true, true}}, {2, []bool{false, false, true, true}},
		{2.25, []bool{false, false, false, false}},
	} {
		_, signal, err = signalOf(t, spec.Settings{Credit: spec.Credit{Algorithm: "dr_grpo"}, Selection: spec.Selection{LeastAdvantage: c.least}}, rows, scoresOf(rows, 0))
		require.NoError(t, err)
		require.Equal(t, c.want, signal.Worth, "%v", c.least)
	}
	signal.Keep([]bool{false, true, false, true})
	require.Equal(t, [][]float64{{1.5, 1.5, 1.5}, {-1, -1, -1}}, signal.Advantages)
	require.Equal(t, []bool{false, false}, signal.Worth)
	require.Nil(t, signal.Returns)

	rows[1].Rewards[0] = math.Inf(1)
	_, _, err = signalOf(t, spec.Settings{Credit: spec.Credit{Algorithm: "dr_grpo"}}, rows, scoresOf(rows, 0))
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "dr_grpo: ")
	_, _, err = signalOf(t, spec.Settings{Credit: spec.Credit{Algorithm: "dr_grpo"}, Selection: spec.Selection{LeastAdvantage: math.Inf(1)}}, learnt(), scoresOf(learnt(), 0))
	require.ErrorIs(t, err, store.ErrInvalid)
}

// With a critic the returns are at the same tokens, without the weight. The explained variance is over the tokens
// that it learns.
func TestTrainingSignalOfACritic(t *testing.T) {
	methodstest.Needs(t, "gae")
	rows := learnt()
	scores := scoresOf(rows, 1)
	for i := range scores {
		for n := range scores[i].Values {
			scores[i].Values[n] = float32(i) // of a row
		}
	}
	settings := spec.Settings{Credit: spec.Credit{Algorithm: "gae", Gamma: 1, Lambda: 1, RewardAt: "turns"}}
	_, signal, err := signalOf(t, settings, rows, scores)
	require.NoError(t, err)
	require.Equal(t, [][]float64{{1, 1, 1}, {4, 4, 4}, {2}, {-2, -2, -1}}, signal.Returns)
	require.Equal(t, [][]float64{{1, 1, 1}, {3, 3, 3}, {0}, {-2.5, -2.5, -2}}, signal.Advantages)
	require.Nil(t, signal.Learns, "at all of them")
	// Errors are 1, 1, 1, 3, 3, 3, 0, −5, −5, −4, whose squared distances from their mean add up to 95.6; those of the
	// returns add up to 49.6.
	require.InDelta(t, 1-95.6/9/(49.6/9+1e-5), float64(signal.Metrics["critic/vf_explained_var"]), 1e-9)
	require.Equal(t, canon.Float(3), signal.Metrics["critic/advantages/max"])

	scores[2].Values[0] = float32(math.NaN())
	_, signal, err = signalOf(t, settings, rows, scores)
	require.NoError(t, err, "the step is skipped, and counted")
	for i, row := range signal.Advantages {
		require.Len(t, row, rows[i].Sampled())
		require.Len(t, signal.Returns[i], len(row))
		for n := range row {
			require.True(t, math.IsNaN(row[n]) && math.IsNaN(signal.Returns[i][n]))
		}
	}
}

// A critic of several values has as many returns for a token, and learns some of them.
func TestTrainingSignalOfSeveralValues(t *testing.T) {
	methodstest.Needs(t, "hiper")
	rows := learnt()
	scores := scoresOf(rows, 3)
	settings := spec.Settings{Credit: spec.Credit{Algorithm: "hiper", TurnGamma: 1, TurnLambda: 1}}
	l := NewCreditInput(rows)
	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	l.BySubgoals(rows, tok)
	require.NoError(t, l.Scored(rows, scores, false, settings.Credit))
	signal, err := l.TrainingSignal(settings, rows, nil)
	require.NoError(t, err)
	learned := 0
	for i, r := range rows {
		require.Len(t, signal.Advantages[i], r.Sampled())
		require.Len(t, signal.Returns[i], 3*r.Sampled())
		require.Len(t, signal.Learns[i], 3*r.Sampled())
		for n, yes := range signal.Learns[i] {
			if yes {
				learned++
			} else {
				require.Zero(t, signal.Returns[i][n], "row %d, number %d", i, n)
			}
		}
	}
	require.Positive(t, learned)
	scores[1].Values[0] = float32(math.Inf(1))
	l = NewCreditInput(rows)
	l.BySubgoals(rows, tok)
	require.NoError(t, l.Scored(rows, scores, false, settings.Credit))
	signal, err = l.TrainingSignal(settings, rows, nil)
	require.NoError(t, err)
	require.Len(t, signal.Returns[0], 9)
	require.True(t, math.IsNaN(signal.Returns[0][8]))
}

// A process reward model that promises learns the chances of success at the last token of each turn, and is
// measured by chances.
func TestTrainingSignalOfPromises(t *testing.T) {
	methodstest.Needs(t, "agent_prm")
	rows := learnt()
	rows[1].Success, rows[3].Success = true, true
	rows[1].Actions[0], rows[3].Actions[0] = "other", "other"
	scores := scoresOf(rows, 1)
	for i := range scores {
		clear(scores[i].Values) // a chance of a half
	}
	_, signal, err := signalOf(t, spec.Settings{Credit: spec.Credit{Algorithm: "agent_prm", Gamma: .5, Epsilon: 1e-6}}, rows, scores)
	require.NoError(t, err)
	require.Equal(t, [][]bool{{true, false, true}, {false, false, true}, {true}, {false, true, true}}, signal.Learns)
	// The state and the action of the first turn are told apart by the action, over the groups: "act" never succeeded;
	// "other" succeeded at once, and after a turn more.
	require.Equal(t, [][]float64{{0, 0, 0}, {0, 0, .75}, {0}, {0, .75, 1}}, signal.Returns)
	// Errors are a half less than the targets, whose variance they have.
	targets := []float64{0, 0, .75, 0, .75, 1}
	mean, squares := 2.5/6, 0.0
	for _, x := range targets {
		squares += (x - mean) * (x - mean)
	}
	require.InDelta(t, 1-squares/5/(squares/5+1e-5), float64(signal.Metrics["critic/vf_explained_var"]), 1e-9)
	require.Equal(t, [][]float64{{.5, .5}}, chances([][]float64{{0, 0}}))
	require.InDelta(t, .7310585786300049, chances([][]float64{{1}})[0][0], 1e-15)
}

// A process reward model that learns from preferences says how it prefers.
func TestTrainingSignalOfPreferences(t *testing.T) {
	methodstest.Needs(t, "istar")
	rows := learnt()
	rows[1].Success, rows[2].Success = true, true
	scores := scoresOf(rows, 1)
	for i := range scores {
		for n := range scores[i].Values {
			scores[i].Values[n] = scores[i].LogProbs[n] + []float32{-1, 2, -4, 0}[i]
		}
	}
	settings := spec.Settings{Credit: spec.Credit{Algorithm: "istar", Own: option.Values{"beta": .5}, StepWeight: 1, Epsilon: 1e-6}}
	_, signal, err := signalOf(t, settings, rows, scores)
	require.NoError(t, err)
	require.Nil(t, signal.Learns)
	// The step rewards are half of −1 and −2, of 6, of −4, of 0 and 0. The first group's success is preferred, by 4.5, and
	// the second's is not, by 2.
	require.Equal(t, canon.Float(2), signal.Metrics["prm/pairs"])
	require.Equal(t, canon.Float(.5), signal.Metrics["prm/right"])
	require.InDelta(t, (math.Log1p(math.Exp(-4.5))+math.Log1p(math.Exp(2)))/2, float64(signal.Metrics["prm/loss"]), 1e-12)
	require.InDelta(t, (.5+1+3+2+0+0)/6, float64(signal.Metrics["prm/reward_size"]), 1e-12)
	require.NotContains(t, signal.Metrics, "critic/vf_explained_var")
	for i, row := range signal.Returns {
		require.Len(t, row, rows[i].Sampled())
		for _, w := range row {
			require.Equal(t, []float64{-1, 1, 1, -1}[i], math.Copysign(1, w), "up for successes, down for failures")
		}
	}
	scores[0].Values[0] = float32(math.NaN())
	_, signal, err = signalOf(t, settings, rows, scores)
	require.NoError(t, err)
	require.True(t, math.IsNaN(signal.Returns[3][0]))
	require.NotContains(t, signal.Metrics, "prm/loss")
}

// A penalty for the distance from the reference is in the rewards of tokens, of turns and of rows.
func TestDistanceInTheReward(t *testing.T) {
	methodstest.Needs(t, "dr_grpo")
	rows := learnt()
	scores := scoresOf(rows, 0)
	for i := range scores {
		for n := range scores[i].LogProbs {
			scores[i].LogProbs[n], scores[i].RefLogProbs[n] = -1, -1-float32(i+n)
		}
	}
	settings := spec.Settings{Credit: spec.Credit{Algorithm: "dr_grpo"}, Update: spec.Update{KLIn: spec.KLReward, KLEstimator: "k1", KLCoefficient: .25}}
	for _, place := range []string{"", "turns", "end"} {
		settings.Credit.RewardAt = place
		l, signal, err := signalOf(t, settings, rows, scores)
		require.NoError(t, err)
		// The distances are 0, 1, 2; 1, 2, 3; 2; 3, 4, 5.
		require.Equal(t, []float64{1 - .75, 4 - 1.5, 2 - .5, -2 - 3}, l.Returns)
		require.Equal(t, [][]float64{{0, 1 - .75}, {4 - 1.5}, {2 - .5}, {-1 - 1.75, -1 - 1.25}}, l.Rewards, "each turn has its own, wherever the tokens' are")
		require.Equal(t, [][]float64{{-1.125, -1.125, -1.125}, {1.125, 1.125, 1.125}, {1.625}, {-1.625, -1.625, -1.625}}, signal.Advantages)
		require.Equal(t, canon.Float((1.0+2+2+4)/4), signal.Metrics["actor/reward_kl_penalty"])
		require.Equal(t, canon.Float(.25), signal.Metrics["actor/reward_kl_penalty_coeff"])
		want := map[string][]float64{"": {0, 0, 0, 0, -.25, 1 - .5}, "turns": {0, 0, 0, 0, -.25, 1 - .5}, "end": {0, 0, 0, 0, -.25, 1 - .5}}
		require.Equal(t, want[place], l.Tokens[0])
		if place == "end" {
			require.Equal(t, []float64{0, -.75, -1, -2 - 1.25}, l.Tokens[3])
		} else {
			require.Equal(t, []float64{0, -.75, -1 - 1, -1 - 1.25}, l.Tokens[3])
		}
	}
	scores[3].RefLogProbs[0] = float32(math.NaN())
	_, signal, err := signalOf(t, settings, rows, scores)
	require.NoError(t, err)
	require.True(t, math.IsNaN(signal.Advantages[0][0]), "one that is not finite spoils the step")
	settings.Credit.RewardAt = "nowhere"
	_, _, err = signalOf(t, settings, rows, scoresOf(rows, 0))
	require.ErrorIs(t, err, store.ErrInvalid)

	// Without it the rewards stay, and nothing is said of it.
	settings.Update.KLIn, settings.Credit.RewardAt = "", ""
	l, signal, err := signalOf(t, settings, rows, scores)
	require.NoError(t, err)
	require.Equal(t, []float64{1, 4, 2, -2}, l.Returns)
	require.NotContains(t, signal.Metrics, "actor/reward_kl_penalty")
}

// Algorithms that compare turns, and those of several agents, say so in the figures.
func TestFiguresOfAlgorithms(t *testing.T) {
	methodstest.Needs(t, "blockwise", "dr_mas", "grpo")
	rows := learnt()
	_, signal, err := signalOf(t, spec.Settings{Credit: spec.Credit{Algorithm: "blockwise", Epsilon: 1e-6}}, rows, scoresOf(rows, 0))
	require.NoError(t, err)
	require.Contains(t, signal.Metrics, "critic/advantages/alone")
	l := NewCreditInput(rows)
	l.ByAgents(rows, []AgentRow{{10, 0, "a"}, {10, 1, "b"}, {11, 0, "a"}, {18, 0, "a"}, {19, 0, "b"}, {19, 1, "a"}})
	require.NoError(t, l.Scored(rows, scoresOf(rows, 0), false, spec.Credit{Algorithm: "dr_mas"}))
	signal, err = l.TrainingSignal(spec.Settings{Credit: spec.Credit{Algorithm: "dr_mas"}}, rows, nil)
	require.NoError(t, err)
	require.Equal(t, canon.Float(1), signal.Metrics["agents/a/turns"])
	require.Equal(t, canon.Float(.5), signal.Metrics["agents/b/turns"])
	l.Agents = l.Agents[:3]
	_, err = l.TrainingSignal(spec.Settings{Credit: spec.Credit{Algorithm: "grpo"}}, rows, nil)
	require.ErrorIs(t, err, store.ErrInvalid)
}

// The values of initial states before the iteration are what the state's baseline is.
func TestSignalByStates(t *testing.T) {
	methodstest.Needs(t, "state_baseline")
	rows := learnt()
	l := NewCreditInput(rows)
	require.NoError(t, l.Scored(rows, scoresOf(rows, 0), false, spec.Credit{Algorithm: "state_baseline"}))
	signal, err := l.TrainingSignal(spec.Settings{Credit: spec.Credit{Algorithm: "state_baseline"}}, rows, []credit.StateValue{{Key: "start", Count: 2, Value: 3}})
	require.NoError(t, err)
	require.Equal(t, [][]float64{{-2, -2, -2}, {1, 1, 1}, {-.5}, {-2.5, -2.5, -2.5}}, signal.Advantages)
}

// Of rows some are kept, in their order; nil stays nil.
func TestKept(t *testing.T) {
	require.Equal(t, []int{1, 3}, Kept([]int{1, 2, 3}, []bool{true, false, true}))
	require.Equal(t, []int{}, Kept([]int{1, 2}, []bool{false, false}))
	require.Nil(t, Kept[int](nil, nil))
	s := TrainingSignal{Advantages: [][]float64{{1}, {2}}, Returns: [][]float64{{3}, {4}}, Learns: [][]bool{{true}, {false}}, Worth: []bool{true, false}}
	s.Keep([]bool{false, true})
	require.Equal(t, TrainingSignal{Advantages: [][]float64{{2}}, Returns: [][]float64{{4}}, Learns: [][]bool{{false}}, Worth: []bool{false}}, s)
}
