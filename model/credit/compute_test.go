package credit

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// notRead stands at the tokens of a batch whose numbers no algorithm reads.
const notRead = 99

// figures reads rows of numbers, a line a row; sampled is false at _, whose number is none.
func figures(t *testing.T, text string, none float64) (numbers [][]float64, sampled [][]bool) {
	t.Helper()
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		var row []float64
		var mask []bool
		for _, field := range strings.Fields(line) {
			x := none
			if field != "_" {
				var err error
				x, err = strconv.ParseFloat(field, 64)
				require.NoError(t, err)
			}
			row, mask = append(row, x), append(mask, field != "_")
		}
		numbers, sampled = append(numbers, row), append(sampled, mask)
	}
	return numbers, sampled
}

// theBatch is what testdata/compute.txt works out: three groups of four, three and one rows. Row 0 has a
// turn of four tokens and one of two, the turns of row 1 adjoin, rows 2 and 3 pay nothing, row 4 pays
// nothing in two of three turns, row 6 has no turn.
func theBatch(t *testing.T) Input {
	t.Helper()
	in := Input{
		Turns: [][]Span{
			{{1, 5}, {6, 8}}, {{0, 2}, {2, 3}}, {{1, 2}, {3, 6}}, {{1, 3}}, {{1, 2}, {3, 4}, {5, 6}}, {{0, 1}, {2, 4}}, {}, {{1, 2}},
		},
		Lengths: []int{9, 4, 6, 3, 6, 4, 1, 3},
		Groups:  []int{4, 7, 4, 4, 7, 4, 7, 2},
		Rewards: [][]float64{{1, 2}, {0, 1}, {0, 0}, {0}, {0, -1, 0}, {1, 0}, {}, {2}},
		Returns: []float64{3, 1, 0, 0, -1, 1, 0, 2},
		Keys:    [][]string{{"s", "t"}, {"s", "t"}, {"s", "u"}, {"s"}, {"s", "s", "t"}, {"s", "t"}, {}, {"s"}},
		Actions: [][]string{{"a", "b"}, {"a", "a"}, {"a", "b"}, {"a"}, {"a", "b", "a"}, {"c", "b"}, {}, {"a"}},
		Agents:  [][]string{{"x", "y"}, {"x", "x"}, {"y", "x"}, {"x"}, {"x", "y", "x"}, {"x", "y"}, {}, {"y"}},
		// Trees are told apart within a group only. Rows 3 and 5 are branches of one tree.
		Trees:    []int{0, 0, 0, 1, 0, 1, 1, 0},
		Branches: []bool{false, false, true, true, true, true, false, false},
		// State k is known, m and n are not; n is alone.
		Starts:    []string{"k", "k", "m", "m", "m", "n", "k", "m"},
		Past:      []StateValue{{Key: "k", Count: 2, Value: 0.5}},
		Successes: []bool{true, true, false, false, false, true, false, true},
		Parts:     [][]float64{{1, 1}, {1, 0}, {0, 0}, {0, 1}, {-1, 0}, {1, 0}, {0, 2}, {1, 1}}, PartWeights: []float64{0.5, 2},
		Entropies: [][]float64{{0.5, 1}, {0, 1.5}, {2, 1}, {0.5}, {1, 0, 2}, {1.5, 0.5}, {}, {1}},
		Invalid:   [][]bool{{false, true}, {false, false}, {false, false}, {false}, {true, false, false}, {false, false}, {}, {false}},
		Cut:       []bool{false, false, false, false, false, true, false, true},
		// In the middle of its turn, at its end, twice in a row, without a subgoal; kept, changed without a
		// switch, and switched.
		Subgoals: [][]Subgoal{
			{
				{Choice: Span{1, 2}, Goal: Span{2, 3}, Action: Span{3, 5}, Switches: true, Text: "a"},
				{Choice: Span{6, 7}, Action: Span{7, 8}, Text: "a"},
			},
			{{Choice: Span{0, 1}, Goal: Span{1, 2}, Text: "b"}, {Action: Span{2, 3}, Text: "c"}},
			{{Action: Span{1, 2}, Text: "d"}, {Choice: Span{3, 4}, Goal: Span{4, 5}, Action: Span{5, 6}, Switches: true, Text: "e"}},
			{{Goal: Span{1, 2}, Action: Span{2, 3}, Switches: true, Text: "f"}},
			{{Action: Span{1, 2}, Text: "g"}, {Choice: Span{3, 4}, Text: "g"}, {Goal: Span{5, 6}, Switches: true, Text: "h"}},
			{{Action: Span{0, 1}, Text: "i"}, {Choice: Span{2, 3}, Action: Span{3, 4}, Text: "j"}},
			{},
			{{Choice: Span{1, 2}, Action: Span{1, 2}, Text: "k"}},
		},
	}
	var sampled [][]bool
	in.Values, sampled = figures(t, `
_ .5 1 0 -1 _ 1.5 -.5 _
.25 -1 .5 _
_ 1 _ 0 .5 -.25
_ -.5 .25
_ .5 _ -.25 _ 0
1 _ -.5 .75
_
_ 1 _`, notRead)
	in.PRM, _ = figures(t, `
_ -1 -2 -1 -1 _ -4 -2 _
-1 -2 -3 _
_ -1 _ -2 -2 -1
_ -2 -2
_ -1 _ -1 _ -3
-2 _ -1 -1
_
_ -1 _`, notRead)
	in.Old, _ = figures(t, `
_ -2 -2 -3 -1 _ -1 -1 _
-1 -4 -2 _
_ -3 _ -1 -3 -2
_ -4 -1
_ -2 _ -1 _ -1
-1 _ -2 -2
_
_ -2 _`, notRead)
	var err error
	in.Mask, err = Mask(in.Turns, in.Lengths)
	require.NoError(t, err)
	require.Equal(t, in.Mask, sampled)
	in.Tokens, err = TokenRewards(in.Rewards, in.Turns, in.Lengths, AtTurns)
	require.NoError(t, err)
	return in
}

