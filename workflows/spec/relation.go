package spec

// relation is a rule between several fields.
type relation struct {
	// paths are the fields it reads; the problem is reported at the first.
	paths []string
	doc   string
	// broken reports whether a spec breaks the rule, what was found and what is allowed.
	broken func(Train) (broken bool, found, allowed string)
	// knobs says that a change of knobs can break it: then it reads only what Settings
	// have.
	knobs bool
}

// use is a field that may be in use.
type use struct {
	path string
	on   bool
}

// inUse are the paths of the fields that are.
func inUse(fields []use) []string {
	var out []string
	for _, f := range fields {
		if f.on {
			out = append(out, f.path)
		}
	}
	return out
}

// stored are the fields by which an update learns from log-probs that were stored before.
func (t Train) stored() []use {
	f := t.Freshness
	return []use{{"freshness.online", f.Online > 1}, {"freshness.reuse", f.Reuse > 1}, {"freshness.replay_iterations", f.ReplayIterations > 0}}
}
