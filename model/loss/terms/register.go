package terms

import (
	"errors"
	"regexp"
)

// termName is what a term may be named.
var termName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// Register adds a surrogate to the table, behind the terms that are there: so their places in programs stay. Package
// losses calls it for a program that links a surrogate of its own. What keeps the term out is an error.
func Register(t Term) error {
	if !termName.MatchString(t.Name) {
		return errors.New("needs a name of lower-case letters, digits and _ that begins with a letter")
	}
	if _, taken := Find(Surrogate, t.Name); taken {
		return errors.New("is there already: give yours another name")
	}
	switch {
	case t.Kind != Surrogate:
		return errors.New("is no surrogate: a program links surrogates alone")
	case t.Doc == "":
		return errors.New("has no Doc")
	case len(t.Metrics) > 0:
		return errors.New("has metrics: those of surrogates are the frame's")
	}
	for _, k := range t.Knobs {
		if k.Doc != "" || k.Packing != Alone || !termName.MatchString(k.Name) {
			return errors.New("has a knob " + k.Name + " that is not its own, or that is a field of a spec: give it a name, a Default and no Doc")
		}
		for _, other := range Table {
			for _, there := range other.Knobs {
				if there.Name == k.Name {
					return errors.New("has a knob " + k.Name + ", which is there already: give yours another name")
				}
			}
		}
	}
	Table = append(Table[:len(Table):len(Table)], t)
	return nil
}
