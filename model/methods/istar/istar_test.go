package istar

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/option"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

// A case is one group.
func TestIStarGolden(t *testing.T) {
	type in struct {
		Beta, Alpha float64
		Model       [][][]float64 `json:"prm_logprob"`
		Old         [][][]float64 `json:"old_logprob"`
		Returns     []float64
		Success     []bool
	}
	type out struct {
		StepRewards   [][]float64 `json:"step_rewards"`
		Episode       []float64   `json:"episode_advantage_rloo"`
		StepMeanStd   [][]float64 `json:"step_advantage_mean_std"`
		StepMean      [][]float64 `json:"step_advantage_mean"`
		StepFirst     [][]float64 `json:"step_advantage_first_step_rloo"`
		MeanStd       [][]float64 `json:"advantage_mean_std"`
		First         [][]float64 `json:"advantage_first_step_rloo"`
		Pairs         [][2]int
		LossSum       float64 `json:"dpo_loss_sum"`
		LossMeanSteps float64 `json:"dpo_loss_mean_over_steps"`
	}
	g := golden.ReadMethod[in, out](t, "istar")
	for _, c := range g.Cases {
		r, err := StepRewards(c.In.Model, c.In.Old, c.In.Beta)
		require.NoError(t, err)
		credittest.Within(t, g.Tolerance, c.Out.StepRewards, r)
		n := len(c.In.Returns)
		group, none := make([]int, n), make([]float64, n)
		episode, err := credit.LeaveOneOut(c.In.Returns, group)
		require.NoError(t, err)
		golden.Near(t, c.Out.Episode, episode, g.Tolerance)

		o := credit.Options{NormalizeByStd: true, Epsilon: 1e-6}
		for _, form := range []struct {
			want    [][]float64
			compute func() ([][]float64, error)
		}{
			{c.Out.StepMeanStd, func() ([][]float64, error) { return IStar(none, r, group, 1, o) }},
			{c.Out.StepMean, func() ([][]float64, error) { return IStar(none, r, group, 1, credit.Options{}) }},
			{c.Out.StepFirst, func() ([][]float64, error) { return IStarCode(none, r, group, 1) }},
			{c.Out.MeanStd, func() ([][]float64, error) { return IStar(c.In.Returns, r, group, c.In.Alpha, o) }},
			{c.Out.First, func() ([][]float64, error) { return IStarCode(c.In.Returns, r, group, c.In.Alpha) }},
		} {
			got, err := form.compute()
			require.NoError(t, err)
			credittest.Within(t, g.Tolerance, form.want, got)
		}

		pairs := loss.Pairs(c.In.Success)
		require.Equal(t, c.Out.Pairs, pairs)
		sums, means := credit.Returns(r), make([]float64, n)
		for row, turns := range r {
			means[row], _ = credit.MeanStd(turns)
		}
		l, err := loss.Preference(sums, pairs)
		require.NoError(t, err)
		require.InDelta(t, c.Out.LossSum, l, g.Tolerance)
		l, err = loss.Preference(means, pairs)
		require.NoError(t, err)
		require.InDelta(t, c.Out.LossMeanSteps, l, g.Tolerance)

		in := preferenceInput(c.In.Model, c.In.Old, c.In.Success)
		for _, form := range []struct {
			o    credit.Options
			loss float64
		}{{credit.Options{Own: option.Values{"beta": c.In.Beta}}, c.Out.LossSum}, {credit.Options{Own: option.Values{"beta": c.In.Beta, "code_form": true}}, c.Out.LossMeanSteps}} {
			p, err := Prefer(in, form.o)
			require.NoError(t, err)
			credittest.Within(t, g.Tolerance, r, p.Rewards)
			require.InDelta(t, form.loss, p.Loss, g.Tolerance)
			require.ElementsMatch(t, c.Out.Pairs, p.Pairs)
			hasGradient(t, in, form.o, p)
		}
	}
}

// preferenceInput lays the log-probs of one group out, by turns, in tokens.
func preferenceInput(model, old [][][]float64, success []bool) credit.Input {
	in := credit.Input{Successes: success, Groups: make([]int, len(success))}
	for row, turns := range model {
		var spans []credit.Span
		flat, before := []float64{0}, []float64{0} // a prompt of one token
		for k, tokens := range turns {
			spans = append(spans, credit.Span{From: len(flat), To: len(flat) + len(tokens)})
			flat, before = append(append(flat, tokens...), 0), append(append(before, old[row][k]...), 0)
		}
		in.PRM, in.Old = append(in.PRM, flat), append(in.Old, before)
		in.Turns, in.Lengths = append(in.Turns, spans), append(in.Lengths, len(flat))
	}
	return in
}

// hasGradient compares the weights of the tokens with differences of the loss.
func hasGradient(t *testing.T, in credit.Input, o credit.Options, p credit.Preferences) {
	t.Helper()
	const step = 1e-4
	for row, of := range in.PRM {
		sampled := make([]bool, len(of))
		for _, s := range in.Turns[row] {
			for at := s.From; at < s.To; at++ {
				sampled[at] = true
			}
		}
		for at, was := range of {
			var losses []float64
			for _, by := range []float64{step, -step} {
				of[at] = was + by
				moved, err := Prefer(in, o)
				require.NoError(t, err)
				losses = append(losses, moved.Loss)
			}
			of[at] = was
			require.InDelta(t, -(losses[0]-losses[1])/(2*step), p.Weights[row][at], 1e-7, "row %d, token %d", row, at)
			require.Equal(t, sampled[at] && len(p.Pairs) > 0, p.Weights[row][at] != 0)
		}
	}
}

