package spec

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// Known is what the spec cannot know by itself, so that this package depends
// on no environment.
type Known struct {
	// Environments are the registered names; nil accepts every name.
	Environments []string
	// Options checks an environment's options (an object, at least "{}") and
	// answers with problems whose paths start at the options: "" for the
	// options themselves. Nil accepts all options. It is called only if the name is one
	// of Environments.
	Options func(name string, options json.RawMessage) []Problem
	// Suites are the names of the suites that Suite knows, without InDistribution.
	Suites []string
	// Suite gives a named suite's environment.
	Suite func(name string) (Environment, bool)
	// Demonstrates reports whether an environment has a solver that can play it; nil
	// takes it for granted.
	Demonstrates func(name string, options json.RawMessage) bool
	// Plays reports whether the actions of an environment are known before a run, so that random play
	// can be written down; nil takes it for granted.
	Plays func(name string, options json.RawMessage) bool
	// Roles reports whether an environment has several roles that take turns; nil takes it
	// for granted.
	Roles func(name string, options json.RawMessage) bool
	// Certain reports whether an environment leaves nothing to chance; nil takes it for granted.
	Certain func(name string, options json.RawMessage) bool
	// Forked reports whether the luck of an environment's episodes can be drawn anew in the middle; nil
	// takes it for granted.
	Forked func(name string, options json.RawMessage) bool
	// HeldOut gives the options with which an environment is evaluated in distribution;
	// nil if it uses the options of training.
	HeldOut func(name string, options json.RawMessage) (json.RawMessage, error)
	// Rewards are the names of the reward modules; nil accepts every name.
	Rewards []string
	// Reward answers what is wrong with a module's options ("options.NAME"), and what the
	// environment or the protocol lacks that it needs ("name"). Nil accepts all.
	Reward func(r Reward, e Environment, think bool) []Problem
	// Tools are the names of the tools; nil accepts every name. Tool answers what is wrong with the options of one
	// ("options.NAME") in an environment, Toolset what is wrong with all of them together; nil accepts all.
	Tools   []string
	Tool    func(tool Tool, e Environment) []Problem
	Toolset func(e Environment) error
	// Protocol answers what is wrong with a wording of prompts: its file, or its templates. Nil
	// accepts all.
	Protocol func(wording string) []Problem
}

// Decode reads a spec strictly and fills in the defaults. The result is resolved, except
// for rollout.prompt_tokens, which the environment gives.
//
// Keys are case-sensitive. Unknown and duplicate keys, null, anything after the end, more
// than MaxBytes and more than MaxDepth levels are refused. Integers are written as
// integers. Every value is in its range and fits the others. The error, of type Problems,
// names all that is wrong at once.
func Decode(b []byte, known Known) (Train, error) {
	root, problems, ok := parse(b)
	if !ok {
		return Train{}, problems
	}
	if p, is := OfAnother(root, TrainType, wholeSpec); is {
		return Train{}, Problems{p}
	}
	d := decoder{known: known, values: make(map[string]any), bad: make(map[string]bool), problems: problems}
	d.object(root, indexed().tree)
	t := d.assemble()
	d.from(t)
	d.environment(t)
	d.protocol(t)
	d.roles(t)
	d.certain(t)
	for _, p := range checkContext(t.Rollout.Context, "rollout.context") {
		d.add("rollout.context", p)
	}
	d.rewards(t)
	d.schedule(t)
	if !d.isBad("evaluation.suites") {
		var problems Problems
		t.Evaluation.Suites, problems = d.assembleSuites(t)
		for _, p := range problems {
			d.add(p.Path, p)
		}
		if len(problems) > 0 {
			d.bad["evaluation.suites"] = true
		}
	}
	d.problems = append(d.problems, unmet(t, func(r relation) bool { return !slices.ContainsFunc(r.paths, d.isBad) })...)
	if err := d.problems.Err(); err != nil {
		return Train{}, err
	}
	return t, nil
}

// Default is the spec with every default and no environment; from is a
// Policy.From, on which some defaults depend.
func Default(from string) Train {
	d := decoder{values: map[string]any{"policy.from": from}}
	return d.assemble()
}

// decoder collects the values of a document and what is wrong with them.
type decoder struct {
	known    Known
	values   map[string]any  // by path: what was read
	bad      map[string]bool // paths of fields with problems
	problems Problems
}

func (d *decoder) add(path string, p Problem) {
	d.bad[path] = true
	d.problems = append(d.problems, p)
}

// isBad reports whether a field, or an object it is in, has a problem already: then no
// other problem of it is reported.
func (d *decoder) isBad(path string) bool {
	for {
		if d.bad[path] {
			return true
		}
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return d.bad[""]
		}
		path = path[:i]
	}
}

func (d *decoder) object(n strict.Node, o *object) {
	if n.Kind() != strict.Object {
		hint := ""
		switch {
		case n.Kind() == strict.Null && o.path == "":
			hint = "give it by --input-file FILE or --input JSON"
		case n.Kind() == strict.Null:
			hint = "leave the key out for its defaults"
		}
		d.add(o.path, Problem{Path: orWhole(o.path), Found: n.Found(), Allowed: "an object with the keys " + strings.Join(o.keys, ", "), Hint: hint})
		return
	}
	if o.path != "" {
		d.values[o.path] = true // present, whatever it holds
	}
	for _, m := range n.Members() {
		if r := o.rules[m.Key]; r != nil && r.typ == typeObjects {
			d.list(m.Value, r)
		} else if r != nil {
			value, problems := r.read(m.Value)
			for _, p := range problems {
				if p.Path == environmentName {
					p.Allowed = d.allowed(r)
				}
				d.add(r.path, p)
			}
			if len(problems) > 0 {
				continue
			}
			d.values[r.path] = value
		} else if next := o.objects[m.Key]; next != nil {
			d.object(m.Value, next)
		} else {
			d.unknown(m.Key, o)
		}
	}
}

