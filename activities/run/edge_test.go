package run

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// A model is not refused because the process that renders its template was killed.
func TestKilledRendererIsTriedAgain(t *testing.T) {
	require.Empty(t, KindOf(fmt.Errorf("tokenizer: %w: %w", tokenizer.ErrRenderer, activities.ErrModelInvalid)))
	require.Equal(t, activities.KindModelInvalid, KindOf(fmt.Errorf("tokenizer: %w: %w", tokenizer.ErrFiles, activities.ErrModelInvalid)))
}
