package executable

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"
)

// ErrUnsupported is the kind of errors of a version of go-xla whose structs are not those
// that this package reads.
var ErrUnsupported = errors.New("this version of go-xla is not supported")

// Field reads an unexported field of a struct of go-xla, because v0.4.5 has no accessor for
// it. It checks the field's type, so that another version gives an ErrUnsupported and not an
// invalid pointer. A pointer that is nil is an error too.
func Field[T any](owner any, name string) (T, error) {
	var zero T
	f, err := field(reflect.ValueOf(owner), name)
	if err != nil {
		return zero, err
	}
	value, ok := f.Interface().(T)
	if !ok || f.Type() != reflect.TypeFor[T]() {
		return zero, fmt.Errorf("%w: field %q of a %T is a %v, not a %v", ErrUnsupported, name, owner, f.Type(), reflect.TypeFor[T]())
	}
	if f.Kind() == reflect.Pointer && f.IsNil() {
		return zero, fmt.Errorf("field %q of a %T is nil", name, owner)
	}
	return value, nil
}

// setField sets a field to a value of exactly its type.
func setField(owner any, name string, value any) error {
	f, err := field(reflect.ValueOf(owner), name)
	if err != nil {
		return err
	}
	v := reflect.ValueOf(value)
	if v.Type() != f.Type() {
		return fmt.Errorf("%w: field %q of a %T is a %v, not a %T", ErrUnsupported, name, owner, f.Type(), value)
	}
	f.Set(v)
	return nil
}

// field finds a field of the struct that owner points to. It can be read and set.
func field(owner reflect.Value, name string) (reflect.Value, error) {
	if owner.Kind() != reflect.Pointer || owner.IsNil() || owner.Elem().Kind() != reflect.Struct {
		return reflect.Value{}, fmt.Errorf("%w: %v, in which field %q is looked for, is no pointer to a struct", ErrUnsupported, owner, name)
	}
	f := owner.Elem().FieldByName(name)
	if !f.IsValid() {
		return reflect.Value{}, fmt.Errorf("%w: a %v has no field %q", ErrUnsupported, owner.Type(), name)
	}
	return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem(), nil
}

// pointer finds a field that points to a struct of PJRT, by that struct's name: cgo gives
// each package types of its own. The result is the field's address.
func pointer(owner reflect.Value, name, of string) (*unsafe.Pointer, error) {
	f, err := field(owner, name)
	if err != nil {
		return nil, err
	}
	if f.Kind() != reflect.Pointer || f.Type().Elem().Name() != "_Ctype_struct_"+of {
		return nil, fmt.Errorf("%w: field %q of a %v is a %v, not a *%s", ErrUnsupported, name, owner.Type(), f.Type(), of)
	}
	return (*unsafe.Pointer)(f.Addr().UnsafePointer()), nil
}

// held reads the pointer to a struct of PJRT that owner's wrapper holds.
func held(owner any, wrapper, of string) (unsafe.Pointer, error) {
	w, err := field(reflect.ValueOf(owner), wrapper)
	if err != nil {
		return nil, err
	}
	return target(w, "c", of)
}

// target reads a field that points to a struct of PJRT.
func target(owner reflect.Value, name, of string) (unsafe.Pointer, error) {
	p, err := pointer(owner, name, of)
	if err != nil {
		return nil, err
	}
	if *p == nil {
		return nil, fmt.Errorf("field %q of a %v is nil", name, owner.Type())
	}
	return *p, nil
}

// giveWrapper gives owner an empty wrapper of a plugin, and returns the address of the
// wrapper's pointer to a struct of PJRT.
func giveWrapper(owner, plugin any, of string) (*unsafe.Pointer, error) {
	f, err := field(reflect.ValueOf(owner), "wrapper")
	if err != nil {
		return nil, err
	}
	if f.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("%w: the wrapper of a %T is a %v", ErrUnsupported, owner, f.Type())
	}
	f.Set(reflect.New(f.Type().Elem()))
	if err := setField(f.Interface(), "plugin", plugin); err != nil {
		return nil, err
	}
	return pointer(f, "c", of)
}
