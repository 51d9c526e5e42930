package stdio

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
)

// A request is sent to the process that has its episodes: a process of the package begins no episode again that
// it has kept, however many processes there are.
func TestEpisodesStayWithTheirProcess(t *testing.T) {
	python(t)
	p, err := Open(Config{Command: []string{"testdata/faulty.py"}, Processes: 3})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	s, err := foreign.Connect(t.Context(), "walk", []byte(`{"fault":"begun"}`), p.Call)
	require.NoError(t, err)
	asked := make([]foreign.Asked, 128)
	for i := range asked {
		asked[i].Instance, asked[i].Chance = uint64(i), uint64(i)
	}
	for turn := range 5 {
		for i, a := range playAll(t, s, asked) {
			require.NoError(t, a.Err)
			if turn > 0 {
				require.Equal(t, "begun once", a.Steps[0].Text, "turn %d, episode %d", turn, i)
				asked[i].Played = append(slices.Clone(asked[i].Played), a.Steps[0].Action)
			}
			asked[i].Chain, asked[i].Next = a.Chain, []string{[]string{"Left", "Right"}[(turn+i)%2]}
		}
	}
}

// A process is waited for only so long: what it was asked may take longer than to play the turns again.
func TestAnotherProcessTakesOver(t *testing.T) {
	p := &Pool{config: Config{Processes: 2}, slots: make(chan *slot, 2)}
	busy, free := &slot{}, &slot{}
	p.slots <- free
	p.kept.answered([]episode{{"1", "2"}, {"3", "4"}}, busy)
	p.kept.answered([]episode{{"5", "6"}}, free)
	require.Equal(t, busy, p.kept.most([]episode{{"1", "2"}, {"3", "4"}, {"5", "6"}}))
	require.Nil(t, p.kept.most([]episode{{"1", "3"}}))
	begin := time.Now()
	got, err := p.take(t.Context(), busy)
	require.NoError(t, err)
	require.Same(t, free, got)
	require.GreaterOrEqual(t, time.Since(begin), waitForKept)
	time.AfterFunc(10*time.Millisecond, func() { p.slots <- busy })
	p.slots <- free
	got, err = p.take(t.Context(), busy)
	require.NoError(t, err)
	require.Same(t, busy, got)
}

// What is remembered is bounded.
func TestKeptIsBounded(t *testing.T) {
	var k kept
	for n := range mostKept + 10 {
		k.answered([]episode{{fmt.Sprint(n), ""}}, &slot{})
	}
	require.Less(t, len(k.by), 20)
	require.Nil(t, k.most([]episode{{"1", ""}}))
	require.NotNil(t, k.most([]episode{{fmt.Sprint(mostKept + 5), ""}}))
}
