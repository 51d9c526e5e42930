package foreign

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What has changed in a description is named by its field, of lists the texts that are new and those that are gone.
func TestChanged(t *testing.T) {
	was := Description{
		Version: "guess-1", Instructions: "Find it.", Actions: []string{"1", "2"}, MaxActions: 5, MaxActionsPerTurn: 1, Instances: 9,
		Widest: []string{"Guess.", "Lower."}, Replayable: true,
	}
	require.Empty(t, was.Changed(was))
	for want, change := range map[string]func(d *Description){
		"version is guess-2, was guess-1":                          func(d *Description) { d.Version = "guess-2" },
		"instructions is Find, was Find it.":                       func(d *Description) { d.Instructions = "Find" },
		`actions: + "3"`:                                           func(d *Description) { d.Actions = []string{"1", "2", "3"} },
		"actions: another order":                                   func(d *Description) { d.Actions = []string{"2", "1"} },
		"max_actions is 6, was 5":                                  func(d *Description) { d.MaxActions = 6 },
		"max_actions_per_turn is 2, was 1":                         func(d *Description) { d.MaxActionsPerTurn = 2 },
		"instances is 0, was 9":                                    func(d *Description) { d.Instances = 0 },
		`widest: + "Much lower.", - "Lower."`:                      func(d *Description) { d.Widest = []string{"Guess.", "Much lower."} },
		`widest: + "a", + "b", + "c", - "Guess.", and 1 more`:      func(d *Description) { d.Widest = []string{"a", "b", "c"} },
		"version is 2, was guess-1; replayable is false, was true": func(d *Description) { d.Version, d.Replayable = "2", false },
	} {
		now := was
		change(&now)
		require.Equal(t, want, was.Changed(now))
	}
}
