package spec

// Due reports whether an iteration's rollout is diagnosed.
func (d Diagnostics) Due(iteration int) bool { return d.Every > 0 && iteration%d.Every == 0 }