func TestIStarWorked(t *testing.T) {
	model := [][][]float64{{{3, 1}, {-1, -1}}, {{1}, {1}}}
	old := [][][]float64{{{0, 0}, {0, 0}}, {{0}, {0}}}
	r, err := StepRewards(model, old, .05)
	require.NoError(t, err)
	credittest.Within(t, 1e-12, [][]float64{{.2, -.1}, {.05, .05}}, r)
	z := math.Sqrt(1.5)
	none, group := []float64{0, 0}, []int{0, 0}
	got, err := IStar(none, r, group, 1, credit.Options{NormalizeByStd: true})
	require.NoError(t, err)
	credittest.Within(t, 1e-12, [][]float64{{z, -z}, {0, 0}}, got)
	// First turns .2 and .05: mean .125, times 2.
	got, err = IStarCode([]float64{1, 0}, r, group, .5)
	require.NoError(t, err)
	credittest.Within(t, 1e-12, [][]float64{{1 + .075, 1 - .225}, {-1 - .075, -1 - .075}}, got)
	// Groups do not see each other, and a trajectory may have no turn.
	got, err = IStarCode(none, [][]float64{{.5, 1}, {}}, []int{0, 1}, 1)
	require.NoError(t, err)
	credittest.Within(t, 0, [][]float64{{.5, 1}, {}}, got)
	got, err = IStar([]float64{2, 2}, [][]float64{{.5}, {3}}, []int{0, 1}, 1, credit.Options{NormalizeByStd: true})
	require.NoError(t, err)
	credittest.Within(t, 0, [][]float64{{2}, {2}}, got)
}

// What the reward model of iStar prefers in the batch of TestComputeWorked: see there for the sums q. Of
// six pairs it prefers two right, and one is equal. Their loss is log(1 + e^{q_loser − q_winner}).
func TestPreferWorked(t *testing.T) {
	in := credittest.Batch(t, Entry)
	got, err := Prefer(in, credit.Options{})
	require.NoError(t, err)
	credittest.Within(t, 1e-12, [][]float64{{.15, -.2}, {.1, -.05}, {.1, .05}, {.05}, {.05, 0, -.1}, {-.05, .1}, {}, {.05}}, got.Rewards)
	require.Equal(t, [][2]int{{0, 2}, {0, 3}, {5, 2}, {5, 3}, {1, 4}, {1, 6}}, got.Pairs)
	above := func(x float64) float64 { return math.Log(1 + math.Exp(x)) }
	require.InDelta(t, (above(.2)+2*above(.1)+above(0)+above(-.1)+above(-.05))/6, got.Loss, 1e-12)
	require.InDelta(t, 2./6, got.Right, 1e-12)

	in.Successes = make([]bool, 8)
	none, err := Prefer(in, credit.Options{})
	require.NoError(t, err)
	require.Empty(t, none.Pairs)
	require.Equal(t, 0.0, none.Loss)
	require.Equal(t, 0.0, none.Right)
	for row, weights := range none.Weights {
		require.Equal(t, make([]float64, in.Lengths[row]), weights)
	}
}

func TestOverLargest(t *testing.T) {
	none := [][]float64{{0, 0}, {0}}
	require.Equal(t, none, overLargest(none))
	require.Equal(t, [][]float64{{.5, -1}, {.25}}, overLargest([][]float64{{1, -2}, {.5}}))
}

func TestErrors(t *testing.T) {
	nan := math.NaN()
	of := func(_ any, err error) error { return err }
	one := [][][]float64{{{1}}}
	row := [][]float64{{1}}
	credittest.Refused(t, map[string]credittest.Refusal{
		"step rows":    {of(StepRewards(one, nil, 1)), credit.ErrInput, "log-probs of 1 rows by the reward model and of 0 by the policy"},
		"step beta":    {of(StepRewards(nil, nil, nan)), credit.ErrInput, "beta NaN"},
		"step turns":   {of(StepRewards(one, [][][]float64{{}}, 1)), credit.ErrInput, "row 0 has 1 turns by the reward model and 0"},
		"step tokens":  {of(StepRewards(one, [][][]float64{{{}}}, 1)), credit.ErrInput, "row 0, turn 0 has 1 log-probs"},
		"step NaN":     {of(StepRewards(one, [][][]float64{{{nan}}}, 1)), credit.ErrNotFinite, "the reward of row 0, turn 0 is NaN"},
		"istar rows":   {of(IStar([]float64{1}, nil, []int{0}, 1, credit.Options{})), credit.ErrInput, "1 returns, step rewards of 0 rows"},
		"istar alpha":  {of(IStarCode(nil, nil, nil, nan)), credit.ErrInput, "alpha NaN"},
		"istar reward": {of(IStar([]float64{1}, [][]float64{{nan}}, []int{0}, 1, credit.Options{})), credit.ErrRewards, "row 0, turn 0 has NaN"},
		"istar return": {of(IStar([]float64{nan}, row, []int{0}, 1, credit.Options{})), credit.ErrRewards, "row 0 has NaN"},
	})
}
