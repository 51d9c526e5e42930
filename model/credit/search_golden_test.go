package credit

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/loss"
)

func TestTreeGRPOGolden(t *testing.T) {
	type in struct {
		Tree    []int
		Rewards []float64
		Epsilon float64
	}
	type out struct {
		Inter, Intra, Advantage []float64
		AdvantageCode           []float64 `json:"advantage_code"`
	}
	g := golden.ReadMethod[in, out](t, "tree_grpo")
	for _, c := range g.Cases {
		o := Options{NormalizeByStd: true, Epsilon: c.In.Epsilon}
		one := make([]int, len(c.In.Rewards))
		inter, err := GRPO(c.In.Rewards, one, o)
		require.NoError(t, err)
		golden.Near(t, c.Out.Inter, inter, g.Tolerance)
		intra, err := withinTrees(c.In.Rewards, one, c.In.Tree, o)
		require.NoError(t, err)
		golden.Near(t, c.Out.Intra, intra, g.Tolerance)
		both, err := TreeGRPO(c.In.Rewards, one, c.In.Tree, o)
		require.NoError(t, err)
		golden.Near(t, c.Out.Advantage, both, g.Tolerance)
		code, err := TreeGRPOCode(c.In.Rewards, one, c.In.Tree, o)
		require.NoError(t, err)
		golden.Near(t, c.Out.AdvantageCode, code, g.Tolerance)
	}
}

func TestSeeUPOGolden(t *testing.T) {
	type in struct {
		Groups   []int
		Returns  []float64
		Turns    int
		Before   [][][]float64 `json:"logprob_before_update"`
		After    [][][]float64 `json:"logprob_after_update"`
		ClipLow  float64       `json:"clip_low"`
		ClipHigh float64       `json:"clip_high"`
	}
	type out struct {
		Order      []int
		Base       []float64 `json:"advantage_base"`
		Ratio      [][]float64
		Used       [][]float64 `json:"advantage_used"`
		Correction [][]float64 `json:"correction_after"`
	}
	g := golden.ReadMethod[in, out](t, "seeupo")
	for _, c := range g.Cases {
		base, err := SeeUPO(c.In.Returns, c.In.Groups)
		require.NoError(t, err)
		golden.Near(t, c.Out.Base, base, g.Tolerance)
		m := slices.Repeat([]float64{1}, len(base))
		var order []int
		for k := c.In.Turns - 1; k >= 0; k-- {
			order = append(order, k)
			for row, a := range base {
				require.InDelta(t, c.Out.Used[k][row], float64(a*m[row]), g.Tolerance, "turn %d, row %d", k, row)
			}
			var ratios []float64
			m, ratios, err = SeeUPOCorrections(m, c.In.Before[k], c.In.After[k], c.In.ClipLow, c.In.ClipHigh)
			require.NoError(t, err)
			golden.Near(t, c.Out.Ratio[k], ratios, g.Tolerance, "turn %d", k)
			golden.Near(t, c.Out.Correction[k], m, g.Tolerance, "turn %d", k)
		}
		require.Equal(t, c.Out.Order, order)
	}
}

