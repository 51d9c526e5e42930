package agentprm

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/option"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

// Two rows do the same first, and then part: one succeeds, and has a turn that the other has not.
func TestAgentPRM(t *testing.T) {
	spans := func(turns int) (out []credit.Span, length int) {
		for k := range turns {
			out = append(out, credit.Span{From: 3*k + 1, To: 3*k + 3})
		}
		return out, 3 * turns
	}
	in := credit.Input{
		Groups: []int{0, 0}, Successes: []bool{true, false},
		Keys:    [][]string{{"s0", "s1", "s2"}, {"s0", "s1"}},
		Actions: [][]string{{"a", "b", "c"}, {"a", "other"}},
	}
	for _, turns := range []int{3, 2} {
		s, n := spans(turns)
		in.Turns, in.Lengths = append(in.Turns, s), append(in.Lengths, n)
		values := make([]float64, n)
		for k, of := range s {
			values[of.From], values[of.To-1] = 100, float64(k-turns) // the first is not read
		}
		in.Values = append(in.Values, values)
	}
	in.Mask = [][]bool{make([]bool, 9), make([]bool, 6)}
	q := func(f float64) float64 { return 1 / (1 + math.Exp(-f)) }
	advantages, targets, err := AgentPRM(in, credit.Options{Gamma: 0.95})
	require.NoError(t, err)
	golden.Near(t, []float64{(q(-3) - q(-2)) / 2, (q(-2) - q(-1)) / 2, 0}, advantages[0], 1e-12)
	golden.Near(t, []float64{(q(-2) - q(-3)) / 2, (q(-1) - q(-2)) / 2}, advantages[1], 1e-12)
	golden.Near(t, []float64{0, 0, 0.95 * 0.95 / 2, 0, 0, 0.95, 0, 0, 1}, targets[0], 1e-12)
	golden.Near(t, []float64{0, 0, 0.95 * 0.95 / 2, 0, 0, 0}, targets[1], 1e-12)

	scaled, _, err := AgentPRM(in, credit.Options{Gamma: 0.95, NormalizeByStd: true})
	require.NoError(t, err)
	require.InDelta(t, -1/math.Sqrt2, scaled[0][0], 1e-9)

	_, targets, err = AgentPRM(in, credit.Options{Gamma: 0.95, Own: option.Values{"code_form": true}})
	require.NoError(t, err)
	require.InDelta(t, 0.5, targets[0][2], 1e-12, "the code discounts from the start")
	require.InDelta(t, (1-0.95)/2, targets[1][5], 1e-12)

	// The same state after other turns is another.
	in.Keys[1][1], in.Actions[1] = "s1", []string{"z", "b"}
	_, targets, err = AgentPRM(in, credit.Options{Gamma: 0.95})
	require.NoError(t, err)
	require.InDelta(t, 0.95, targets[0][5], 1e-12)
	require.Zero(t, targets[1][5])

	in.Values[0][2] = math.NaN()
	_, _, err = AgentPRM(in, credit.Options{Gamma: 0.95})
	require.ErrorIs(t, err, credit.ErrNotFinite)
	in.Actions = nil
	_, _, err = AgentPRM(in, credit.Options{Gamma: 0.95})
	require.ErrorIs(t, err, credit.ErrInput)
}

// The numbers td_* are the second paper's, which gae computes.
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
		require.InDelta(t, c.Out.SoftBCE, golden.SoftCrossEntropy(targets, predictions), g.Tolerance)
	}
}

func TestPromisesWorked(t *testing.T) {
	keys, outcomes := [][]string{{"a", "b", "c"}, {"a", "d", "a"}}, []float64{1, 0}
	got, err := Promises(keys[:1], outcomes[:1], .95)
	require.NoError(t, err)
	require.InDelta(t, .95*.95, got[0].Value, 1e-12)
	require.Equal(t, 1.0, got[2].Value)
	got, err = Promises([][]string{{"a", "b", "c"}, {"a", "d", "e"}}, outcomes, .95)
	require.NoError(t, err)
	require.InDelta(t, .45125, got[0].Value, 1e-12)
	code, err := PromisesCode([][]string{{"a", "b", "c"}, {"a", "d", "e"}}, outcomes, .95)
	require.NoError(t, err)
	require.InDelta(t, .5, code[0].Value, 1e-12)
	require.InDelta(t, (1-.95*.95)/2, code[4].Value, 1e-12, "a late failure is half a success")
	got, err = Promises(keys, outcomes, .95)
	require.NoError(t, err)
	require.Equal(t, "a", got[0].Key)
	require.Equal(t, 3, got[0].Visits, "each visit counts")
	got, err = Promises(nil, nil, 1)
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestErrors(t *testing.T) {
	of := func(_ any, err error) error { return err }
	credittest.Refused(t, map[string]credittest.Refusal{
		"promise gamma":   {of(Promises(nil, nil, 2)), credit.ErrInput, "Gamma is 2"},
		"promise rows":    {of(Promises(nil, []float64{1}, 1)), credit.ErrRewards, "1 rewards, 0 rows of keys"},
		"promise outcome": {of(PromisesCode([][]string{{"a"}}, []float64{2}, 1)), credit.ErrRewards, "the outcome of row 0 is 2"},
	})
}

func TestRanges(t *testing.T) {
	of := func(_ any, err error) error { return err }
	outcome := func(x float64) error { return of(Promises([][]string{{"a"}}, []float64{x}, 1)) }
	credittest.Ranges(t, map[string]credittest.Range{
		"unit below 0":    {of(Promises(nil, nil, -1e-9)), credit.ErrInput},
		"unit 0":          {of(Promises(nil, nil, 0)), nil},
		"unit 1":          {of(Promises(nil, nil, 1)), nil},
		"unit above 1":    {of(Promises(nil, nil, 1.005)), credit.ErrInput},
		"outcome below 0": {outcome(-1e-9), credit.ErrRewards},
		"outcome 0":       {outcome(0), nil},
		"outcome 1":       {outcome(1), nil},
		"outcome above 1": {outcome(1.005), credit.ErrRewards},
	})
}
