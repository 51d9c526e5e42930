package spec

import (
	"fmt"
	"reflect"
	"strings"
)

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

// elements are the values of a list of objects that was read, as structs that begin as start; nil if none was.
func elements[T any](values map[string]any, path string, start T) (out []T) {
	read, _ := values[path].([]map[string]any)
	for _, object := range read {
		element := start
		for key, value := range object {
			set(&element, key, value)
		}
		out = append(out, element)
	}
	return out
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