// A case is one trajectory. high and normalised numbers are at the first turns of segments.
func TestHiPERGolden(t *testing.T) {
	type in struct {
		Rewards       []float64
		Switch        []bool
		Low           []float64 `json:"value_low"`
		High          []float64 `json:"value_high"`
		Term          []float64 `json:"value_term"`
		Gamma         float64
		TurnLambda    float64 `json:"lambda_turn"`
		SegmentLambda float64 `json:"lambda_segment"`
		Done          bool
		Bootstrap     bool `json:"bootstrap_truncated"`
	}
	type out struct {
		Segments       [][2]int
		Low            []float64 `json:"advantage_low"`
		High           []float64 `json:"advantage_high_at_starts"`
		Term           []float64 `json:"advantage_term"`
		ReturnLow      []float64 `json:"return_low"`
		ReturnHigh     []float64 `json:"return_high_at_starts"`
		ReturnTerm     []float64 `json:"return_term"`
		NormalizedLow  []float64 `json:"normalized_low"`
		NormalizedHigh []float64 `json:"normalized_high_at_starts"`
	}
	g := golden.ReadMethod[in, out](t, "hiper")
	for _, c := range g.Cases {
		got, err := HiPER(
			HiPERTurns{Rewards: c.In.Rewards, Switch: c.In.Switch, Low: c.In.Low, High: c.In.High, Choice: c.In.Term, Ended: c.In.Done},
			HiPEROptions{Gamma: c.In.Gamma, TurnLambda: c.In.TurnLambda, SegmentLambda: c.In.SegmentLambda, Bootstrap: c.In.Bootstrap},
		)
		require.NoError(t, err)
		require.Equal(t, c.Out.Segments, got.Segments)
		golden.Near(t, c.Out.Low, got.Low, g.Tolerance)
		golden.Near(t, c.Out.High, got.High, g.Tolerance)
		golden.Near(t, c.Out.Term, got.Choice, g.Tolerance)
		for k := range got.Low {
			require.InDelta(t, c.Out.ReturnLow[k], got.Low[k]+c.In.Low[k], g.Tolerance)
			require.InDelta(t, c.Out.ReturnTerm[k], got.Choice[k]+c.In.Term[k], g.Tolerance)
		}
		require.Len(t, c.Out.ReturnHigh, len(got.High))
		for j, segment := range got.Segments {
			require.InDelta(t, c.Out.ReturnHigh[j], got.High[j]+c.In.High[segment[0]], g.Tolerance)
		}
		low, err := HiPERScale(got.Low)
		require.NoError(t, err)
		golden.Near(t, c.Out.NormalizedLow, low, g.Tolerance)
		high, err := HiPERScale(got.High)
		require.NoError(t, err)
		golden.Near(t, c.Out.NormalizedHigh, high, g.Tolerance)
	}
}

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
		within(t, g.Tolerance, c.Out.StepRewards, r)
		n := len(c.In.Returns)
		group, none := make([]int, n), make([]float64, n)
		episode, err := LeaveOneOut(c.In.Returns, group)
		require.NoError(t, err)
		golden.Near(t, c.Out.Episode, episode, g.Tolerance)

		o := Options{NormalizeByStd: true, Epsilon: 1e-6}
		for _, form := range []struct {
			want    [][]float64
			compute func() ([][]float64, error)
		}{
			{c.Out.StepMeanStd, func() ([][]float64, error) { return IStar(none, r, group, 1, o) }},
			{c.Out.StepMean, func() ([][]float64, error) { return IStar(none, r, group, 1, Options{}) }},
			{c.Out.StepFirst, func() ([][]float64, error) { return IStarCode(none, r, group, 1) }},
			{c.Out.MeanStd, func() ([][]float64, error) { return IStar(c.In.Returns, r, group, c.In.Alpha, o) }},
			{c.Out.First, func() ([][]float64, error) { return IStarCode(c.In.Returns, r, group, c.In.Alpha) }},
		} {
			got, err := form.compute()
			require.NoError(t, err)
			within(t, g.Tolerance, form.want, got)
		}

		pairs := loss.Pairs(c.In.Success)
		require.Equal(t, c.Out.Pairs, pairs)
		sums, means := Returns(r), make([]float64, n)
		for row, turns := range r {
			means[row], _ = MeanStd(turns)
		}
		l, err := loss.Preference(sums, pairs)
		require.NoError(t, err)
		require.InDelta(t, c.Out.LossSum, l, g.Tolerance)
		l, err = loss.Preference(means, pairs)
		require.NoError(t, err)
		require.InDelta(t, c.Out.LossMeanSteps, l, g.Tolerance)

		in := preferenceInput(c.In.Model, c.In.Old, c.In.Success)
		for _, form := range []struct {
			o    Options
			loss float64
		}{{Options{Own: Own{"beta": c.In.Beta}}, c.Out.LossSum}, {Options{Own: Own{"beta": c.In.Beta, "code_form": true}}, c.Out.LossMeanSteps}} {
			p, err := Prefer(in, form.o)
			require.NoError(t, err)
			within(t, g.Tolerance, r, p.Rewards)
			require.InDelta(t, form.loss, p.Loss, g.Tolerance)
			require.ElementsMatch(t, c.Out.Pairs, p.Pairs)
			hasGradient(t, in, form.o, p)
		}
	}
}

