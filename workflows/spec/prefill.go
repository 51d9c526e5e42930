package spec

// What the prefills of a first turn compute: rollout.prefill.
const (
	// PrefillGroups computes a group's first prompt once for all of its rows.
	PrefillGroups = "groups"
	// PrefillRows computes it for each row.
	PrefillRows = "rows"
)

// SharedPrompts is how many prompts a prefill of the first turn has where groups of so many rows share
// theirs, in a rollout or an evaluation of so many rows: the groups that a pass, or a block, can have
// rows of, and never one, whose bits stand apart in bfloat16. 0 is one prompt for each row of a pass.
// It follows from the spec alone, because the number decides bits: a prefill of 64 prompts rounds
// otherwise than one of 4.
func (r Rollout) SharedPrompts(rows, group int) int {
	pass, unit := min(r.Pass(), rows), min(r.Block(), rows)
	n := ceil(unit, group)
	if unit%group != 0 && group%unit != 0 { // it may begin and end in the middle of a group
		n = ceil(unit-1, group) + 1
	}
	n = max(n, 2)
	if r.Prefill != PrefillGroups || group < 2 || n >= pass {
		return 0
	}
	return n
}

// firstPrompts are the prompts that the first turn of a rollout prefills, padding included.
func (r Rollout) firstPrompts() int {
	if n := r.SharedPrompts(r.Slots(), r.GroupSlots()); n > 0 {
		return ceil(r.Slots(), r.Block()) * n
	}
	return r.Slots()
}

func ceil(n, by int) int { return (n + by - 1) / max(by, 1) }
