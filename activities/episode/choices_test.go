package episode_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/episodetest"
	"github.com/reprise-rl/reprise/infra/store"
)

// Choices that do not fit their turn are refused.
func TestChoicesThatDoNotFit(t *testing.T) {
	turns := func() []episode.Turn { return []episode.Turn{episodetest.Turn(1, 2, make([]float64, 4), nil, nil)} }
	row := func(group int32, next ...int32) episode.ChoiceRow { return episode.ChoiceRow{Group: group, Next: next} }
	for _, choices := range [][]episode.ChoiceRow{
		{row(0, 0), row(0)}, {row(0), row(0), row(1), row(1)}, {row(0, 1), row(0), row(1, 0), row(1)}, {row(0, 0, 1), row(0), row(1, 2), row(1)},
		{row(0, 0), row(0), row(1), row(1)}, {row(0, 0, 1, 2), row(0), row(1, 3), row(1)},
	} {
		require.ErrorIs(t, episode.Follow(turns(), choices), store.ErrInvalid, "%v", choices)
	}
}
