package frozenlake

import (
	"encoding/json"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
)

// Options of FrozenLake. See Describe for each.
type Options struct {
	Size              int     `json:"size"`
	FrozenProbability float64 `json:"frozen_probability"`
	RandomEnds        bool    `json:"random_ends"`
	Slippery          bool    `json:"slippery"`
	SuccessRate       float64 `json:"success_rate"`
	SharedChance      bool    `json:"shared_chance"`
	Observation       string  `json:"observation"`
	Layout            string  `json:"layout"`
	Instances         int     `json:"instances"`
	Pool              int     `json:"pool"`
	MaxActions        int     `json:"max_actions"`
	MaxActionsPerTurn int     `json:"max_actions_per_turn"`
}

// Defaults are RAGEN v1's FrozenLake with the paper's limits.
var Defaults = Options{
	Size:              4,
	FrozenProbability: 0.8,
	RandomEnds:        true,
	Slippery:          true,
	SuccessRate:       1.0 / 3,
	Observation:       board.Grid,
	MaxActions:        10,
	MaxActionsPerTurn: 5,
}

// minSide is the smallest lake: a start and a goal.
const minSide = 2

// New makes a FrozenLake from its options; the error is an *envs.OptionsError.
func New(raw json.RawMessage) (envs.Environment, error) {
	o := Defaults
	checks := board.Checks{Problems: envs.DecodeOptions(raw, &o)}
	checks.Range("size", o.Size, minSide, board.MaxSide)
	checks.Probability("frozen_probability", o.FrozenProbability)
	checks.Probability("success_rate", o.SuccessRate)
	checks.OneOf("observation", o.Observation, board.Forms)
	checks.Range("instances", o.Instances, 0, board.MaxInstances)
	checks.Range("pool", o.Pool, 0, board.MaxInstances)
	checks.Range("max_actions", o.MaxActions, 1, board.MaxActions)
	checks.Range("max_actions_per_turn", o.MaxActionsPerTurn, 1, board.MaxActions)
	f := &FrozenLake{options: o, slip: Slip{Slippery: o.Slippery, SuccessRate: o.SuccessRate}}
	if o.Layout != "" {
		lake, err := Parse(o.Layout)
		if err != nil {
			checks.Layout(err)
		}
		f.layout = &lake
	}
	if err := checks.Err(Name); err != nil {
		return nil, err
	}
	return f, nil
}

// Describe implements envs.Environment.
func (f *FrozenLake) Describe() envs.Description {
	d := &Defaults
	return envs.Description{
		Name:    Name,
		Summary: "Walk over a frozen lake from the start to the goal; a hole ends the episode, and moves may slip sideways. +1 at the goal, 0 otherwise.",
		Options: []envs.Option{
			{Name: "size", Type: "integer", Default: d.Size, Doc: "rows and columns: 2 to 50"},
			{Name: "frozen_probability", Type: "number", Default: d.FrozenProbability, Doc: "of a cell that is neither start nor goal: 0.8 in RAGEN v1, 0.9 in v2; lakes without a way to the goal are drawn again"},
			{Name: "random_ends", Type: "boolean", Default: d.RandomEnds, Doc: "start and goal are any two cells (RAGEN); otherwise the first and the last (gymnasium)"},
			{Name: "slippery", Type: "boolean", Default: d.Slippery, Doc: "moves may slip, as gymnasium's is_slippery"},
			{Name: "success_rate", Type: "number", Default: d.SuccessRate, Doc: "how often a slippery move goes where it was meant; the rest is shared by the two directions across (gymnasium 1.4). 1/3 in the paper and RAGEN v1, 0.8 in v2"},
			{Name: "shared_chance", Type: "boolean", Default: d.SharedChance, Doc: "the same slips for a whole group, as in RAGEN's code; otherwise each member has its own"},
			{Name: "observation", Type: "string", Default: d.Observation, Doc: "grid, coord (places of player, goal and holes) or grid_coord (both; RAGEN v2's CoordFrozenLake)"},
			{Name: "layout", Type: "string", Default: d.Layout, Doc: "one lake for every instance, in rows of S, F, H and G with line breaks between; size, frozen_probability and random_ends then do not count"},
			{Name: "instances", Type: "integer", Default: d.Instances, Doc: "how many different lakes there are, whatever the seed; 0 for no limit"},
			{Name: "pool", Type: "integer", Default: d.Pool, Doc: "which lakes these are: pools with other numbers have others"},
			{Name: "max_actions", Type: "integer", Default: d.MaxActions, Doc: "most actions of an episode (paper: 10)"},
			{Name: "max_actions_per_turn", Type: "integer", Default: d.MaxActionsPerTurn, Doc: "most actions of a turn (paper and RAGEN v1: 5, RAGEN v2: 2)"},
		},
	}
}
