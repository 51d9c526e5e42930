package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/model/methods"
)

// beforeOwn is the field of the section credit after which those of single algorithms stand.
const beforeOwn = "credit.step_weight"

// withOwn are the rules with those of the options that single algorithms declare.
func withOwn(rules []*rule) []*rule {
	var own []*rule
	for _, o := range methods.Options() {
		r := &rule{
			path: "credit." + o.Name, typ: typeNumber, span: span{low: o.Low, high: o.High, openLow: o.Above},
			source: o.Source, doc: fmt.Sprintf(o.Doc, readersOf(o.Name)),
		}
		if o.Switch {
			r.typ, r.span, r.value = typeBool, span{}, false
		} else {
			r.doc += " Default: " + formatNumber(o.Default) + "."
		}
		own = append(own, r)
	}
	at := slices.IndexFunc(rules, func(r *rule) bool { return r.path == beforeOwn })
	return slices.Insert(rules, at+1, own...)
}

// ownField is an option of single algorithms as field gives a field: a value that is read alone.
func ownField(v reflect.Value, key string) (reflect.Value, bool) {
	c, ok := v.Interface().(Credit)
	if !ok {
		return reflect.Value{}, false
	}
	o, ok := methods.Option(key)
	if !ok {
		return reflect.Value{}, false
	}
	return reflect.ValueOf(o.Value(c.Own)), true
}

// setOwn sets an option of single algorithms, and reports whether the path names one.
func setOwn(target reflect.Value, path string, value any) bool {
	name, ok := strings.CutPrefix(path, "credit.")
	if !ok {
		return false
	}
	o, ok := methods.Option(name)
	c, there := field(target, "credit", true)
	if !ok || !there || reflect.TypeOf(value) != reflect.TypeOf(o.Value(nil)) {
		return false
	}
	into := c.Addr().Interface().(*Credit)
	into.Own = methods.With(into.Own, name, value)
	return true
}

// MarshalJSON implements json.Marshaler: the options of single algorithms stand beside the others.
func (c Credit) MarshalJSON() ([]byte, error) {
	type core Credit
	b, err := json.Marshal(core(c))
	if err != nil || len(c.Own) == 0 {
		return b, err
	}
	own, err := json.Marshal(c.Own)
	if err != nil {
		return nil, fmt.Errorf("options of credit algorithm %s: %w", c.Algorithm, err)
	}
	b[len(b)-1] = ','
	return append(b, own[1:]...), nil
}

// UnmarshalJSON implements json.Unmarshaler, for what MarshalJSON or an earlier build has written.
func (c *Credit) UnmarshalJSON(b []byte) error {
	type core Credit
	if err := json.Unmarshal(b, (*core)(c)); err != nil {
		return err
	}
	var written map[string]any
	if err := json.Unmarshal(b, &written); err != nil {
		return err
	}
	c.Own = nil
	for _, o := range methods.Options() {
		switch value := written[o.Name].(type) {
		case nil:
		case bool, float64:
			if reflect.TypeOf(value) != reflect.TypeOf(o.Value(nil)) {
				return fmt.Errorf("credit.%s is %v", o.Name, value)
			}
			c.Own = methods.With(c.Own, o.Name, value)
		default:
			return fmt.Errorf("credit.%s is %v", o.Name, value)
		}
	}
	return nil
}
