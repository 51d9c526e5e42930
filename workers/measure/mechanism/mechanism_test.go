package mechanism

import (
	"flag"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table of docs/algorithms.md anew")

const (
	page        = "../../../docs/algorithms.md"
	begin, over = "<!-- mechanism: written by go test ./workers/measure/mechanism -update -->\n", "<!-- end -->"
)

// The page has the table that the program prints.
func TestDocsHaveTheTable(t *testing.T) {
	var table strings.Builder
	require.NoError(t, Run(t.Context(), &table))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	shown, after, found := strings.Cut(rest, over)
	require.True(t, found)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+table.String()+over+after), 0o644))
		return
	}
	require.Equal(t, table.String(), shown, "go test ./workers/measure/mechanism -update writes it anew")
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
	lakes := make([]*Lake, len(layouts))
	for i, layout := range layouts {
		l, err := NewLake(layout)
		require.NoError(t, err)
		lakes[i] = l
	}
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
	methods, figures, err := Measure(t.Context())
	require.NoError(t, err)
	of := func(name, setting string) Figures {
		for i, m := range methods {
			if m.Name == name && m.Setting == setting {
				return figures[i]
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
}
