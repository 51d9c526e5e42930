package envs_test

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/guess"
	"github.com/reprise-rl/reprise/model/draw"
)

// An episode is a function of its options, its addresses and its actions: what is recorded is the actions, and they
// give the state again.
func ExampleReplay() {
	env, err := envs.New("guess", json.RawMessage(`{"most": 5}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	instance := draw.Address{Seed: 7, Purpose: draw.Instance}
	chance := draw.Address{Seed: 7, Purpose: draw.Chance}
	_, turns, err := envs.Replay(env, instance, chance, [][]string{{"1"}, {"5"}, {"2"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, turn := range turns {
		fmt.Println(turn.Actions, turn.Reward, turn.Success)
	}
	// Output:
	// [1] -0.1 false
	// [5] -0.1 false
	// [2] 1 true
}
