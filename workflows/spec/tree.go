package spec

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// object is a JSON object of the spec: its keys in order, each either a rule
// or an object itself.
type object struct {
	path    string
	keys    []string
	rules   map[string]*rule
	objects map[string]*object
}

func newObject(path string) *object {
	return &object{path: path, rules: make(map[string]*rule), objects: make(map[string]*object)}
}

// tree is the document the rules describe; byPath finds a rule.
var (
	byPath = indexRules()
	tree   = buildTree(rules)
)

func buildTree(rules []*rule) *object {
	root := newObject("")
	for _, r := range rules {
		if r.inherits != "" {
			key, from := r.path, byPath[r.inherits]
			inherited := *from
			inherited.path, inherited.inherits, inherited.required = key, r.inherits, false
			*r = inherited
		}
		if r.typ == typeObjects && r.tree == nil {
			r.tree = buildTree(r.elements)
		}
		at := root
		keys := strings.Split(r.path, ".")
		for _, key := range keys[:len(keys)-1] {
			next := at.objects[key]
			if next == nil {
				next = newObject(strict.Join(at.path, key))
				at.objects[key] = next
				at.keys = append(at.keys, key)
			}
			at = next
		}
		key := keys[len(keys)-1]
		at.keys = append(at.keys, key)
		at.rules[key] = r
	}
	return root
}

func indexRules() map[string]*rule {
	index := make(map[string]*rule, len(rules))
	for _, r := range rules {
		index[r.path] = r
	}
	return index
}

// field is the Go field of v, a struct, that a path names by its JSON tags. It is false
// if v does not have the field, or if a pointer on the way is nil and make is not set.
func field(v reflect.Value, path string, make bool) (reflect.Value, bool) {
	key, rest, nested := strings.Cut(path, ".")
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if name != key {
			continue
		}
		f := v.Field(i)
		if !nested {
			return f, true
		}
		if f.Kind() == reflect.Pointer {
			if f.IsNil() {
				if !make {
					return reflect.Value{}, false
				}
				f.Set(reflect.New(f.Type().Elem()))
			}
			f = f.Elem()
		}
		return field(f, rest, make)
	}
	return ownField(v, path)
}

// set writes a value that a rule read, or its default, into the field of the
// struct that target points to.
func set(target any, path string, value any) {
	into := reflect.ValueOf(target).Elem()
	if setOwn(into, path, value) {
		return
	}
	f, ok := field(into, path, true)
	if !ok || f.Type() != reflect.TypeOf(value) {
		// The rules and the types are one table apart, and a test holds them together.
		panic(fmt.Sprintf("spec: no field %s of type %T", path, value))
	}
	f.Set(reflect.ValueOf(value))
}
