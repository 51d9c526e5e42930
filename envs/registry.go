package envs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/infra/strict"
)

// ErrUnknown says that no environment is registered under a name.
var ErrUnknown = errors.New("unknown environment")

// entry is a registered environment.
type entry struct {
	summary string
	make    func(*Options) Environment
	outside bool // see RegisterOutside
	grades  func() bool
}

var registry = struct {
	sync.RWMutex
	entries map[string]entry
}{entries: map[string]entry{}}

// Register adds an environment under its name, from an init function; summary describes
// it to people. make declares the options and makes the environment from their values.
// Its result is ignored if the options have a problem. A name registered twice panics.
func Register(name, summary string, make func(*Options) Environment) {
	register(name, entry{summary: summary, make: make})
}

// Add is Register for a program that links an environment of its own when it starts. What keeps the environment out
// is an error: a name that is taken, or that the environment does not have.
func Add(name, summary string, make func(*Options) Environment) error {
	if !ValidName(name) {
		return fmt.Errorf("environment %q needs a name of lower-case letters, digits, _ and -", name)
	}
	if _, err := find(name); err == nil {
		return errTaken(name)
	}
	if make == nil {
		return fmt.Errorf("environment %q has no function that makes it", name)
	}
	o := parseOptions(nil)
	if env := make(o); len(o.all()) == 0 && env.Name() != name {
		return fmt.Errorf("environment %q says that its name is %q", name, env.Name())
	}
	return add(name, entry{summary: summary, make: make})
}

// ValidName reports whether a spec can name an environment so.
func ValidName(name string) bool { return validName.MatchString(name) }

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// RegisterOutside is Register for an environment whose episodes are played outside this
// program. Names leaves it out, since its episodes exist only in recordings.
func RegisterOutside(name, summary string, make func(*Options) Environment) {
	register(name, entry{summary: summary, make: make, outside: true})
}

func register(name string, e entry) {
	if err := add(name, e); err != nil {
		panic(err.Error())
	}
}

func add(name string, e entry) error {
	registry.Lock()
	defer registry.Unlock()
	if _, ok := registry.entries[name]; ok {
		return errTaken(name)
	}
	e.grades = sync.OnceValue(func() bool {
		_, grading := e.make(parseOptions(nil)).(Grading)
		return grading
	})
	registry.entries[name] = e
	return nil
}

func errTaken(name string) error { return fmt.Errorf("environment %q is registered twice", name) }

// Names are the registered environments in alphabetical order, without those outside.
func Names() []string {
	registry.RLock()
	defer registry.RUnlock()
	names := slices.Sorted(maps.Keys(registry.entries))
	return slices.DeleteFunc(names, func(name string) bool { return registry.entries[name].outside })
}

// New makes the environment registered under name from its options, which may be
// absent. Errors: of kind ErrUnknown, with the nearest known name; an *OptionsError
// with every problem of the options.
func New(name string, options json.RawMessage) (Environment, error) {
	e, err := find(name)
	if err != nil {
		return nil, err
	}
	o := parseOptions(options)
	env := e.make(o)
	if problems := o.all(); len(problems) > 0 {
		return nil, &OptionsError{Environment: name, Problems: problems}
	}
	return env, nil
}

// Describe explains an environment and its options to people. The error is of kind
// ErrUnknown.
func Describe(name string) (Description, error) {
	e, err := find(name)
	if err != nil {
		return Description{}, err
	}
	o := parseOptions(nil)
	e.make(o)
	d := Description{Name: name, Summary: e.summary, Options: []Option{}}
	for _, r := range o.rows {
		d.Options = append(d.Options, r.Option)
	}
	return d, nil
}

func find(name string) (entry, error) {
	registry.RLock()
	e, ok := registry.entries[name]
	registry.RUnlock()
	if ok {
		return e, nil
	}
	names := Names()
	text := "known are: " + strings.Join(names, ", ")
	if hint := strict.DidYouMean(name, names); hint != "" {
		text += "; " + hint
	}
	return entry{}, fmt.Errorf("%w %q, %s", ErrUnknown, name, text)
}
