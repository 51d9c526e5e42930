package reward

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The places where a comparison turns: just below, at and just above.
func TestEdges(t *testing.T) {
	// A mean F1 below 0.35 is a template.
	for mean, want := range map[float64]float64{0: -.1, .3499: -.1, .35: .35, .3501: .3501, 1: 1} {
		require.Equal(t, want, State([]float64{mean}, true), "a frequent text with %v", mean)
		require.Equal(t, mean, State([]float64{mean}, false), "a rare one with %v", mean)
	}
	// VAGEN's sum of two kinds below 0.7.
	require.Equal(t, -.1, State([]float64{.6, .09}, true))
	require.InDelta(t, .355, State([]float64{.6, .11}, true), 1e-12)

	// An attempt is correct with a reward above ½.
	for _, c := range []struct {
		first, second                                 float64
		accuracy1, accuracy2, corrected, spoiled, got float64
	}{
		{.5, .5, 0, 0, 0, 0, 0}, {.5, .501, 0, 1, 1, 0, 1}, {.501, .5, 1, 0, 0, 1, -1}, {.501, .501, 1, 1, 0, 0, 0},
		{.499, 1, 0, 1, 1, 0, 1}, {0, 0, 0, 0, 0, 0, 0},
	} {
		f, err := Attempts{[]float64{c.first}, []float64{c.second}, []float64{0}, []float64{0}}.Figures()
		require.NoError(t, err)
		require.Equal(t, AttemptFigures{c.accuracy1, c.accuracy2, c.corrected, c.spoiled}, f, "%v, %v", c.first, c.second)
		require.Equal(t, c.got, f.Delta())
	}

	// Two lengths, equal ones among them, at either end of the line; one that fails has at most 0.
	for _, c := range []struct {
		tokens  []int
		correct []bool
		want    []float64
	}{
		{[]int{4, 5}, []bool{true, true}, []float64{.5, -.5}},
		{[]int{4, 5}, []bool{false, false}, []float64{0, -.5}},
		{[]int{0, 2, 1, 2, 0}, []bool{true, true, false, false, false}, []float64{.5, -.5, 0, -.5, 0}},
		{[]int{0, 4, 3, 1}, []bool{true, true, false, false}, []float64{.5, -.5, -.25, 0}},
		{[]int{3}, []bool{true}, []float64{0}},
		{[]int{0, 0}, []bool{true, true}, []float64{0, 0}},
	} {
		got, err := Length(c.tokens, c.correct)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%v", c.tokens)
	}
	require.Equal(t, 0.0, Progress(-1, -1, 1, true), "no change is no gain")
	require.Equal(t, 0.0, Tools(true, 0, 1))

	// A hit counts once, whether it is said or true twice.
	box, other := Relation{"box", "above", "left"}, Relation{"box", "above", "same"}
	for _, c := range []struct {
		said, truth []Relation
		want        float64
	}{
		{nil, []Relation{box}, 0}, {[]Relation{box}, nil, 0}, {[]Relation{other}, []Relation{box}, 0},
		{[]Relation{box, box}, []Relation{box, box}, 1}, {[]Relation{box, box}, []Relation{box}, 2. / 3},
		{[]Relation{box}, []Relation{box, box}, 2. / 3},
	} {
		require.Equal(t, c.want, F1("box", c.said, c.truth))
	}
}

// Shapes that do not fit, and items that depend on themselves or a later one, are refused by their place.
func TestShapes(t *testing.T) {
	one, two := []float64{1}, []float64{1, 2}
	for _, a := range []Attempts{{two, one, two, two}, {two, two, one, two}, {two, two, two, one}, {nil, one, nil, nil}} {
		_, _, _, err := a.Stage2(AttemptOptions{})
		require.ErrorIs(t, err, ErrShape)
	}
	short := [][]bool{{true, true}, {true}}
	_, err := Dependent([]int{-1, -1}, short)
	require.EqualError(t, err, "rewards of different shapes: step 2 has 1 items, the checklist 2")
	_, err = Checklist(two, short)
	require.EqualError(t, err, "rewards of different shapes: step 2 has 1 items, the checklist 2")
	_, err = ChecklistSteps(two, short)
	require.EqualError(t, err, "rewards of different shapes: step 2 has 1 items, the checklist 2")
	for after, want := range map[int]string{
		0: "",
		1: "rewards of different shapes: item 2 depends on item 2, which does not stand before it",
		2: "rewards of different shapes: item 2 depends on item 3, which does not stand before it",
	} {
		got, err := Dependent([]int{-1, after, -1}, [][]bool{{true, true, false}})
		if want == "" {
			require.NoError(t, err)
			require.Equal(t, [][]bool{{true, true, false}}, got, "both hold at one step")
		} else {
			require.EqualError(t, err, want)
		}
	}
}