// preferenceInput lays the log-probs of one group out, by turns, in tokens.
func preferenceInput(model, old [][][]float64, success []bool) Input {
	in := Input{Successes: success, Groups: make([]int, len(success))}
	for row, turns := range model {
		var spans []Span
		flat, before := []float64{0}, []float64{0} // a prompt of one token
		for k, tokens := range turns {
			spans = append(spans, Span{From: len(flat), To: len(flat) + len(tokens)})
			flat, before = append(append(flat, tokens...), 0), append(append(before, old[row][k]...), 0)
		}
		in.PRM, in.Old = append(in.PRM, flat), append(in.Old, before)
		in.Turns, in.Lengths = append(in.Turns, spans), append(in.Lengths, len(flat))
	}
	return in
}

// hasGradient compares the weights of the tokens with differences of the loss.
func hasGradient(t *testing.T, in Input, o Options, p Preferences) {
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

// The second paper of the name learns temporal differences: GAE over turns.
func TestAgentPRMGolden(t *testing.T) {
	type in struct {
		Gamma        float64
		Trajectories []struct {
			Steps   []string
			Outcome float64
		}
		Predictions map[string]float64
		TDValues    []float64 `json:"td_values"`
		TDRewards   []float64 `json:"td_rewards"`
		TDLambda    float64   `json:"td_lambda"`
	}
	type out struct {
		Q           map[string]float64
		Visits      map[string]int
		QCode       map[string]float64 `json:"q_code"`
		SoftBCE     float64            `json:"soft_bce"`
		TDAdvantage []float64          `json:"td_advantage"`
		TDTarget    []float64          `json:"td_target"`
	}
	g := golden.ReadMethod[in, out](t, "agentprm")
	for _, c := range g.Cases {
		var keys [][]string
		var outcomes []float64
		for _, row := range c.In.Trajectories {
			keys, outcomes = append(keys, row.Steps), append(outcomes, row.Outcome)
		}
		q, err := Promises(keys, outcomes, c.In.Gamma)
		require.NoError(t, err)
		code, err := PromisesCode(keys, outcomes, c.In.Gamma)
		require.NoError(t, err)
		require.Len(t, q, len(c.Out.Q))
		require.Len(t, code, len(c.Out.QCode))
		var targets, predictions []float64
		for i, p := range q {
			require.InDelta(t, c.Out.Q[p.Key], p.Value, g.Tolerance, p.Key)
			require.Equal(t, c.Out.Visits[p.Key], p.Visits, p.Key)
			require.Equal(t, p.Key, code[i].Key)
			require.InDelta(t, c.Out.QCode[p.Key], code[i].Value, g.Tolerance, p.Key)
			targets, predictions = append(targets, p.Value), append(predictions, c.In.Predictions[p.Key])
		}
		l, err := loss.SoftCrossEntropy(targets, predictions)
		require.NoError(t, err)
		require.InDelta(t, c.Out.SoftBCE, l, g.Tolerance)

		td, err := TurnAdvantages([][]float64{c.In.TDRewards}, [][]float64{c.In.TDValues}, c.In.Gamma, c.In.TDLambda)
		require.NoError(t, err)
		golden.Near(t, c.Out.TDAdvantage, td[0], g.Tolerance)
		for k, a := range td[0] {
			require.InDelta(t, c.Out.TDTarget[k], a+c.In.TDValues[k], g.Tolerance)
		}
	}
}
