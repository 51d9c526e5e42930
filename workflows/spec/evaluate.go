package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Evaluate is what a person starts an Evaluate workflow with: a policy, and the
// suites it is measured on.
//
//	{"policy": "bandit-1"}
//	{"policy": {"run": "bandit-1", "version": 20}, "suites": ["in-distribution", "bandit-test"], "samples": 8}
//	{"policy": "hf:Qwen/Qwen2.5-0.5B-Instruct", "suites": ["sokoban", {"suite": "frozenlake", "think": false}]}
//
// DecodeEvaluate reads it; WithSuites completes it.
type Evaluate struct {
	// Run is the id of the run whose policy is measured, Version the policy
	// version, nil for the newest committed one.
	Run     string
	Version *int
	// From is a model instead of a run, as Policy.From.
	From string

	values map[string]any
}

// evaluateRules are the fields of an evaluation's input.
var evaluateRules = append([]*rule{
	{path: "policy.run", typ: typeString, text: printable(200), textAllowed: "the workflow id of a Train workflow"},
	{path: "policy.version", typ: typeInteger, span: between(0, 1_000_000)},
	{path: "policy.from", typ: typeString, text: checkModel, textAllowed: modelAllowed},
	{path: "policy.base", inherits: "policy.base"},
	{path: "policy.compute_dtype", inherits: "policy.compute_dtype"},
	{path: "policy.chat_template_kwargs", inherits: "policy.chat_template_kwargs"},
	{path: "prefill", inherits: "rollout.prefill"},
	{path: "suites", inherits: "evaluation.suites"},
}, inheritedRules("evaluation.instances", "evaluation.samples", "evaluation.seed", "evaluation.temperature",
	"rollout.turns", "rollout.max_new_tokens", "rollout.think", "rollout.subgoals", "rollout.context_turns", "rollout.penalty", "rollout.format_penalty", "rollout.protocol", "rollout.stop_at")...)

func checkModel(from string) string {
	if from == FromStarter {
		return "a starter is made by a run: name the run"
	}
	return checkOrigin(from)
}

// DecodeEvaluate reads an evaluation's input as strictly as Decode reads a spec.
// The error, of type Problems, lists all problems at once, except those that need the
// policy: WithSuites finds them.
func DecodeEvaluate(b []byte, known Known) (Evaluate, error) {
	root, problems, ok := parse(b)
	if !ok {
		return Evaluate{}, problems
	}
	if p, is := OfAnother(root, EvaluateType, wholeSpec); is {
		return Evaluate{}, Problems{p}
	}
	if root.Kind() == strict.Object {
		members := slices.Clone(root.Members())
		for i, m := range members {
			if text, ok := m.Value.Text(); ok && m.Key == "policy" {
				members[i].Value = strict.NewObject(strict.Member{Key: policyKey(text), Value: m.Value})
			}
		}
		root = strict.NewObject(members...)
	}
	d := decoder{known: known, values: make(map[string]any), bad: make(map[string]bool), problems: problems}
	d.object(root, indexed().evaluation)
	e := Evaluate{values: d.values}
	e.Run, _ = d.values["policy.run"].(string)
	e.From, _ = d.values["policy.from"].(string)
	if v, ok := d.values["policy.version"].(int); ok {
		e.Version = &v
	}
	if !d.isBad("policy.run") && !d.isBad("policy.from") {
		switch {
		case e.Run == "" && e.From == "":
			d.add("policy", Problem{Path: "policy", Found: nothing, Allowed: "a run's id, or " + modelAllowed, Hint: `{"policy": "bandit-1"} is enough`})
		case e.Run != "" && e.From != "":
			d.add("policy", Problem{Path: "policy", Found: "a run and a model", Allowed: "one of the two"})
		case e.From != "" && e.Version != nil:
			d.add("policy", Problem{Path: "policy.version", Found: fmt.Sprint(*e.Version), Allowed: "nothing beside policy.from", Hint: "only runs have versions"})
		case e.From != "" && d.values["suites"] == nil && !d.isBad("suites"):
			d.add("suites", Problem{Path: "suites", Found: nothing, Allowed: d.allowed(indexed().evaluation.rules["suites"]), Hint: "a model has no distribution of its own"})
		case e.Run != "" && d.values["policy.base"] != nil:
			d.add("policy", Problem{Path: "policy.base", Found: "a base model beside policy.run", Allowed: "the run's own"})
		case e.Run != "" && d.values["policy.compute_dtype"] != nil:
			d.add("policy", Problem{Path: "policy.compute_dtype", Found: "a dtype beside policy.run", Allowed: "the run's own"})
		case e.Run != "" && d.values["policy.chat_template_kwargs"] != nil:
			d.add("policy", Problem{Path: "policy.chat_template_kwargs", Found: "variables beside policy.run", Allowed: "the run's own"})
		case e.Run != "" && d.values["prefill"] != nil:
			d.add("policy", Problem{Path: "prefill", Found: "a prefill beside policy.run", Allowed: "the run's own"})
		}
	}
	if err := d.problems.Err(); err != nil {
		return Evaluate{}, err
	}
	return e, nil
}

