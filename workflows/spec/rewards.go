package spec

import (
	"encoding/json"

	"github.com/reprise-rl/reprise/model/cost"
)

// Reward is a part of the reward beside the environment's own.
type Reward struct {
	// Name is a module's.
	Name   string  `json:"name"`
	Weight float64 `json:"weight"`
	// Options is a JSON object in canonical form; the module checks it.
	Options json.RawMessage `json:"options,omitempty"`
	// Network is the shape of the model that the reward judge names (Train.JudgeModel); nil where it is not known. It is not
	// part of the spec.
	Network *cost.Network `json:"-"`
}

const maxRewards = 16

// rewardRules are the fields of a reward, in the order of its type.
var rewardRules = []*rule{
	{path: "name", typ: typeString, required: true, text: func(string) string { return "" }, textAllowed: "the name of a module", source: fromOurs,
		doc: "The module; docs/modules.md lists them. Each at most once."},
	{path: "weight", typ: typeNumber, value: 1.0, span: between(-1e6, 1e6), source: fromOurs,
		doc: "What its values are multiplied by before they are added to the environment's rewards."},
	{path: "options", typ: typeOptions, source: fromOurs, doc: "Its options."},
}
