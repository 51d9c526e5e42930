package program

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/loss/terms"
	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/net/losses"
	"github.com/reprise-rl/reprise/model/search"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Option links something of your own into the program: a spec names it, and every command knows it. The program
// starts itself again for its workers, with the same options. All workers of a run need the same.
type Option func(*links)

// WithEnvironment links an environment. make declares the options of a spec's environment and makes the environment of
// their values, as for envs.Register. The name stands in every spec and record of a run, and is all that says which
// rules were played: give changed rules another name.
func WithEnvironment(name, summary string, make func(*envs.Options) envs.Environment) Option {
	return func(l *links) {
		l.environments = append(l.environments, func() error { return envs.Add(name, summary, make) })
		l.Environments = append(l.Environments, name)
	}
}

// WithMethod links an algorithm that turns rewards into advantages: a value of credit.algorithm. Its own options are
// fields of a spec.
func WithMethod(a credit.Algorithm) Option {
	return func(l *links) { l.algorithms, l.Algorithms = append(l.algorithms, a), append(l.Algorithms, a.Name) }
}

// WithSearch links a way in which rollouts search: a value of rollout.search. Its own options are fields of a spec.
func WithSearch(m search.Method) Option {
	return func(l *links) { l.searches, l.Searches = append(l.searches, m), append(l.Searches, m.Name) }
}

// WithSurrogate links a loss of a token: a value of update.surrogate. The operations of compute, in their order, decide
// the hashes of programs, by which a run knows whether another build continues it: give a changed loss another name. See
// losses.Register for what compute returns.
func WithSurrogate(entry terms.Term, compute func(losses.Tokens) (value, slope, bound *graph.Node)) Option {
	return func(l *links) {
		entry.Kind = cmp.Or(entry.Kind, terms.Surrogate)
		l.surrogates = append(l.surrogates, func() error { return losses.Register(entry, compute) })
		l.Surrogates = append(l.Surrogates, entry.Name)
	}
}

// links are what options link, in their order.
type links struct {
	linked
	environments, surrogates []func() error
	algorithms               []credit.Algorithm
	searches                 []search.Method
}

// linked are the names of what a program links beside what is in every one.
type linked struct {
	Environments []string `json:"environments,omitempty"`
	Algorithms   []string `json:"algorithms,omitempty"`
	Searches     []string `json:"searches,omitempty"`
	Surrogates   []string `json:"surrogates,omitempty"`
}

// own are what this program links.
var own linked

// Link registers what options link, and runs no command: tests of what is linked begin with it, as Main does. It comes
// before everything else, because what a spec may say follows from the tables at their first use. What cannot be linked
// is an error, as a name that is taken.
func Link(options ...Option) error {
	var l links
	for _, o := range options {
		o(&l)
	}
	for _, register := range slices.Concat(l.environments, l.surrogates) {
		if err := register(); err != nil {
			return err
		}
	}
	if err := methods.Register(l.algorithms, l.searches); err != nil {
		return err
	}
	if len(options) > 0 {
		if err := fields(l.algorithms); err != nil {
			return err
		}
	}
	own = l.linked
	return nil
}

// fields checks the options of what was linked beside the fields that every spec has.
func fields(algorithms []credit.Algorithm) error {
	known := map[string]bool{}
	for path := range spec.Fields() {
		if known[path] {
			return fmt.Errorf("%s is a field of every spec: give the option that is linked another name", path)
		}
		known[path] = true
	}
	for _, a := range algorithms {
		for _, name := range a.Reads {
			if !known["credit."+name] {
				return fmt.Errorf("algorithm %q reads credit.%s, which no spec has", a.Name, name)
			}
		}
	}
	return nil
}

// String names what is linked; "" is nothing.
func (l linked) String() string {
	var parts []string
	for _, of := range []struct {
		kind  string
		names []string
	}{{"environment", l.Environments}, {"algorithm", l.Algorithms}, {"search", l.Searches}, {"surrogate", l.Surrogates}} {
		for _, name := range of.names {
			parts = append(parts, of.kind+" "+name)
		}
	}
	return strings.Join(parts, ", ")
}
