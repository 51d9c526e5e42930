package run

import (
	"encoding/json"
	"errors"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/suites"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Known is what a spec is checked against: the registered environments, their
// options, and the named suites.
func Known() spec.Known {
	return spec.Known{
		Environments: envs.Names(), Options: optionProblems, Suites: suites.Names(),
		Suite: func(name string) (spec.Environment, bool) {
			s, ok := suites.Named(name)
			return spec.Environment{Name: s.Environment, Options: s.Options}, ok
		},
		Demonstrates: demonstrates, HeldOut: heldOut,
	}
}

// demonstrates reports whether an environment's best play is known.
func demonstrates(name string, options json.RawMessage) bool {
	env, err := envs.New(name, options)
	if err != nil {
		return false
	}
	for _, episode := range env.Cases() {
		if _, ok := episode.(envs.Advised); !ok {
			return false
		}
	}
	return true
}

// optionProblems is what is wrong with an environment's options.
func optionProblems(name string, options json.RawMessage) []spec.Problem {
	_, err := envs.New(name, options)
	var bad *envs.OptionsError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		return bad.Problems
	default:
		return []spec.Problem{{Found: string(options), Allowed: err.Error()}}
	}
}

// heldOut are the options with which an environment is evaluated in distribution:
// its own, unless it keeps instances apart.
func heldOut(name string, options json.RawMessage) (json.RawMessage, error) {
	env, err := envs.New(name, options)
	if err != nil {
		return nil, err
	}
	if h, ok := env.(envs.Held); ok {
		return h.HeldOut(), nil
	}
	return options, nil
}
