package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/option"
)

// own are the options of single methods.
var own = sync.OnceValue(methods.Options)

// beforeOwn is, for each section, the field after which those of single methods stand.
var beforeOwn = []string{"credit.step_weight", "rollout.search", "update.epochs"}

// withOwn are the rules with those of the options that single methods declare.
func withOwn(rules []*rule) []*rule {
	for _, before := range beforeOwn {
		at := slices.IndexFunc(rules, func(r *rule) bool { return r.path == before })
		for _, o := range own() {
			if strings.HasPrefix(before, o.Section+".") {
				at++
				rules = slices.Insert(rules, at, ruleOf(o))
			}
		}
	}
	return rules
}

// ruleOf is the rule of an option.
func ruleOf(o option.Option) *rule {
	r := &rule{path: o.Path(), typ: typeNumber, span: span{low: o.Low, high: o.High, openLow: o.Above}, source: o.Source, doc: o.Doc}
	leftOut := " Left out: "
	if o.Section == option.Credit {
		r.doc, leftOut = fmt.Sprintf(o.Doc, readersOf(o.Name)), " Default: "
	}
	switch {
	case o.Switch:
		r.typ, r.span, r.value = typeBool, span{}, false
	case o.Choices != nil:
		r.typ, r.span, r.enum = typeString, span{}, o.Choices
	case o.Whole:
		r.typ = typeInteger
	}
	if o.Default != 0 || r.typ == typeNumber {
		r.doc += leftOut + formatNumber(o.Default) + "."
	}
	return r
}

// ownValues are a section with its options of single methods; nil if the value is no such section.
func ownValues(section any) (string, *option.Values) {
	switch s := section.(type) {
	case *Credit:
		return option.Credit, &s.Own
	case *Rollout:
		return option.Rollout, &s.Own
	case *Update:
		return option.Update, &s.Own
	}
	return "", nil
}

// ownField is an option of single methods as field gives a field: a value that is read alone.
func ownField(v reflect.Value, key string) (reflect.Value, bool) {
	copied := reflect.New(v.Type())
	copied.Elem().Set(v)
	section, values := ownValues(copied.Interface())
	o, ok := own().Find(section, key)
	if !ok {
		return reflect.Value{}, false
	}
	return reflect.ValueOf(o.In(*values)), true
}

// setOwn sets an option of single methods, and reports whether the path names one.
func setOwn(target reflect.Value, path string, value any) bool {
	section, name, _ := strings.Cut(path, ".")
	o, ok := own().Find(section, name)
	if !ok {
		return false
	}
	c, there := field(target, section, true)
	if !there || reflect.TypeOf(value) != reflect.TypeOf(o.Zero()) {
		return false
	}
	_, into := ownValues(c.Addr().Interface())
	*into = own().With(section, *into, name, value)
	return true
}

// withValues is the JSON of a section with the options of single methods beside its other fields.
func withValues(core any, section string, values option.Values) ([]byte, error) {
	b, err := json.Marshal(core)
	if err != nil || len(values) == 0 {
		return b, err
	}
	more, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("options of section %s: %w", section, err)
	}
	b[len(b)-1] = ','
	return append(b, more[1:]...), nil
}

// valuesIn are the options of single methods in a section's JSON.
func valuesIn(b []byte, section string) (option.Values, error) {
	var written map[string]any
	if err := json.Unmarshal(b, &written); err != nil {
		return nil, err
	}
	var out option.Values
	for _, o := range own() {
		value, there := written[o.Name]
		if !there || o.Section != section {
			continue
		}
		if n, ok := value.(float64); ok && o.Whole && n == float64(int(n)) {
			value = int(n)
		}
		if reflect.TypeOf(value) != reflect.TypeOf(o.Zero()) {
			return nil, fmt.Errorf("%s is %v", o.Path(), value)
		}
		out = own().With(section, out, o.Name, value)
	}
	return out, nil
}

// MarshalJSON implements json.Marshaler: the options of single methods stand beside the others.
func (c Credit) MarshalJSON() ([]byte, error) {
	type core Credit
	return withValues(core(c), option.Credit, c.Own)
}

// UnmarshalJSON implements json.Unmarshaler, for what MarshalJSON or an earlier build has written.
func (c *Credit) UnmarshalJSON(b []byte) (err error) {
	type core Credit
	if err = json.Unmarshal(b, (*core)(c)); err == nil {
		c.Own, err = valuesIn(b, option.Credit)
	}
	return err
}

// MarshalJSON implements json.Marshaler, as Credit's.
func (r Rollout) MarshalJSON() ([]byte, error) {
	type core Rollout
	return withValues(core(r), option.Rollout, r.Own)
}

// UnmarshalJSON implements json.Unmarshaler, as Credit's.
func (r *Rollout) UnmarshalJSON(b []byte) (err error) {
	type core Rollout
	if err = json.Unmarshal(b, (*core)(r)); err == nil {
		r.Own, err = valuesIn(b, option.Rollout)
	}
	return err
}

// MarshalJSON implements json.Marshaler, as Credit's.
func (u Update) MarshalJSON() ([]byte, error) {
	type core Update
	return withValues(core(u), option.Update, u.Own)
}

// UnmarshalJSON implements json.Unmarshaler, as Credit's.
func (u *Update) UnmarshalJSON(b []byte) (err error) {
	type core Update
	if err = json.Unmarshal(b, (*core)(u)); err == nil {
		u.Own, err = valuesIn(b, option.Update)
	}
	return err
}
