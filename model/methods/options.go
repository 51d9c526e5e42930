package methods

import "github.com/reprise-rl/reprise/model/option"

// Options are the options that methods declare, each once, in the order of the table. After the first call no
// method can be registered any more.
func Options() option.Set {
	read.Store(true)
	return options()
}

func options() option.Set {
	var out option.Set
	for _, a := range Algorithms {
		out = out.Join(a.Own...)
	}
	for _, s := range Searches {
		out = out.Join(s.Options...)
	}
	return out
}
