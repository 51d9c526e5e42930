package lakefortwo

import (
	"fmt"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
)

const summary = "Two roles of one policy cross a frozen lake: one reads the map and says directions, the other hears them and moves. The reward is +1 at the goal for both, 0 otherwise."

// maxWords bounds the words of a message: three give 84 messages.
const maxWords = 3

// Options of LakeForTwo; declare says what each is.
type Options struct {
	Size, Words       int
	FrozenProbability float64
	Instances, Pool   int
	MaxActions        int
}

func (s *Options) declare(o *envs.Options) {
	o.Int("size", &s.Size, 3, 2, board.MaxSide, "rows and columns: {range}; start and goal are any two cells")
	o.Int("words", &s.Words, 2, 1, maxWords, "the most directions of a message, each of which is a turn of the walker: {range}")
	o.Number("frozen_probability", &s.FrozenProbability, 0.8, 0, 1, "the probability that a cell other than start and goal is frozen; lakes that cannot be crossed with max_actions are drawn again")
	o.Int("instances", &s.Instances, 0, 0, board.MaxInstances, "how many different lakes there are, whatever the seed; 0 for no limit")
	o.Int("pool", &s.Pool, 0, 0, board.MaxInstances, "which lakes these are: another pool has others")
	o.Int("max_actions", &s.MaxActions, 12, 1, board.MaxActions, "largest number of actions in an episode, of both roles together")
	if o.OK() {
		moves := 2 * (s.Size - 1) // from a corner to the opposite one
		if least := moves + (moves+s.Words-1)/s.Words; s.MaxActions < least {
			o.Wrong("max_actions", fmt.Sprintf("at least %d: the moves and messages from a corner to the opposite one", least))
		}
	}
}
