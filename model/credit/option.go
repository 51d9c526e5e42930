package credit

import (
	"cmp"
	"slices"
)

// Option is a field of a spec's section credit that only some algorithms have. It is declared once,
// beside the first algorithm that reads it; the spec, its page and the algorithm take it from there.
type Option struct {
	// Name is the field's.
	Name string
	// Switch says that the field is true or false, and false where it is left out. The others are
	// numbers, and Default where they are left out or 0.
	Switch  bool
	Default float64
	// Low and High bound a number; Low itself is not allowed if Above.
	Low, High float64
	Above     bool
	// Source says where the option comes from; Doc says what it means, without its default, and has
	// %s where the names of the algorithms stand that read it.
	Source, Doc string
}

// Own are the values of options that differ from false and 0, by name: float64 or bool. It is not
// changed once it is part of Options.
type Own map[string]any

// With are the values and another. The zero value of an option takes it out.
func (o Own) With(name string, value any) Own {
	var out Own
	for _, option := range OwnOptions() {
		v, written := o[option.Name]
		if option.Name == name {
			v, written = value, value != false && value != 0.0
		}
		if written {
			if out == nil {
				out = Own{}
			}
			out[option.Name] = v
		}
	}
	return out
}

// Number is the number of an option.
func (o Option) Number(of Options) float64 {
	v, _ := of.Own[o.Name].(float64)
	return cmp.Or(v, o.Default)
}

// On reports whether an option is switched on.
func (o Option) On(of Options) bool {
	v, _ := of.Own[o.Name].(bool)
	return v
}

// OwnOptions are the options of all algorithms, each once, in the order of the algorithms.
func OwnOptions() []Option {
	var out []Option
	seen := map[string]bool{}
	for _, a := range Algorithms {
		for _, o := range a.Own {
			if !seen[o.Name] {
				seen[o.Name], out = true, append(out, o)
			}
		}
	}
	return out
}

// OwnOption is one of them; false if there is none of the name.
func OwnOption(name string) (Option, bool) {
	own := OwnOptions()
	at := slices.IndexFunc(own, func(o Option) bool { return o.Name == name })
	if at < 0 {
		return Option{}, false
	}
	return own[at], true
}

// Value is an option as it is written: 0 or false where it is left out.
func (o Option) Value(in Own) any {
	if v, ok := in[o.Name]; ok {
		return v
	}
	if o.Switch {
		return false
	}
	return 0.0
}

// Fields are the fields of a spec's section credit that have an effect, without algorithm.
func (a Algorithm) Fields() []string {
	out := a.Reads[:len(a.Reads):len(a.Reads)]
	for _, o := range a.Own {
		out = append(out, o.Name)
	}
	return out
}
