package spec

// Stop says when a run ends before its last iteration.
type Stop struct {
	// SampledTokens ends it after the iteration in which its rollouts have sampled so many tokens; 0 is never.
	SampledTokens int `json:"sampled_tokens,omitempty"`
}
