package mechanism

import (
	"bytes"
	"context"
	"flag"
	"math"
	"os"
	"sync"
	"testing"

	"github.com/reprise-rl/reprise/infra/pagetest"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/results/mechanism.md anew")

const (
	page = "../../../docs/results/mechanism.md"
	// text is what the page says around the tables, each of which has the place of a line.
	text = "testdata/page.md"
)

// measured is everything that Run prints, which several tests read.
var measured = sync.OnceValues(func() (m struct {
	methods []Method
	figures []Figures
	gains   []Gain
}, err error) {
	if m.methods, m.figures, err = Measure(context.Background()); err == nil {
		m.gains, err = MeasureSearches(context.Background())
	}
	return m, err
})

// The page has the tables that the program prints.
func TestPageHasTheTables(t *testing.T) {
	methodstest.NeedsAll(t)
	m, err := measured()
	require.NoError(t, err)
	want, err := os.ReadFile(text)
	require.NoError(t, err)
	for place, table := range map[string]string{"\nADVANTAGES\n": Markdown(m.methods, m.figures), "\nSEARCHES\n": SearchMarkdown(m.gains)} {
		require.Equal(t, 1, bytes.Count(want, []byte(place)), place)
		want = bytes.Replace(want, []byte(place), []byte("\n"+table+"\n"), 1)
	}
	pagetest.Same(t, page, string(want), *update)
}

// The true advantages are those of the gradient: a small change of a logit changes the
// expected return as they say.
func TestTruthIsTheGradient(t *testing.T) {
	const small = 1e-5
	for _, layout := range layouts {
		l, err := NewLake(layout)
		require.NoError(t, err)
		gradient := trueGradient([]*Lake{l})
		moved := func(cell, action int, by float64) float64 {
			other := &Lake{table: l.table, start: l.start, policy: l.policy}
			sum := 0.0
			other.policy[cell][action] *= math.Exp(by)
			for _, p := range other.policy[cell] {
				sum += p
			}
			for a := range other.policy[cell] {
				other.policy[cell][a] /= sum
			}
			other.enumerate()
			return other.values[0][l.start]
		}
		for cell := range cells {
			for action := range Actions {
				slope := (moved(cell, action, small) - moved(cell, action, -small)) / (2 * small)
				require.InDelta(t, slope, gradient[cell*Actions+action], 1e-9, "%q, cell %d, answer %d", layout, cell, action)
			}
		}
	}
}

// What is played has the probabilities that were enumerated.
func TestPlayedAsEnumerated(t *testing.T) {
	lakes, err := newLakes()
	require.NoError(t, err)
	var sum, n [4]float64
	for batch := range 40 {
		b, err := Play(lakes, batch)
		require.NoError(t, err)
		for row, r := range b.Returns {
			of := b.Decisions[row][0].Lake
			sum[of] += r
			n[of]++
		}
	}
	for of, l := range lakes {
		require.InDelta(t, l.values[0][l.start], sum[of]/n[of], 4*0.5/math.Sqrt(n[of]), "lake %d", of)
	}
}

// What the table must show: without a division by the group's deviation the expected
// gradient is right, and a critic that is right leaves no error at λ = 0.
func TestFiguresOfKnownEstimates(t *testing.T) {
	methodstest.NeedsAll(t)
	all, err := measured()
	require.NoError(t, err)
	of := func(name, setting string) Figures {
		for i, m := range all.methods {
			if m.Credit.Algorithm == name && m.Setting == setting {
				return all.figures[i]
			}
		}
		require.Fail(t, "no such method", "%s, %s", name, setting)
		return Figures{}
	}
	exact := of("gae", "true values, λ 0")
	require.InDelta(t, 1, exact.Scale, 1e-9)
	require.InDelta(t, 0, exact.Bias, 1e-9)
	require.InDelta(t, 0, exact.Noise, 1e-6)
	require.Zero(t, exact.WrongSign)
	for _, setting := range []string{"", "LOOP: \\|A\\| < 0.01 left out"} {
		require.Less(t, of("leave_one_out", setting).Tilt, 0.05)
	}
	require.Less(t, of("gae", "true values, λ 1").Bias, 0.05)
	require.Greater(t, of("grpo", "").Tilt, 0.15, "groups of rare success count more")
	require.Greater(t, of("dr_grpo", "").Bias, 0.3, "a later turn is compared with the whole episode")
	require.Less(t, of("turn_returns", "true values at final_token").Scale, 0.05, "the value knows the answer already")
	require.Greater(t, of("dr_grpo", "StarPO-S: top_fraction 0.25").Tilt, of("dr_grpo", "").Tilt+0.3, "lucky groups")
	require.InDelta(t, of("gae", "true values, λ 1").Noise, of("hiper", "true values, one subgoal").Noise, 1e-9, "one segment is GAE")
	require.Less(t, of("hiper", "true values, a subgoal a turn").Noise, of("hiper", "true values, one subgoal").Noise-0.3, "nothing later than the segment")
	require.Less(t, of("seeupo", "before its corrections").Tilt, 0.05)
	require.Less(t, of("agent_prm", "targets of the batch, γ 0.95").WrongSign, 0.1)
	require.Less(t, of("deep_grpo", "the branches alone").Tilt, 0.05, "siblings begin in one state")
	shared := of("tree_grpo", "4 trees of 4 leaves")
	require.Less(t, shared.Tokens, 0.8)
	require.Greater(t, of("tree_grpo", "its code").Bias, shared.Bias+0.2, "which tree is better is lost")
}
