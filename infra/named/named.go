// Package named reads flags that give things names, each once (--mcp NAME=COMMAND), and flags about these things
// (--mcp-variable NAME=VARIABLE).
package named

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Things are what a flag names, in the order of its values.
type Things[T any] struct {
	// All may be changed, but not its length.
	All   []T
	flag  Flag
	names []string
}

// Flag is a flag as errors speak of it: Name without dashes, the Thing that it names, and what it Gives each.
type Flag struct{ Name, Thing, Gives string }

// Read reads the values of a flag. The error names the flag.
func Read[T any](f Flag, values []string, parse func(value string) (T, error), name func(T) string) (*Things[T], error) {
	out := &Things[T]{flag: f}
	for _, value := range values {
		one, err := parse(value)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", f.Name, err)
		}
		if slices.Contains(out.names, name(one)) {
			return nil, fmt.Errorf("--%s names the %s %q twice: each name has one %s", f.Name, f.Thing, name(one), f.Gives)
		}
		out.All, out.names = append(out.All, one), append(out.names, name(one))
	}
	return out, nil
}

// About reads a value of another flag, about one of the things: NAME and the other parts of its form, which "=" separates. The
// error names the flag, and has an example.
func (t *Things[T]) About(flag, value, form, example string) (of *T, parts []string, err error) {
	n := strings.Count(form, "=") + 1
	parts = strings.SplitN(value, "=", n)
	if len(parts) < n || slices.Contains(parts[1:], "") {
		return nil, nil, fmt.Errorf("--%s: found %s, want %s, as in %s", flag, strict.Quote(value), form, example)
	}
	i := slices.Index(t.names, parts[0])
	if i < 0 {
		return nil, nil, fmt.Errorf("--%s names the %s %q: no --%s does", flag, t.flag.Thing, parts[0], t.flag.Name)
	}
	return &t.All[i], parts, nil
}
