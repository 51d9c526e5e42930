package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/agent"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/rewards"
	"github.com/reprise-rl/reprise/envs/suites"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Known is what a spec is checked against: the registered environments, their
// options, and the named suites.
func Known() spec.Known {
	return spec.Known{
		Environments: append(envs.Names(), foreign.Name, agent.Name), Options: optionProblems, Suites: suites.Names(),
		Suite: func(name string) (spec.Environment, bool) {
			s, ok := suites.Named(name)
			return spec.Environment{Name: s.Environment, Options: s.Options}, ok
		},
		Demonstrates: demonstrates, Plays: plays, Roles: hasRoles, Certain: certain, Forked: forked, HeldOut: heldOut,
		Rewards: rewards.Names(), Reward: rewardProblems, Protocol: wordingProblems,
		Tools: envs.ToolNames(), Tool: toolProblems, Toolset: toolsetProblem,
	}
}

// Undescribed names a foreign environment or a server of tools of a spec that has not described itself: the start of the
// run asks it. Until then the widths of the prompts are not known. It is "" if there is none.
func Undescribed(t spec.Train) string {
	if name := undescribedTool(t.Environment); name != "" {
		return name
	}
	parts := t.Environment.Parts()
	for _, s := range t.Evaluation.Suites {
		if name := undescribedTool(s.Environment); name != "" {
			return name
		}
		parts = append(parts, s.Environment.Parts()...)
	}
	for _, p := range parts {
		env, err := envs.New(p.Name, p.Options)
		if err != nil {
			continue
		}
		if e, ok := env.(*foreign.Environment); ok {
			if _, described := e.Description(); !described {
				name, _ := e.Server()
				return name
			}
		}
	}
	return ""
}

// Foreign are the names of the foreign environments and the judge of a spec, each once.
func Foreign(t spec.Train) ([]string, error) {
	parts := t.Environment.Parts()
	for _, s := range t.Evaluation.Suites {
		parts = append(parts, s.Environment.Parts()...)
	}
	var names []string
	add := func(name string) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, p := range parts {
		env, err := envs.New(p.Name, p.Options)
		if err != nil {
			return nil, fmt.Errorf("environment %s: %w", p.Name, err)
		}
		if e, ok := env.(*foreign.Environment); ok {
			name, _ := e.Server()
			add(name)
		}
	}
	judge, err := JudgeOf(t)
	if err == nil && judge != nil && (judge.Form == nil || !judge.Form.Own()) {
		add(judge.Name)
	}
	return names, err
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

// plays reports whether an environment's actions are known: not those of a foreign one that has not
// described itself, or names them in observations alone.
func plays(name string, options json.RawMessage) bool {
	env, err := envs.New(name, options)
	if err != nil {
		return false
	}
	if e, ok := env.(*foreign.Environment); ok {
		return len(e.Actions()) > 0
	}
	for _, episode := range env.Cases() {
		if len(episode.Choices()) > 0 {
			return true
		}
	}
	return false
}

// hasRoles reports whether several roles take turns in an environment.
func hasRoles(name string, options json.RawMessage) bool {
	env, err := envs.New(name, options)
	if err != nil {
		return false
	}
	_, ok := env.(envs.Teamed)
	return ok
}

// certain reports whether an environment leaves nothing to chance.
func certain(name string, options json.RawMessage) bool {
	env, err := envs.New(name, options)
	if err != nil {
		return false
	}
	e, ok := env.(envs.Certain)
	return ok && e.Certain()
}

// forked reports whether the luck of an environment's episodes can be drawn anew in the middle.
func forked(name string, options json.RawMessage) bool {
	env, err := envs.New(name, options)
	if err != nil {
		return false
	}
	for _, episode := range env.Cases() {
		if _, ok := episode.(envs.Forked); !ok {
			return false
		}
	}
	return len(env.Cases()) > 0
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

// rewardProblems is what is wrong with a reward module's options, and what an environment
// lacks that it reads.
func rewardProblems(r spec.Reward, e spec.Environment, think bool) []spec.Problem {
	m, problems, err := rewards.New(r.Name, r.Options)
	if err != nil {
		return []spec.Problem{{Path: "name", Found: strict.Quote(r.Name), Allowed: err.Error()}}
	}
	for i := range problems {
		problems[i].Path = strict.Within("options", problems[i].Path)
	}
	if len(problems) > 0 {
		return problems
	}
	if of := (spec.Train{Rewards: []spec.Reward{r}}).JudgeModel(); of != nil {
		if _, err := of.Origin(); err != nil {
			return []spec.Problem{{
				Path: "options.judge", Found: strict.Quote(of.From), Allowed: "the NAME of a server, run, or a model: " + spec.FrozenAllowed, Hint: err.Error(),
			}}
		}
	}
	for _, p := range e.Parts() {
		env, err := envs.New(p.Name, p.Options)
		if err != nil {
			continue // reported at the environment
		}
		if lacks := m.Lacks(env, think); lacks != "" {
			return []spec.Problem{{
				Path: "name", Found: fmt.Sprintf("%s with the environment %s", strict.Quote(r.Name), strict.Quote(p.Name)),
				Allowed: "a module that does without " + lacks, Hint: "choose another module or another environment",
			}}
		}
	}
	return nil
}

// wordingProblems is what is wrong with a wording of prompts.
func wordingProblems(name string) []spec.Problem {
	_, problems := envs.Protocol{}.WithWording(name, 0)
	return problems
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
