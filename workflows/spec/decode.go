package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

// Known is what the spec cannot know by itself, so that this package depends
// on no environment.
type Known struct {
	// Environments are the registered names; nil accepts every name.
	Environments []string
	// Options checks an environment's options (an object, at least "{}") and
	// answers with problems whose paths start at the options: "" for the
	// options themselves. Nil accepts all options. It is called only where the
	// name is one of Environments.
	Options func(name string, options json.RawMessage) []Problem
}

// Decode reads a spec strictly and fills the defaults in: what it returns is
// resolved, but for rollout.prompt_tokens, which the environment gives.
//
// Keys are case-sensitive; unknown and duplicate keys, null, anything after
// the end, more than MaxBytes and more than MaxDepth levels are refused;
// integers are written as integers; every value is in its range and goes with
// the others. The error, of type Problems, names all that is wrong at once.
func Decode(b []byte, known Known) (Train, error) {
	root, problems, ok := parse(b)
	if !ok {
		return Train{}, problems
	}
	d := decoder{known: known, values: make(map[string]any), bad: make(map[string]bool), problems: problems}
	d.object(root, tree)
	d.missing()
	t := d.assemble()
	d.environment(t)
	d.problems = append(d.problems, unmet(t, d.isBad)...)
	if err := d.problems.err(); err != nil {
		return Train{}, err
	}
	return t, nil
}

// Validate checks a Train that was made or changed in Go as Decode checks a
// document; absent values count as written.
func Validate(t Train, known Known) error {
	b, err := t.JSON()
	if err != nil {
		return fmt.Errorf("validate spec: %w", err)
	}
	_, err = Decode(b, known)
	return err
}

// Default is the spec with every default and no environment; from is a
// Policy.From, on which some defaults depend.
func Default(from string) Train {
	d := decoder{values: map[string]any{"policy.from": from}}
	return d.assemble()
}

// Resolve fills in what is absent from a Train made in Go: fields whose zero
// value is not allowed, the starter's shape where the policy is the starter,
// and empty options. A zero that is allowed (no entropy bonus, no evaluation)
// stays; start from Default to have those defaults too. Resolve changes
// nothing in what Decode returned.
func Resolve(t Train) Train {
	if t.Policy.Starter != nil {
		starter := *t.Policy.Starter
		t.Policy.Starter = &starter
	} else if t.Policy.From == "" || t.Policy.From == FromStarter {
		t.Policy.Starter = Default(FromStarter).Policy.Starter
	}
	if t.Policy.From == "" {
		t.Policy.From = FromStarter
	}
	for _, r := range rules {
		f, ok := field(reflect.ValueOf(&t).Elem(), r.path, false)
		if value := r.fallback(t.Policy.From); ok && value != nil && r.absent(f) {
			f.Set(reflect.ValueOf(value))
		}
	}
	if len(t.Environment.Options) == 0 {
		t.Environment.Options = json.RawMessage(`{}`)
	}
	return t
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

// isBad tells whether a field, or an object it is in, has a problem already:
// then nothing more is said about it.
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

func (d *decoder) object(n node, o *object) {
	if n.kind != kindObject {
		hint := ""
		if n.kind == kindNull {
			hint = "leave the key out for its defaults"
		}
		d.add(o.path, Problem{Path: orWhole(o.path), Found: n.found(), Allowed: "an object with the keys " + strings.Join(o.keys, ", "), Hint: hint})
		return
	}
	if o.path != "" {
		d.values[o.path] = true // present, whatever it holds
	}
	for _, m := range n.members {
		if r := o.rules[m.key]; r != nil {
			value, problems := r.read(m.value)
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
		} else if next := o.objects[m.key]; next != nil {
			d.object(m.value, next)
		} else {
			d.unknown(m.key, o)
		}
	}
}

const environmentName = "environment.name"

// hinted bounds the unknown keys that get a guess: thousands of them are no
// misspelling.
const hinted = 100

func (d *decoder) unknown(key string, o *object) {
	p := Problem{Path: join(o.path, key), Found: "an unknown key", Allowed: strings.Join(o.keys, ", ")}
	if len(d.problems) < hinted {
		p.Hint = didYouMean(key, o.keys)
		if p.Hint == "" {
			p.Hint = homes(key, func(*rule) bool { return true })
		}
	}
	d.problems = append(d.problems, p)
}

// homes is the hint for a key that is known at other places; empty where it is
// known nowhere.
func homes(key string, wanted func(*rule) bool) string {
	var paths []string
	for _, r := range rules {
		if wanted(r) && strings.HasSuffix(r.path, "."+key) {
			paths = append(paths, strconv.Quote(r.path))
		}
	}
	if len(paths) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(paths, " or ") + "?"
}

// allowed is what a rule allows, with the environments that are known.
func (d *decoder) allowed(r *rule) string {
	if r.path == environmentName && len(d.known.Environments) > 0 {
		return oneOf(sorted(d.known.Environments))
	}
	return r.allowed()
}

func (d *decoder) missing() {
	for _, r := range rules {
		if _, ok := d.values[r.path]; r.required && !ok && !d.isBad(r.path) {
			d.add(r.path, Problem{Path: r.path, Found: nothing, Allowed: d.allowed(r), Hint: "it has no default"})
		}
	}
}

// assemble makes the Train of the values read and of defaults for the rest.
func (d *decoder) assemble() Train {
	var t Train
	from, ok := d.values["policy.from"].(string)
	if !ok {
		from = FromStarter
	}
	_, starter := d.values["policy.starter"]
	for _, r := range rules {
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
	if len(t.Environment.Options) == 0 {
		t.Environment.Options = json.RawMessage(`{}`)
	}
	return t
}

// environment checks the name and the options against what is known.
func (d *decoder) environment(t Train) {
	name := t.Environment.Name
	if d.isBad(environmentName) {
		return
	}
	if names := sorted(d.known.Environments); names != nil {
		i := sort.SearchStrings(names, name)
		if i == len(names) || names[i] != name {
			d.add(environmentName, Problem{Path: environmentName, Found: quote(name), Allowed: oneOf(names), Hint: didYouMean(name, names)})
			return
		}
	}
	if d.known.Options == nil || d.isBad("environment.options") {
		return
	}
	for _, p := range d.known.Options(name, t.Environment.Options) {
		switch {
		case p.Path == "":
			p.Path = "environment.options"
		case p.Path[0] == '[':
			p.Path = "environment.options" + p.Path
		default:
			p.Path = "environment.options." + p.Path
		}
		d.add(p.Path, p)
	}
}

func sorted(names []string) []string {
	if names == nil {
		return nil
	}
	ordered := append([]string{}, names...)
	sort.Strings(ordered)
	return ordered
}
