package spec

// Stop says when a run ends before its last iteration.
type Stop struct {
	// SampledTokens ends it after the iteration in which its rollouts have sampled so many tokens; 0 is never.
	SampledTokens int `json:"sampled_tokens,omitempty"`
	// Success ends it after iterations that have succeeded; its zero value is never.
	Success StopSuccess `json:"success,omitzero"`
}

// StopSuccess ends a run after For iterations in a row in which success/mean was AtLeast.
type StopSuccess struct {
	AtLeast float64 `json:"at_least,omitempty"`
	For     int     `json:"for,omitempty"`
}

// stopRelations are the rules between the fields of stop.
var stopRelations = []relation{
	{
		paths: []string{"stop.success.at_least", "stop.success.for"},
		doc:   "stop.success.at_least and stop.success.for are given together, or neither is.",
		broken: func(t Train) (bool, string, string) {
			s := t.Stop.Success
			return (s.AtLeast > 0) != (s.For > 0), "one of the two", `both, as {"at_least": 0.95, "for": 5}`
		},
	},
}
