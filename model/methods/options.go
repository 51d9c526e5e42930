package methods

import (
	"slices"

	"github.com/reprise-rl/reprise/model/credit"
)

// Options are the options that algorithms declare, each once, in the order of the algorithms. The
// notes of all that declare it follow its Doc.
func Options() []credit.Option {
	var out []credit.Option
	for _, a := range Algorithms {
		for _, o := range a.Own {
			at := slices.IndexFunc(out, func(other credit.Option) bool { return other.Name == o.Name })
			if at < 0 {
				at, out = len(out), append(out, o)
			}
			if o.Note != "" {
				out[at].Doc += " " + o.Note
			}
		}
	}
	return out
}

// Option is one of them; false if there is none of the name.
func Option(name string) (credit.Option, bool) {
	all := Options()
	at := slices.IndexFunc(all, func(o credit.Option) bool { return o.Name == name })
	if at < 0 {
		return credit.Option{}, false
	}
	return all[at], true
}

// With are the values of options and another. The zero value of an option takes it out.
func With(values credit.Own, name string, value any) credit.Own {
	var out credit.Own
	for _, option := range Options() {
		v, written := values[option.Name]
		if option.Name == name {
			v, written = value, value != false && value != 0.0
		}
		if written {
			if out == nil {
				out = credit.Own{}
			}
			out[option.Name] = v
		}
	}
	return out
}
