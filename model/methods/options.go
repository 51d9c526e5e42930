package methods

import "github.com/reprise-rl/reprise/model/option"

// Options are the options that methods declare, each once, in the order of the table.
func Options() option.Set {
	var out option.Set
	for _, a := range Algorithms {
		out = out.Join(a.Own...)
	}
	for _, s := range Searches {
		out = out.Join(s.Options...)
	}
	return out
}
