package strict_test

import (
	"fmt"

	"github.com/reprise-rl/reprise/infra/strict"
)

// A reader of documents names everything that is wrong at once, with what was found, what is allowed, and what was
// most likely meant.
func ExampleParse() {
	root, err := strict.Parse([]byte(`{"turns": 3.0, "tempature": 0.7}`), strict.Limits{Bytes: 1 << 20, Depth: 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	known := []string{"turns", "temperature"}
	var problems strict.Problems
	for _, m := range root.Members() {
		if hint := strict.DidYouMean(m.Key, known); m.Key != "turns" {
			problems = append(problems, strict.Problem{Path: m.Key, Found: "an unknown key", Allowed: "turns, temperature", Hint: hint})
			continue
		}
		if _, ok := m.Value.Integer(); !ok {
			problems = append(problems, strict.Problem{Path: m.Key, Found: m.Value.Found(), Allowed: "an integer"})
		}
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	// Output:
	// turns: found 3.0; allowed: an integer
	// tempature: found an unknown key; allowed: turns, temperature (did you mean "temperature"?)
}
