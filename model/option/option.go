// Package option has the fields of a spec that only some methods have. A method declares them beside its
// code; the spec, its page and the method take them from there.
package option

import (
	"cmp"
	"slices"
)

// Ours is the source of an option that no paper has.
const Ours = "ours"

// Sections of a spec that have such fields.
const (
	Credit  = "credit"
	Rollout = "rollout"
	Update  = "update"
)

// Option is a field of a section of a spec that only some methods have.
type Option struct {
	// Section is the section and Name the field's name in it.
	Section, Name string
	// Switch says that the field is true or false, and false where it is left out. With Choices it is
	// one of them, and the first where it is left out. Whole says that it is a whole number. The others
	// are numbers.
	Switch, Whole bool
	Choices       []string
	// Default is a number's where it is left out or 0; 0 says that Doc tells it.
	Default float64
	// Low and High bound a number; Low itself is not allowed if Above.
	Low, High float64
	Above     bool
	// Source says where the option comes from; Doc says what it means, without Default. In the section
	// credit it has %s where the names of the algorithms stand that read it.
	Source, Doc string
	// Note says what it means in the method that declares it, where several do.
	Note string
}

// Path is the option's path in a spec.
func (o Option) Path() string { return o.Section + "." + o.Name }

// Values are the values of options of one section that differ from false, 0 and "", by name: bool,
// string, int of a whole number, float64. They are not changed once a spec has them.
type Values map[string]any

// Zero is the value of an option that is left out.
func (o Option) Zero() any {
	switch {
	case o.Switch:
		return false
	case o.Choices != nil:
		return ""
	case o.Whole:
		return 0
	}
	return 0.0
}

// In is the value as it is written: the zero value where it is left out.
func (o Option) In(v Values) any {
	if written, ok := v[o.Name]; ok {
		return written
	}
	return o.Zero()
}

// Number is the number of an option.
func (o Option) Number(v Values) float64 {
	n, _ := v[o.Name].(float64)
	return cmp.Or(n, o.Default)
}

// Int is the number of an option that is whole.
func (o Option) Int(v Values) int {
	n, _ := v[o.Name].(int)
	return cmp.Or(n, int(o.Default))
}

// On reports whether an option is switched on.
func (o Option) On(v Values) bool {
	on, _ := v[o.Name].(bool)
	return on
}

// Choice is which of the choices an option takes.
func (o Option) Choice(v Values) string {
	c, _ := v[o.Name].(string)
	return cmp.Or(c, o.Choices[0])
}

// Written reports whether a spec has the option.
func (o Option) Written(v Values) bool {
	_, there := v[o.Name]
	return there
}

// Set is a list of options, each once.
type Set []Option

// Join adds options to those before. Of one that is there already, the note is added to its Doc.
func (s Set) Join(more ...Option) Set {
	for _, o := range more {
		at := slices.IndexFunc(s, func(other Option) bool { return other.Path() == o.Path() })
		if at < 0 {
			at, s = len(s), append(s, o)
		}
		if o.Note != "" {
			s[at].Doc += " " + o.Note
		}
	}
	return s
}

// Find is the option of a section and a name; false if there is none.
func (s Set) Find(section, name string) (Option, bool) {
	at := slices.IndexFunc(s, func(o Option) bool { return o.Section == section && o.Name == name })
	if at < 0 {
		return Option{}, false
	}
	return s[at], true
}

// With are the values of a section with another. The zero value of an option takes it out.
func (s Set) With(section string, v Values, name string, value any) Values {
	var out Values
	for _, o := range s {
		if o.Section != section {
			continue
		}
		of, written := v[o.Name]
		if o.Name == name {
			of, written = value, value != o.Zero()
		}
		if written {
			if out == nil {
				out = Values{}
			}
			out[o.Name] = of
		}
	}
	return out
}