// ofSubgoals puts HiPER's three values of each token in the place of the one.
func ofSubgoals(t *testing.T, in *Input) {
	t.Helper()
	high, _ := figures(t, `
_ 1 _ _ _ _ _ _ _
.5 _ _ _
_ .25 _ 1 _ _
_ -.5 _
_ 0 _ _ _ 1
.75 _ _ _
_
_ .5 _`, notRead)
	low, _ := figures(t, `
_ _ _ .5 _ _ .25 _ _
_ 1 -.5 _
_ .5 _ _ _ .75
_ _ .25
_ .5 _ .25 _ -.25
0 _ .5 _
_
_ 1.5 _`, notRead)
	choice, _ := figures(t, `
_ .25 _ _ _ _ 1 _ _
0 _ .5 _
_ 1 _ -.5 _ _
_ .25 _
_ .5 _ 1 _ 0
-.25 _ .75 _
_
_ .5 _`, notRead)
	for row := range in.Values {
		in.Values[row] = nil
		for at := range in.Lengths[row] {
			in.Values[row] = append(in.Values[row], high[row][at], low[row][at], choice[row][at])
		}
	}
}

// Each algorithm of the table, by the layer that a run calls: with its name alone, which pins every
// default, and with options that it reads. Advantages, returns and the places of what is learned are
// worked out in testdata/compute.txt.
func TestComputeWorked(t *testing.T) {
	content, err := os.ReadFile("testdata/compute.txt")
	require.NoError(t, err)
	defaults, given := map[string]bool{}, map[string]bool{}
	for section := range strings.SplitSeq(string(content), "\n\nalgorithm ") {
		if strings.HasPrefix(section, "#") {
			continue // what the file says of itself
		}
		title, figured, _ := strings.Cut(section, "\n#")
		title = strings.Join(strings.Fields(title), " ")
		t.Run(title, func(t *testing.T) {
			name, written, _ := strings.Cut(title, " ")
			o := Options{Algorithm: name}
			require.NoError(t, json.Unmarshal([]byte(written), &o))
			a, ok := Find(name)
			require.True(t, ok)
			defaults[name], given[name] = defaults[name] || written == "{}", given[name] || written != "{}"

			_, figured, ok = strings.Cut(figured, "advantages\n")
			require.True(t, ok)
			wanted, learned, second := strings.Cut(figured, "\nreturns\n")
			batch := func() Input {
				in := theBatch(t)
				if a.Values == hiperValues {
					ofSubgoals(t, &in)
				}
				return in
			}
			in := batch()
			advantages, returns, err := Compute(in, o)
			require.NoError(t, err)
			want, sampled := figures(t, wanted, 0)
			require.Equal(t, in.Mask, sampled)
			exact(t, want, advantages, sampled)
			require.Equal(t, second, returns != nil)
			if second {
				want, places := figures(t, learned, 0)
				exact(t, want, returns, places)
				learns := in.Mask
				if a.Learns != nil {
					learns = a.Learns(in, o)
				}
				require.Equal(t, places, learns, "what is learned")
			}
			require.Equal(t, batch(), in, "the batch is not changed")
		})
	}
	for _, a := range Algorithms {
		require.True(t, defaults[a.Name], "%s with its name alone", a.Name)
		only := len(a.Fields()) == 0 || a.Name == "state_baseline" // its rate is for Observe
		require.Equal(t, !only, given[a.Name], "%s with options", a.Name)
	}
}

// exact compares figures of seven digits where places are true, and wants 0 itself elsewhere.
func exact(t *testing.T, want, got [][]float64, places [][]bool) {
	t.Helper()
	require.Len(t, got, len(want))
	for row := range want {
		require.Len(t, got[row], len(want[row]), "row %d", row)
		for at, yes := range places[row] {
			if yes {
				require.InDelta(t, want[row][at], got[row][at], 1e-7, "row %d, %d", row, at)
			} else {
				require.Equal(t, 0.0, got[row][at], "row %d, %d", row, at)
			}
		}
	}
}

// Nothing is learned at other places than those of Learns, or of the mask, whatever the rollout.
func TestReturnsAreWhereTheyAreLearned(t *testing.T) {
	for _, a := range Algorithms {
		in := inputOf(t, someOptions)
		learns := in.Mask
		for row, values := range in.Values {
			for range max(a.Values, 1) - 1 {
				in.Values[row] = append(in.Values[row], values...)
			}
		}
		o := someOptions
		o.Algorithm = a.Name
		_, returns, err := Compute(in, o)
		require.NoError(t, err)
		if returns == nil {
			require.Nil(t, a.Learns, a.Name)
			continue
		}
		if a.Learns != nil {
			learns = a.Learns(in, o)
		}
		some := false
		for row := range returns {
			require.Len(t, learns[row], len(returns[row]), a.Name)
			for at, g := range returns[row] {
				some = some || learns[row][at]
				require.True(t, g == 0 || learns[row][at], "%s: row %d, %d has %v", a.Name, row, at, g)
			}
		}
		require.True(t, some, a.Name)
	}
}
