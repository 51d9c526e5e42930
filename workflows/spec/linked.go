package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrNotLinked is a method of a resolved spec that this program does not have: another program, which links it, has
// resolved the spec.
var ErrNotLinked = errors.New("not linked into this program")

// Linked is an error of kind ErrNotLinked if the settings, or the search beside them, name a method that this program
// does not have: it would lose the method's options when it reads them. A default is not asked for, because a spec
// that leaves the field out can be read without the method (make rooms).
func (s Settings) Linked(search string) error {
	for _, m := range []struct{ path, name string }{
		{"credit.algorithm", s.Credit.Algorithm}, {"rollout.search", search},
		{"update.passes.order", s.Update.Passes.Order}, {"update.surrogate", s.Update.Surrogate},
	} {
		if r := byPath(m.path); m.name != "" && m.name != r.value && !slices.Contains(r.enum, m.name) {
			return fmt.Errorf("%s %q is %w, which has: %s", m.path, m.name, ErrNotLinked, strings.Join(r.enum, ", "))
		}
	}
	return nil
}
