package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store/canon"
)

// A gradient norm that is next to nothing is not shown as none.
func TestSmallNumbersAreNumbers(t *testing.T) {
	for v, want := range map[canon.Float]string{
		5.3e-7: "5.3e-07", 7.5e-4: "0.00075", -0.0123456: "-0.01235", 0: "0", 0.5: "0.5", 0.123456: "0.1235", 12.34567: "12.3457",
	} {
		require.Equal(t, want, number(v))
	}
}
