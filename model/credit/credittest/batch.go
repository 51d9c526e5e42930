package credittest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
)

// At is the span of some tokens.
func At(from, to int) credit.Span { return credit.Span{From: from, To: to} }

// notRead stands at the tokens of a batch whose numbers no algorithm reads.
const notRead = 99

// Figures reads rows of numbers, a line a row; sampled is false at _, whose number is none.
func Figures(t *testing.T, text string, none float64) (numbers [][]float64, sampled [][]bool) {
	t.Helper()
	for line := range strings.Lines(strings.Trim(text, "\n")) {
		var row []float64
		var mask []bool
		for field := range strings.FieldsSeq(line) {
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

// Batch is the batch that testdata/compute.txt of each room works out, as the algorithm reads it.
func Batch(t *testing.T, a credit.Algorithm) credit.Input {
	t.Helper()
	in := batch(t)
	if a.BySubgoals {
		ofSubgoals(t, &in)
	}
	return in
}

// batch is what testdata/compute.txt of each room works out: three groups of four, three and one rows. Row 0 has a
// turn of four tokens and one of two, the turns of row 1 adjoin, rows 2 and 3 pay nothing, row 4 pays
// nothing in two of three turns, row 6 has no turn.
func batch(t *testing.T) credit.Input {
	t.Helper()
	in := credit.Input{
		Turns: [][]credit.Span{
			{At(1, 5), At(6, 8)}, {At(0, 2), At(2, 3)}, {At(1, 2), At(3, 6)}, {At(1, 3)}, {At(1, 2), At(3, 4), At(5, 6)},
			{At(0, 1), At(2, 4)}, {}, {At(1, 2)},
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
		Past:      []credit.StateValue{{Key: "k", Count: 2, Value: 0.5}},
		Successes: []bool{true, true, false, false, false, true, false, true},
		Parts:     [][]float64{{1, 1}, {1, 0}, {0, 0}, {0, 1}, {-1, 0}, {1, 0}, {0, 2}, {1, 1}}, PartWeights: []float64{0.5, 2},
		Entropies: [][]float64{{0.5, 1}, {0, 1.5}, {2, 1}, {0.5}, {1, 0, 2}, {1.5, 0.5}, {}, {1}},
		Invalid:   [][]bool{{false, true}, {false, false}, {false, false}, {false}, {true, false, false}, {false, false}, {}, {false}},
		// The second depends on the first. Row 0 meets both in its first turn, row 4 one after the other, row 2
		// the second alone, which does not count.
		Criteria: [][][]bool{
			{{true, true, false}, {false, false, false}}, {{false, false, true}, {true, false, false}}, {{false, true, false}, {false, true, true}},
			{{true, false, true}}, {{true, false, false}, {false, false, false}, {false, true, true}}, {{false, false, false}, {true, false, false}},
			{}, {{true, true, true}},
		},
		CriteriaWeights: []float64{0.5, 0.25, 2}, CriteriaAfter: []int{-1, 0, -1},
		Open:     []bool{false, false, false, false, false, true, false, true},
		Informed: []bool{true, true, true, false, true, true, true, true},
		// In the middle of its turn, at its end, twice in a row, without a subgoal, without an answer; kept, changed without a
		// switch, and switched.
		Subgoals: [][]credit.Subgoal{
			{
				{Choice: At(1, 2), Goal: At(2, 3), Action: At(3, 5), Switches: true, Text: "a"},
				{Choice: At(6, 7), Action: At(7, 8), Text: "a"},
			},
			{{Choice: At(0, 1), Goal: At(1, 2), Text: "b"}, {Goal: At(2, 3), Action: At(2, 3), Text: "c"}},
			{{Action: At(1, 2), Text: "d"}, {Choice: At(3, 4), Goal: At(4, 5), Action: At(5, 6), Switches: true, Text: "e"}},
			{{Goal: At(1, 2), Action: At(2, 3), Switches: true, Text: "f"}},
			{{Action: At(1, 2), Text: "g"}, {Choice: At(3, 4), Text: "g"}, {Goal: At(5, 6), Switches: true, Text: "h"}},
			{{Action: At(0, 1), Text: "i"}, {Choice: At(2, 3), Action: At(3, 4), Text: "j"}},
			{},
			{{Choice: At(1, 2), Action: At(1, 2), Text: "k"}},
		},
	}
	var sampled [][]bool
	in.Values, sampled = Figures(t, `
_ .5 1 0 -1 _ 1.5 -.5 _
.25 -1 .5 _
_ 1 _ 0 .5 -.25
_ -.5 .25
_ .5 _ -.25 _ 0
1 _ -.5 .75
_
_ 1 _`, notRead)
	in.PRM, _ = Figures(t, `
_ -1 -2 -1 -1 _ -4 -2 _
-1 -2 -3 _
_ -1 _ -2 -2 -1
_ -2 -2
_ -1 _ -1 _ -3
-2 _ -1 -1
_
_ -1 _`, notRead)
	in.Teacher, _ = Figures(t, `
_ -1 -2 -3 -2 _ -.5 -1 _
-2 -1 -2 _
_ -3 _ -4 -1 -2
_ -.25 -1
_ -2 _ -2 _ -.5
-3 _ -2 -1
_
_ -.5 _`, notRead)
	in.Old, _ = Figures(t, `
_ -2 -2 -3 -1 _ -1 -1 _
-1 -4 -2 _
_ -3 _ -1 -3 -2
_ -4 -1
_ -2 _ -1 _ -1
-1 _ -2 -2
_
_ -2 _`, notRead)
	in.SumSquares, _ = Figures(t, `
_ .25 .5 .75 .25 _ .5 .25 _
.5 .75 .25 _
_ .5 _ .25 .75 .25
_ .5 .25
_ .25 _ .5 _ .25
.5 _ .75 .25
_
_ .5 _`, notRead)
	var err error
	in.Mask, err = credit.Mask(in.Turns, in.Lengths)
	require.NoError(t, err)
	require.Equal(t, in.Mask, sampled)
	in.Tokens, err = credit.TokenRewards(in.Rewards, in.Turns, in.Lengths, credit.AtTurns)
	require.NoError(t, err)
	return in
}

// ofSubgoals puts the three values of each token, for an algorithm that reads subgoals, in the place of the one.
func ofSubgoals(t *testing.T, in *credit.Input) {
	t.Helper()
	high, _ := Figures(t, `
_ 1 _ _ _ _ _ _ _
.5 _ _ _
_ .25 _ 1 _ _
_ -.5 _
_ 0 _ _ _ 1
.75 _ _ _
_
_ .5 _`, notRead)
	low, _ := Figures(t, `
_ _ _ .5 _ _ _ .25 _
_ 1 -.5 _
_ .5 _ _ _ .75
_ _ .25
_ .5 _ .25 _ -.25
0 _ _ .5
_
_ 1.5 _`, notRead)
	choice, _ := Figures(t, `
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
