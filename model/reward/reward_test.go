package reward

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChecklistByHand(t *testing.T) {
	weights := []float64{.5, .3, .2}
	steps := [][]bool{{true, false, false}, {false, true, false}, {true, true, false}}
	u, err := Checklist(weights, steps)
	require.NoError(t, err)
	require.InDelta(t, .8, u, 1e-12)
	paid, err := ChecklistSteps(weights, steps)
	require.NoError(t, err)
	require.Equal(t, []float64{.5, .3, 0}, paid, "an item pays once")
	_, err = Checklist(weights, [][]bool{{true}})
	require.ErrorIs(t, err, ErrShape)
	_, err = ChecklistSteps(weights, [][]bool{{true}})
	require.ErrorIs(t, err, ErrShape)
}

func TestStateByHand(t *testing.T) {
	truth := []Relation{{"box", "above", "left"}, {"target", "below", "same"}}
	said := []Relation{{"box", "above", "left"}, {"target", "below", "left"}}
	f1 := []float64{F1("box", said, truth), F1("target", said, truth)}
	require.Equal(t, []float64{1, 0}, f1)
	require.Equal(t, .5, State(f1, true), "a frequent text that says enough is no template")
	require.Equal(t, Template, State([]float64{.5, .125}, true))
	require.Equal(t, .3125, State([]float64{.5, .125}, false))
	require.Zero(t, State(nil, true))
	require.Zero(t, F1("hole", said, truth))
	require.InDelta(t, .65, -.1+StateTurn(true, .5, .5, .5), 1e-12)
	require.Zero(t, StateTurn(false, .5, .5, 1))
	// Said twice: one hit.
	require.InDelta(t, 2./3, F1("box", append(said, said[0]), truth), 1e-12)
}

func TestLength(t *testing.T) {
	got, err := Length([]int{10, 20, 30, 10}, []bool{true, true, true, false})
	require.NoError(t, err)
	require.Equal(t, []float64{.5, 0, -.5, 0}, got)
	got, err = Length([]int{7, 7}, []bool{true, false})
	require.NoError(t, err)
	require.Equal(t, []float64{0, 0}, got)
	got, err = Length(nil, nil)
	require.NoError(t, err)
	require.Empty(t, got)
	_, err = Length([]int{1}, nil)
	require.ErrorIs(t, err, ErrShape)
}

func TestTools(t *testing.T) {
	correct, calls := []bool{true, true, false, false}, []int{2, 0, 3, 1}
	var got []float64
	for i := range calls {
		got = append(got, Tools(correct[i], calls[i], .125))
	}
	require.Equal(t, []float64{.25, 0, 0, 0}, got)
}

// There and back adds up to nothing with potentials, and to a gain without losses: what a
// policy can game.
func TestProgress(t *testing.T) {
	there, back := Progress(-2, -1, 1, false), Progress(-1, -2, 1, false)
	require.Zero(t, there+back)
	require.Equal(t, 1., Progress(-2, -1, 1, true)+Progress(-1, -2, 1, true))
	require.Equal(t, 1.5, Progress(-2, -1, .5, false))
}

func TestAttemptShapes(t *testing.T) {
	bad := Attempts{Reward1: []float64{1}}
	_, _, _, err := bad.Stage2(AttemptOptions{})
	require.ErrorIs(t, err, ErrShape)
	_, err = bad.Figures()
	require.ErrorIs(t, err, ErrShape)
	f, err := Attempts{}.Figures()
	require.NoError(t, err)
	require.Zero(t, f)
}

// An item that depends on another counts from the step on at which the other counts.
func TestDependent(t *testing.T) {
	steps := [][]bool{{false, true, true}, {true, false, true}, {false, true, false}}
	got, err := Dependent([]int{-1, 0, 1}, steps)
	require.NoError(t, err)
	require.Equal(t, [][]bool{{false, false, false}, {true, false, false}, {false, true, false}}, got)
	free, err := Dependent([]int{-1, -1, -1}, steps)
	require.NoError(t, err)
	require.Equal(t, steps, free)
	_, err = Dependent([]int{-1}, steps)
	require.ErrorIs(t, err, ErrShape)
	_, err = Dependent([]int{1, -1, -1}, steps)
	require.ErrorIs(t, err, ErrShape)
}
