package executable

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMemoryBytes(t *testing.T) {
	require.Equal(t, int64(10+6-4+3+1), Memory{Inputs: 10, Outputs: 6, Aliases: 4, Temporary: 3, Code: 1}.Bytes())
	_, err := MemoryOf(nil)
	require.ErrorIs(t, err, ErrUnsupported)
}
