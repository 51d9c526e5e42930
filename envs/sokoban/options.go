package sokoban

import (
	"slices"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
)

const summary = "Push every box onto a target. Rooms are made by reverse play, so all can be solved. Rewards: -0.1 for an action, +1 for a box pushed onto a target, -1 for a box pushed off it, +10 at the end."

var (
	// presetNames are in the order of the documentation.
	presetNames = []string{"simple", "large", "new-vocabulary"}
	glyphNames  = []string{"standard", "new-vocabulary"}
	glyphSets   = []Glyphs{Standard, NewVocabulary}
)

// preset gives the defaults under a preset: RAGEN's SimpleSokoban, LargerSokoban and
// SokobanDifferentGridVocab.
func preset(name string) (side, boxes, depth int, glyphs string) {
	switch name {
	case "large":
		return 8, 2, 10, glyphNames[0]
	case "new-vocabulary":
		return 6, 1, 30, glyphNames[1]
	}
	return 6, 1, 300, glyphNames[0]
}

// Limits of the options.
const (
	minSide        = 3
	maxBoxes       = 10
	maxSearchDepth = 1000
	maxWalk        = 10
)

// Options of Sokoban; declare says what each is. The defaults are the preset simple:
// RAGEN's SimpleSokoban with the paper's limits.
type Options struct {
	Preset                                  string
	Width, Height, Boxes, SearchDepth, Walk int
	Glyphs, Observation, Layout             string
	Instances, Pool                         int
	MaxActions, MaxActionsPerTurn           int
}

func (s *Options) declare(o *envs.Options) {
	o.Choice("preset", &s.Preset, presetNames[0], presetNames, "the defaults of the other options: simple (RAGEN's SimpleSokoban: the defaults here), large (LargerSokoban: 8x8, 2 boxes, search_depth 10) or new-vocabulary (SokobanDifferentGridVocab: search_depth 30, other glyphs)")
	side, boxes, depth, glyphs := preset(s.Preset)
	o.Int("width", &s.Width, side, minSide, board.MaxSide, "columns, walls included: {range}")
	o.Int("height", &s.Height, side, minSide, board.MaxSide, "rows, walls included: {range}")
	o.Int("boxes", &s.Boxes, boxes, 1, maxBoxes, "boxes, and targets: {range}")
	o.Int("search_depth", &s.SearchDepth, depth, 1, maxSearchDepth, "largest number of moves in reverse play: the shortest solution has at most search_depth + walk moves. A smaller value gives easier rooms")
	o.Int("walk", &s.Walk, 3, 0, maxWalk, "largest number of the player's moves after reverse play (RAGEN: 3)")
	o.Choice("glyphs", &s.Glyphs, glyphs, glyphNames, "how cells are written (wall, floor, target, box on target, box, player, player on target): standard #_O√XPS or new-vocabulary W.GCBA@")
	o.Choice("observation", &s.Observation, board.Grid, board.Forms, "grid, coord (places of player, boxes and targets) or grid_coord (both; RAGEN v2's CoordSokoban)")
	o.Text("layout", &s.Layout, "", "one room for every instance, in rows of the standard glyphs with line breaks between; width, height, boxes and search_depth are then ignored")
	o.Int("instances", &s.Instances, 0, 0, board.MaxInstances, "how many different rooms there are, whatever the seed; 0 for no limit")
	o.Int("pool", &s.Pool, 0, 0, board.MaxInstances, "which rooms these are: another pool has others")
	o.Int("max_actions", &s.MaxActions, 10, 1, board.MaxActions, "largest number of actions in an episode (paper: 10); the environment itself ends it after 100")
	o.Int("max_actions_per_turn", &s.MaxActionsPerTurn, 5, 1, board.MaxActions, "largest number of actions in a turn (paper and RAGEN v1: 5, RAGEN v2: 2)")
}

// New makes a Sokoban from its options.
func New(o *envs.Options) envs.Environment {
	env := &Sokoban{}
	s := &env.options
	s.declare(o)
	if i := slices.Index(glyphNames, s.Glyphs); i >= 0 {
		env.glyphs = glyphSets[i]
	}
	switch {
	case s.Layout != "":
		room, err := Parse(s.Layout)
		if err != nil {
			board.WrongLayout(o, err)
		}
		env.spare, env.fixed = room, true
	case o.OK():
		env.generator = generator{width: s.Width, height: s.Height, boxes: s.Boxes, depth: s.SearchDepth, walk: s.Walk}
		var ok bool
		if env.spare, ok = env.generator.generate(board.Cases(0, 0)[0]); !ok {
			o.Wrong("boxes", "fewer, more width and height, or a greater search_depth: no room was found")
		}
	}
	return env
}
