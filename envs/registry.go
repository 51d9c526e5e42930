package envs

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agext/levenshtein"
)

// ErrUnknown says that no environment is registered under a name.
var ErrUnknown = errors.New("unknown environment")

// Factory makes an environment from its options, which may be absent. Its error
// is an *OptionsError that names every problem.
type Factory func(options json.RawMessage) (Environment, error)

var registry = struct {
	sync.RWMutex
	factories map[string]Factory
}{factories: map[string]Factory{}}

// Register adds an environment under its name, from an init function. A name
// registered twice panics.
func Register(name string, factory Factory) {
	registry.Lock()
	defer registry.Unlock()
	if _, ok := registry.factories[name]; ok {
		panic(fmt.Sprintf("environment %q is registered twice", name))
	}
	registry.factories[name] = factory
}

// Names are the registered environments in alphabetical order.
func Names() []string {
	registry.RLock()
	defer registry.RUnlock()
	names := make([]string, 0, len(registry.factories))
	for name := range registry.factories {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// New makes the environment registered under name. Errors: of kind ErrUnknown,
// with the nearest known name; an *OptionsError with every problem of the options.
func New(name string, options json.RawMessage) (Environment, error) {
	registry.RLock()
	factory, ok := registry.factories[name]
	registry.RUnlock()
	if !ok {
		names := Names()
		hint := ""
		if near := Nearest(name, names); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return nil, fmt.Errorf("%w %q, known are: %s%s", ErrUnknown, name, strings.Join(names, ", "), hint)
	}
	return factory(options)
}

// Nearest is the known name that a mistyped one is likely to mean, or "".
func Nearest(name string, known []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := levenshtein.Distance(strings.ToLower(name), strings.ToLower(k), nil); d < least {
			best, least = k, d
		}
	}
	return best
}
