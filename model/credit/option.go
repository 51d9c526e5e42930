package credit

import (
	"cmp"
)

// Option is a field of a spec's section credit that only some algorithms have. It is declared beside
// the algorithm that reads it; the spec, its page and the algorithm take it from there.
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
	// Note says what it means in the algorithm that declares it, where several do.
	Note string
}

// CodeForm is an option of several algorithms, which say what it means in theirs.
func CodeForm(note string) Option {
	return Option{
		Name: "code_form", Switch: true, Source: "the papers; their code: true",
		Doc: "Takes the forms of the authors' code where they differ from the paper (%s).", Note: note,
	}
}

// Own are the values of options that differ from false and 0, by name: float64 or bool. It is not
// changed once it is part of Options.
type Own map[string]any

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
