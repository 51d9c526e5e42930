package spec_test

import (
	"errors"
	"fmt"

	"github.com/reprise-rl/reprise/workflows/spec"
)

// A spec is read strictly: all that is wrong is named at once, and what is left out has its default.
func ExampleDecode() {
	known := spec.Known{Environments: []string{"bandit", "sokoban"}}
	_, err := spec.Decode([]byte(`{
		"policy": {"from": "starter"}, "environment": {"name": "bandid"},
		"rollout": {"groups": 0}, "update": {"learning_rat": 1e-5}
	}`), known)
	if problems, ok := errors.AsType[spec.Problems](err); ok {
		for _, p := range problems {
			fmt.Printf("%s: %s (%s)\n", p.Path, p.Found, p.Hint)
		}
	}

	t, err := spec.Decode([]byte(`{"policy": {"from": "starter"}, "environment": {"name": "bandit"}, "rollout": {"groups": 4}}`), known)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Rollout.Groups, t.Rollout.GroupSize, t.Credit.Algorithm)
	// Output:
	// rollout.groups: 0 ()
	// update.learning_rat: an unknown key (did you mean "learning_rate"?)
	// environment.name: "bandid" (did you mean "bandit"?)
	// 4 16 grpo
}
