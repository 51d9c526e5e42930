package gae

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

// With one turn a row, TurnReturns is GAE over it; the critic learns one token of each turn.
func TestTurnReturns(t *testing.T) {
	rewards, turns := [][]float64{{1, 2}}, make([][]credit.Span, 1)
	turns[0], _ = credittest.SpansOf([]int{2, 3})
	values := [][]float64{{.5, .25, -1, 0, 4}}
	// δ_1 = 2 − V_1, δ_0 = 1 + γV_1 − V_0, A_0 = δ_0 + γλA_1.
	for place, want := range map[string]struct {
		advantages, returns []float64
		learns              []bool
	}{
		credit.LastPromptToken: {[]float64{.75, .75, 3, 3, 3}, []float64{1.25, 0, 2, 0, 0}, []bool{true, false, true, false, false}},
		credit.FinalToken:      {[]float64{2.25, 2.25, -2, -2, -2}, []float64{0, 2.5, 0, 0, 2}, []bool{false, true, false, false, true}},
	} {
		a, g, learns, err := TurnReturns(rewards, values, turns, credit.Options{TurnGamma: .5, TurnLambda: .5, ValueAt: place})
		require.NoError(t, err)
		require.Equal(t, want.advantages, a[0], place)
		require.Equal(t, want.returns, g[0], place)
		require.Equal(t, want.learns, learns[0], place)
	}
	white, _, _, err := TurnReturns(rewards, values, turns, credit.Options{TurnGamma: .5, TurnLambda: .5, Whiten: true})
	require.NoError(t, err)
	var sum float64
	for _, a := range white[0] {
		sum += a
	}
	require.InDelta(t, 0, sum, 1e-12)
	_, _, _, err = TurnReturns(rewards, values, turns, credit.Options{ValueAt: "middle"})
	require.ErrorIs(t, err, credit.ErrInput)
	require.True(t, strings.Contains(err.Error(), `value place "middle"`))
}

// The critic of turn_returns learns where TurnReturns says.
func TestWhatTurnReturnsLearns(t *testing.T) {
	in := credittest.Rollout(t, credittest.SomeOptions)
	_, _, want, err := TurnReturns(in.Rewards, in.Values, in.Turns, credittest.SomeOptions)
	require.NoError(t, err)
	require.Equal(t, want, EntryTurnReturns.Learns(in, credittest.SomeOptions))
}

// The second paper of the name learns temporal differences: GAE over turns. The other numbers are those of
// the room agentprm, which has the same golden.
func TestTurnAdvantagesGolden(t *testing.T) {
	type in struct {
		Gamma        float64
		Trajectories json.RawMessage
		Predictions  json.RawMessage
		TDValues     []float64 `json:"td_values"`
		TDRewards    []float64 `json:"td_rewards"`
		TDLambda     float64   `json:"td_lambda"`
	}
	type out struct {
		Q, Visits   json.RawMessage
		QCode       json.RawMessage `json:"q_code"`
		SoftBCE     json.RawMessage `json:"soft_bce"`
		TDAdvantage []float64       `json:"td_advantage"`
		TDTarget    []float64       `json:"td_target"`
	}
	g := golden.ReadMethod[in, out](t, "agentprm")
	for _, c := range g.Cases {
		td, err := TurnAdvantages([][]float64{c.In.TDRewards}, [][]float64{c.In.TDValues}, c.In.Gamma, c.In.TDLambda)
		require.NoError(t, err)
		golden.Near(t, c.Out.TDAdvantage, td[0], g.Tolerance)
		for k, a := range td[0] {
			require.InDelta(t, c.Out.TDTarget[k], a+c.In.TDValues[k], g.Tolerance)
		}
	}
}
