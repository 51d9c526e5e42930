package frozenlake

import (
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
)

const summary = "Walk over a frozen lake from the start to the goal; a hole ends the episode, and moves may slip sideways. The reward is +1 at the goal, 0 otherwise."

// minSide is the smallest lake: a start and a goal.
const minSide = 2

// Options of FrozenLake; declare says what each is. The defaults are RAGEN v1's
// FrozenLake with the paper's limits.
type Options struct {
	Size                               int
	FrozenProbability, SuccessRate     float64
	RandomEnds, Slippery, SharedChance bool
	Observation, Layout                string
	Instances, Pool                    int
	MaxActions, MaxActionsPerTurn      int
}

func (s *Options) declare(o *envs.Options) {
	o.Int("size", &s.Size, 4, minSide, board.MaxSide, "rows and columns: {range}")
	o.Number("frozen_probability", &s.FrozenProbability, 0.8, 0, 1, "the probability that a cell other than start and goal is frozen: 0.8 in RAGEN v1, 0.9 in v2; lakes without a way to the goal are drawn again")
	o.Bool("random_ends", &s.RandomEnds, true, "start and goal are any two cells (RAGEN); otherwise the first and the last (gymnasium)")
	o.Bool("slippery", &s.Slippery, true, "moves may slip, as gymnasium's is_slippery")
	o.Number("success_rate", &s.SuccessRate, 1.0/3, 0, 1, "how often a slippery move goes in the chosen direction; the rest is shared by the two perpendicular ones (gymnasium 1.4). 1/3 in the paper and RAGEN v1, 0.8 in v2")
	o.Bool("shared_chance", &s.SharedChance, false, "the same slips for a whole group, as in RAGEN's code; otherwise each member has its own")
	o.Choice("observation", &s.Observation, board.Grid, board.Forms, "grid, coord (places of player, goal and holes) or grid_coord (both; RAGEN v2's CoordFrozenLake)")
	o.Text("layout", &s.Layout, "", "one lake for every instance, in rows of S, F, H and G with line breaks between; size, frozen_probability and random_ends are then ignored")
	o.Int("instances", &s.Instances, 0, 0, board.MaxInstances, "how many different lakes there are, whatever the seed; 0 for no limit")
	o.Int("pool", &s.Pool, 0, 0, board.MaxInstances, "which lakes these are: another pool has others")
	o.Int("max_actions", &s.MaxActions, 10, 1, board.MaxActions, "largest number of actions in an episode (paper: 10)")
	o.Int("max_actions_per_turn", &s.MaxActionsPerTurn, 5, 1, board.MaxActions, "largest number of actions in a turn (paper and RAGEN v1: 5, RAGEN v2: 2)")
}

// New makes a FrozenLake from its options.
func New(o *envs.Options) envs.Environment {
	f := &FrozenLake{}
	s := &f.options
	s.declare(o)
	f.slip = Slip{Slippery: s.Slippery, SuccessRate: s.SuccessRate}
	if s.Layout != "" {
		lake, err := Parse(s.Layout)
		if err != nil {
			board.WrongLayout(o, err)
		}
		f.layout = &lake
	}
	return f
}
