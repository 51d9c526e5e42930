// Package suites names environments in which policies are evaluated, in addition to their
// own: the zero-shot transfers of the RAGEN paper (arXiv 2504.20073) and of its program,
// as data.
//
// A suite's options are complete with the environment's defaults. The evaluation decides
// which instances are played, how many, and with which protocol.
package suites

import (
	"encoding/json"
	"slices"
)

// Suite is an environment to be evaluated in, under a name.
type Suite struct {
	// Name is what an evaluation's input calls it.
	Name string
	// Doc says to people what it is.
	Doc string
	// Environment is the name of an environment.
	Environment string
	// Options are the environment's: a JSON object.
	Options json.RawMessage
}

// suites are in the order of the documentation.
var suites = []Suite{
	{"sokoban", "6x6 rooms with one box, RAGEN's SimpleSokoban", "sokoban", json.RawMessage(`{"preset":"simple"}`)},
	{"sokoban-large", "8x8 rooms with two boxes, RAGEN's LargerSokoban", "sokoban", json.RawMessage(`{"preset":"large"}`)},
	{"sokoban-new-vocabulary", "6x6 rooms with one box in other glyphs, RAGEN's SokobanDifferentGridVocab", "sokoban", json.RawMessage(`{"preset":"new-vocabulary"}`)},
	{"frozenlake", "slippery 4x4 lakes, as in the paper", "frozenlake", json.RawMessage(`{}`)},
	{"bandit", "the training pair of RAGEN v1, Phoenix and Dragon", "bandit", json.RawMessage(`{"names":"ragen-v1-train"}`)},
	{"bandit-test", "the test pair of RAGEN v1, Trader and Librarian: BanditTest", "bandit", json.RawMessage(`{"names":"ragen-v1-test"}`)},
	{"bandit-reversed", "the training pair with its names swapped", "bandit", json.RawMessage(`{"names":"ragen-v1-train","reversed":true}`)},
	{"bandit-names", "the eight test pairs of RAGEN v2", "bandit", json.RawMessage(`{"names":"ragen-v2-test"}`)},
	{"countdown", "instances of the test split, which training on its own split never meets", "countdown", json.RawMessage(`{"split":"test"}`)},
}

// Names are the suites' names in the order of the documentation.
func Names() []string {
	names := make([]string, len(suites))
	for i, s := range suites {
		names[i] = s.Name
	}
	return names
}

// Named gives the suite of a name. Its options are a copy.
func Named(name string) (suite Suite, ok bool) {
	for _, s := range suites {
		if s.Name == name {
			s.Options = slices.Clone(s.Options)
			return s, true
		}
	}
	return Suite{}, false
}
