package sokoban

import (
	"encoding/json"
	"slices"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
)

// Options of Sokoban. See Describe for each.
type Options struct {
	Preset            string `json:"preset"`
	Width             int    `json:"width"`
	Height            int    `json:"height"`
	Boxes             int    `json:"boxes"`
	SearchDepth       int    `json:"search_depth"`
	Walk              int    `json:"walk"`
	Glyphs            string `json:"glyphs"`
	Observation       string `json:"observation"`
	Layout            string `json:"layout"`
	Instances         int    `json:"instances"`
	Pool              int    `json:"pool"`
	MaxActions        int    `json:"max_actions"`
	MaxActionsPerTurn int    `json:"max_actions_per_turn"`
}

// Defaults are the preset simple: RAGEN's SimpleSokoban with the paper's limits.
var Defaults = Options{
	Preset:            "simple",
	Width:             6,
	Height:            6,
	Boxes:             1,
	SearchDepth:       300,
	Walk:              3,
	Glyphs:            "standard",
	Observation:       board.Grid,
	MaxActions:        10,
	MaxActionsPerTurn: 5,
}

// presetNames are in the order of the documentation.
var presetNames = []string{"simple", "large", "new-vocabulary"}

// preset gives a preset's options: RAGEN's SimpleSokoban, LargerSokoban and
// SokobanDifferentGridVocab.
func preset(name string) Options {
	o := Defaults
	o.Preset = name
	switch name {
	case "large":
		o.Width, o.Height, o.Boxes, o.SearchDepth = 8, 8, 2, 10
	case "new-vocabulary":
		o.SearchDepth, o.Glyphs = 30, "new-vocabulary"
	}
	return o
}

var (
	glyphNames = []string{"standard", "new-vocabulary"}
	glyphSets  = []Glyphs{Standard, NewVocabulary}
)

// Limits of the options.
const (
	minSide        = 3
	maxBoxes       = 10
	maxSearchDepth = 1000
	maxWalk        = 10
)

// New makes a Sokoban from its options; the error is an *envs.OptionsError.
func New(raw json.RawMessage) (envs.Environment, error) {
	// The preset first: it is what the other options are absent to.
	o := Defaults
	envs.DecodeOptions(raw, &o)
	o = preset(o.Preset)
	checks := board.Checks{Problems: envs.DecodeOptions(raw, &o)}
	checks.OneOf("preset", o.Preset, presetNames)
	checks.Range("width", o.Width, minSide, board.MaxSide)
	checks.Range("height", o.Height, minSide, board.MaxSide)
	checks.Range("boxes", o.Boxes, 1, maxBoxes)
	checks.Range("search_depth", o.SearchDepth, 1, maxSearchDepth)
	checks.Range("walk", o.Walk, 0, maxWalk)
	checks.OneOf("glyphs", o.Glyphs, glyphNames)
	checks.OneOf("observation", o.Observation, board.Forms)
	checks.Range("instances", o.Instances, 0, board.MaxInstances)
	checks.Range("pool", o.Pool, 0, board.MaxInstances)
	checks.Range("max_actions", o.MaxActions, 1, board.MaxActions)
	checks.Range("max_actions_per_turn", o.MaxActionsPerTurn, 1, board.MaxActions)
	s := &Sokoban{options: o}
	if i := slices.Index(glyphNames, o.Glyphs); i >= 0 {
		s.glyphs = glyphSets[i]
	}
	switch {
	case o.Layout != "":
		room, err := Parse(o.Layout)
		if err != nil {
			checks.Layout(err)
		}
		s.spare, s.fixed = room, true
	case len(checks.Problems) == 0:
		s.generator = generator{width: o.Width, height: o.Height, boxes: o.Boxes, depth: o.SearchDepth, walk: o.Walk}
		var ok bool
		if s.spare, ok = s.generator.generate(board.Cases(0, 0)[0]); !ok {
			checks.Wrong("boxes", o.Boxes, "fewer, more width and height, or a greater search_depth: no room was found")
		}
	}
	if err := checks.Err(Name); err != nil {
		return nil, err
	}
	return s, nil
}

// Describe implements envs.Environment.
func (s *Sokoban) Describe() envs.Description {
	d := &Defaults
	return envs.Description{
		Name:    Name,
		Summary: "Push every box onto a target. Rooms are made by reverse play, so all can be solved; -0.1 an action, +1 a box onto a target, -1 off it, +10 at the end.",
		Options: []envs.Option{
			{Name: "preset", Type: "string", Default: d.Preset, Doc: "what the other options are where they are absent: simple (RAGEN's SimpleSokoban: the defaults here), large (LargerSokoban: 8x8, 2 boxes, search_depth 10) or new-vocabulary (SokobanDifferentGridVocab: search_depth 30, other glyphs)"},
			{Name: "width", Type: "integer", Default: d.Width, Doc: "columns, walls included: 3 to 50"},
			{Name: "height", Type: "integer", Default: d.Height, Doc: "rows, walls included: 3 to 50"},
			{Name: "boxes", Type: "integer", Default: d.Boxes, Doc: "boxes, and targets: 1 to 10"},
			{Name: "search_depth", Type: "integer", Default: d.SearchDepth, Doc: "most moves of reverse play: the shortest solution has at most as many, and walk more. A smaller one gives easier rooms"},
			{Name: "walk", Type: "integer", Default: d.Walk, Doc: "most moves of the player after reverse play (RAGEN: 3)"},
			{Name: "glyphs", Type: "string", Default: d.Glyphs, Doc: "how cells are written (wall, floor, target, box on target, box, player, player on target): standard #_O√XPS or new-vocabulary W.GCBA@"},
			{Name: "observation", Type: "string", Default: d.Observation, Doc: "grid, coord (places of player, boxes and targets) or grid_coord (both; RAGEN v2's CoordSokoban)"},
			{Name: "layout", Type: "string", Default: d.Layout, Doc: "one room for every instance, in rows of the standard glyphs with line breaks between; width, height, boxes and search_depth then do not count"},
			{Name: "instances", Type: "integer", Default: d.Instances, Doc: "how many different rooms there are, whatever the seed; 0 for no limit"},
			{Name: "pool", Type: "integer", Default: d.Pool, Doc: "which rooms these are: pools with other numbers have others"},
			{Name: "max_actions", Type: "integer", Default: d.MaxActions, Doc: "most actions of an episode (paper: 10); the environment itself ends it after 100"},
			{Name: "max_actions_per_turn", Type: "integer", Default: d.MaxActionsPerTurn, Doc: "most actions of a turn (paper and RAGEN v1: 5, RAGEN v2: 2)"},
		},
	}
}
