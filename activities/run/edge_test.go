package run

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// A model whose tokenizer or template is unusable is refused.
func TestUnusableTokenizerIsRefused(t *testing.T) {
	require.Equal(t, activities.KindModelInvalid, KindOf(fmt.Errorf("tokenizer: %w: %w", tokenizer.ErrFiles, activities.ErrModelInvalid)))
}

// No retry can correct a model, so a run whose model is wrong ends.
func TestModelsAreNotTriedAgain(t *testing.T) {
	for _, err := range []error{tokenizer.ErrNoTemplate, tokenizer.ErrTemplate, tokenizer.ErrRewritten, tokenizer.ErrFiles, tokenizer.ErrVocabulary} {
		require.Equal(t, activities.KindModelInvalid, KindOf(fmt.Errorf("measure the contexts: %w", err)), err)
	}
}