// policyKey says what a policy that is only a string names.
func policyKey(text string) string {
	for _, kind := range []string{OriginHub, OriginFolder, OriginModel} {
		if strings.HasPrefix(text, kind+":") {
			return "from"
		}
	}
	return "run"
}

// WithSuites gives the spec that the evaluation follows: the run's spec or, for a model,
// a spec of defaults, with the requested suites. If there are none, a run's own suites
// are used. The error is of type Problems.
func (e Evaluate) WithSuites(run *Train, known Known) (Train, error) {
	t := Train{}
	if run != nil {
		t = *run
	} else {
		t = Default(e.From)
		for _, path := range []string{"policy.base", "policy.compute_dtype", "policy.chat_template_kwargs", prefill} {
			if value, ok := e.values[strings.TrimPrefix(path, "rollout.")]; ok {
				set(&t, path, value)
			}
		}
	}
	t.Evaluation.Every = 0
	d := decoder{known: known, values: map[string]any{}, bad: map[string]bool{}}
	if wording, ok := e.values["protocol"].(string); ok {
		if problems := d.checkWording(wording, "protocol"); len(problems) > 0 {
			return Train{}, problems.Err()
		}
	}
	// The suites of a run are complete: the keys beside the policy change each of them.
	suites := t.Evaluation.Suites
	asked, named := e.values["suites"].([]map[string]any)
	if named {
		training := t.Rollout
		for key, path := range inheritedFields {
			if value, ok := e.values[key]; ok {
				set(&t, path, value)
			}
		}
		t.Rollout.Protocol = leftOut(t.Rollout.Protocol, training.Protocol)
		d.values["evaluation.suites"] = asked
		var problems Problems
		if suites, problems = d.assembleSuites(t); len(problems) > 0 {
			return Train{}, ofSuites(problems).Err()
		}
		for i, v := range asked {
			if v["suite"] == InDistribution && run == nil {
				return Train{}, Problems{{Path: strict.Index("suites", i), Found: strict.Quote(InDistribution), Allowed: "a named suite, or an environment", Hint: "a model has no distribution of its own"}}.Err()
			}
		}
		t.Rollout = training
	} else {
		suites = append([]Suite(nil), suites...)
		for i := range suites {
			for key := range inheritedFields {
				if value, ok := e.values[key]; ok {
					set(&suites[i], key, value)
					suites[i].PromptTokens = nil // they may need other widths
				}
			}
			suites[i].Protocol = leftOut(suites[i].Protocol, t.Rollout.Protocol)
		}
	}
	t.Evaluation.Suites = suites
	if run == nil {
		s := suites[0]
		t.Environment = s.Environment
		t.Rollout.Turns, t.Rollout.MaxNewTokens, t.Rollout.Think, t.Rollout.ContextTurns = s.Turns, s.MaxNewTokens, s.Think, s.ContextTurns
		t.Rollout.Protocol, t.Rollout.Subgoals, t.Rollout.StopAt = s.Protocol, s.Subgoals, s.StopAt
		t.Policy.From, t.Policy.WarmStart.Steps, t.Iterations = e.From, 0, 1
	}
	if problems := unmet(t, func(relation) bool { return true }); len(problems) > 0 {
		return Train{}, ofSuites(problems).Err()
	}
	return t, nil
}

// ofSuites are a spec's problems with the paths that an evaluation's input has.
func ofSuites(problems Problems) Problems {
	for i := range problems {
		problems[i].Path = strings.TrimPrefix(problems[i].Path, "evaluation.")
	}
	return problems
}
