// Package presetstest lists the presets that a tree can start: all, but in a tree without one of the
// methods (make rooms) those that name none that is not there.
package presetstest

import (
	"encoding/json"
	"slices"

	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
)

// Names are the presets' names.
func Names() []string { return There(presets.Names()) }

// There are those of the names that are no preset of a method that is not there.
func There(names []string) []string { return slices.DeleteFunc(slices.Clone(names), Without) }

// Without reports whether a preset, or the one that a sweep begins with, names a method that is not there.
func Without(name string) bool {
	text, err := presets.Read(name)
	if err != nil {
		return false // the test says what is wrong with it
	}
	var sweep struct{ Base json.RawMessage }
	var base string
	if json.Unmarshal(text, &sweep) == nil && json.Unmarshal(sweep.Base, &base) == nil && base != name {
		return methodstest.Without(string(text)) || Without(base)
	}
	return methodstest.Without(string(text))
}
