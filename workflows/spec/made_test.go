package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
)

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
	for _, r := range rules() {
		f, ok := field(reflect.ValueOf(&t).Elem(), r.path, false)
		if value := r.fallback(t.Policy.From); ok && value != nil && r.absent(f) {
			f.Set(reflect.ValueOf(value))
		}
	}
	if len(t.Environment.Options) == 0 && len(t.Environment.Mixture) == 0 {
		t.Environment.Options = json.RawMessage(`{}`)
	}
	if len(t.Evaluation.Suites) == 0 {
		d := decoder{values: map[string]any{}}
		t.Evaluation.Suites, _ = d.assembleSuites(t) // the run's own suite has no problems
	}
	return t
}

// absent tells whether v, the field's value in a Train made in Go, can only
// mean that nothing was set: the zero value where zero is not allowed.
func (r *rule) absent(v reflect.Value) bool {
	if !v.IsZero() {
		return false
	}
	switch r.typ {
	case typeInteger, typeSeed, typeNumber:
		return !r.span.holds(0)
	case typeBool:
		return false
	}
	return true
}