// hinted bounds the unknown keys that get a guess: thousands of them are not
// misspellings.
const hinted = 100

func (d *decoder) unknown(key string, o *object) {
	p := Problem{Path: strict.Join(o.path, key), Found: "an unknown key", Allowed: strings.Join(o.keys, ", ")}
	if len(d.problems) < hinted {
		p.Hint = cmp.Or(hintOf(key, o.keys), strict.DidYouMean(key, o.keys), homes(key, func(*rule) bool { return true }))
	}
	d.problems = append(d.problems, p)
}

// allowed is what a rule allows, with the environments that are known.
func (d *decoder) allowed(r *rule) string {
	if r.path == environmentName && len(d.known.Environments) > 0 {
		return oneOf(sorted(d.known.Environments))
	}
	return r.allowed()
}

// list reads an array of objects: what it keeps is their values by path.
func (d *decoder) list(n strict.Node, r *rule) {
	if n.Kind() != strict.Array || len(n.Items()) == 0 || len(n.Items()) > r.most {
		hint := ""
		if n.Kind() == strict.Null {
			hint = "leave the key out for its default"
		}
		d.add(r.path, Problem{Path: r.path, Found: n.Found(), Allowed: r.allowed(), Hint: hint})
		return
	}
	var read []map[string]any
	before := len(d.problems)
	for i, item := range n.Items() {
		element := decoder{known: d.known, values: make(map[string]any), bad: make(map[string]bool)}
		if short := r.tree.rules[r.short]; short != nil && item.Kind() == strict.String {
			item = strict.NewObject(strict.Member{Key: r.short, Value: item})
		}
		element.object(item, r.tree)
		for _, key := range r.tree.keys {
			e := r.tree.rules[key]
			if e == nil || !e.required || element.isBad(e.path) {
				continue
			}
			if _, ok := element.values[e.path]; !ok {
				element.add(e.path, Problem{Path: e.path, Found: nothing, Allowed: d.allowed(e), Hint: "it has no default"})
			}
		}
		for _, p := range element.problems {
			p.Path = strict.Within(strict.Index(r.path, i), p.Path)
			d.add(p.Path, p)
		}
		read = append(read, element.values)
	}
	if len(d.problems) > before {
		d.bad[r.path] = true
	}
	d.values[r.path] = read
}

// assemble makes the Train of the values read and of defaults for the rest.
func (d *decoder) assemble() Train {
	var t Train
	from, ok := d.values["policy.from"].(string)
	if !ok {
		from = FromStarter
	}
	_, starter := d.values["policy.starter"]
	_, lora := d.values["policy.lora"]
	for _, r := range rules() {
		if r.typ == typeObjects || strings.HasPrefix(r.path, "environment.") {
			continue
		}
		if !lora && strings.HasPrefix(r.path, "policy.lora.") {
			continue
		}
		value, ok := d.values[r.path]
		if !ok {
			value = r.fallback(from)
			if value == nil && starter && strings.HasPrefix(r.path, "policy.starter.") {
				value = r.starter // complete, so that the one problem is that it is there
			}
		}
		if value != nil {
			set(&t, r.path, value)
		}
	}
	t.Rollout.Protocol = leftOut(t.Rollout.Protocol, inheritedProtocol(from))
	if s := t.Policy.Starter; s != nil && s.Tokenizer == 1 {
		s.Tokenizer = 0 // as if it were not written, so that the two share a starter
	}
	t.Environment = assembleEnvironment(d.values, "environment.")
	t.Environment = t.Environment.withForeignDefaults(t.Limits.ActivitySeconds)
	t.Update.ClipTurns = elements(d.values, "update.clip_turns", Clip{})
	t.Rollout.Context = elements(d.values, "rollout.context", ContextCut{})
	t.Rewards = elements(d.values, "rewards", Reward{Weight: 1, Options: json.RawMessage(`{}`)})
	t.Schedule = elements(d.values, "schedule", Scheduled{})
	assembleFrom(&t, d.values)
	d.loaded(&t)
	return t
}

func sorted(names []string) []string {
	ordered := slices.Clone(names)
	slices.Sort(ordered)
	return ordered
}

// DefaultLoRA are the adapters that an empty policy.lora gives a policy from a model.
func DefaultLoRA(from string) *LoRA {
	d := decoder{values: map[string]any{"policy.from": from, "policy.lora": true}}
	return d.assemble().Policy.LoRA
}

// assembleEnvironment makes an Environment of the values read below a prefix.
func assembleEnvironment(values map[string]any, prefix string) Environment {
	var e Environment
	e.Name, _ = values[prefix+"name"].(string)
	e.Options, _ = values[prefix+"options"].(json.RawMessage)
	e.Mixture = elements(values, prefix+"mixture", Part{Share: 1, Options: json.RawMessage(`{}`)})
	for i, p := range e.Mixture {
		e.Mixture[i].Label = cmp.Or(p.Label, p.Name)
	}
	if e.Mixture == nil && len(e.Options) == 0 {
		e.Options = json.RawMessage(`{}`)
	}
	e.BrokenShare, _ = values[prefix+"broken_share"].(float64)
	e.OnBroken, _ = values[prefix+"on_broken"].(string)
	e.TimeoutSeconds, _ = values[prefix+"timeout_seconds"].(int)
	e.assembleTools(values, prefix)
	return e
}
