package spec

// Updates is how many iterations learn from a rollout, or from a batch.
func (f Freshness) Updates() int { return max(f.Online, f.Reuse, 1) }

// Rounds is how many times as large as one iteration's a rollout is.
func (f Freshness) Rounds() int { return max(f.Online, 1) }

// Replayed is how many rows an update draws from the replay buffer in addition to so many
// fresh ones, if the buffer has as many.
func (f Freshness) Replayed(fresh int) int {
	if f.ReplayIterations == 0 {
		return 0
	}
	// With a tolerance, as in Selection.Kept.
	rows := f.ReplayShare / (1 - f.ReplayShare) * float64(fresh)
	return int(float64(rows) + 1e-9) // converted, so that no processor fuses the product and the sum
}
