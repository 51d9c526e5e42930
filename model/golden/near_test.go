package golden

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// refusal is a test that stops where it fails.
type refusal struct{ testing.TB }

func (refusal) Helper()               {}
func (refusal) Errorf(string, ...any) {}
func (refusal) FailNow()              { panic("refused") }

func TestNear(t *testing.T) {
	want := []float64{1, 2}
	Near(t, want, []float64{1, 2.125}, 0.125)
	Near(t, nil, []float64{}, 0)
	for _, got := range [][]float64{nil, {}, {1}, {1, 2, 3}, {1, 2.126}, {0, 2}} {
		require.PanicsWithValue(t, "refused", func() { Near(refusal{t}, want, got, 0.125) }, "%v", got)
	}
}
