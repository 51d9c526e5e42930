package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/exec"
)

// namespace is the result of namespace(), the only value whose attributes may be set.
type namespace map[string]any

// sandboxGlobals are the guards. They call the functions that a template may use.
func sandboxGlobals() *exec.Context {
	pass := func(check func(b *budget, v *exec.Value) error) func(*exec.Evaluator, *exec.VarArgs) (*exec.Value, error) {
		return func(e *exec.Evaluator, params *exec.VarArgs) (*exec.Value, error) {
			v := params.First()
			return v, check(budgetOf(e), v)
		}
	}
	return exec.NewContext(map[string]any{
		guardText:   pass((*budget).text),
		guardMade:   pass((*budget).made),
		guardLooped: pass((*budget).looped),
		guardSliced: pass(func(b *budget, v *exec.Value) error { return b.charge(1, 12*elements(v)) }),
		guardNumber: pass(func(_ *budget, v *exec.Value) error {
			if !v.IsNumber() && !v.IsBool() && !v.IsNil() {
				return errors.New("* multiplies numbers only: repeating text and lists is not supported")
			}
			return nil
		}),
		guardStep:     func(e *exec.Evaluator, _ *exec.VarArgs) (bool, error) { return true, budgetOf(e).step() },
		guardFunction: callFunction,
		guardMethod:   callMethod,
	})
}

// callFunction calls a function; params are its name and its arguments.
func callFunction(e *exec.Evaluator, params *exec.VarArgs) (any, error) {
	name := params.Args[0].String()
	args := &exec.VarArgs{Args: params.Args[1:], KwArgs: params.KwArgs}
	b := budgetOf(e)
	switch name {
	case "raise_exception":
		message := "raised an exception"
		if len(args.Args) > 0 {
			if err := b.text(args.Args[0]); err != nil {
				return nil, err
			}
			message = args.Args[0].String()
		}
		return nil, errors.New(message)
	case "range":
		list, err := boundedRange(args)
		if err != nil {
			return nil, err
		}
		return list, b.made(exec.AsValue(list))
	case "namespace":
		space := namespace{}
		for key, value := range args.KwArgs {
			space[key] = value
		}
		return space, b.made(exec.AsValue(space))
	case "dict":
		dict := exec.NewDict()
		for key, value := range args.KwArgs {
			dict.Pairs = append(dict.Pairs, &exec.Pair{Key: exec.AsValue(key), Value: value})
		}
		slices.SortFunc(dict.Pairs, func(x, y *exec.Pair) int { return strings.Compare(x.Key.String(), y.Key.String()) })
		return dict, b.made(exec.AsValue(dict))
	}
	return nil, fmt.Errorf("the function %q is not supported", name)
}

func boundedRange(params *exec.VarArgs) ([]int, error) {
	var at [3]int
	for i, a := range params.Args {
		if i >= len(at) || !a.IsInteger() {
			return nil, errors.New("range takes one to three integers")
		}
		at[i] = a.Integer()
	}
	start, stop, step := 0, at[0], 1
	switch len(params.Args) {
	case 0:
		return nil, errors.New("range takes one to three integers")
	case 2:
		start, stop = at[0], at[1]
	case 3:
		start, stop, step = at[0], at[1], at[2]
	}
	if step == 0 {
		return nil, errors.New("range has the step 0")
	}
	out := []int{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(out) == maxRange {
			return nil, fmt.Errorf("range has more than %d elements", maxRange)
		}
		out = append(out, i)
	}
	return out, nil
}

// The methods that a template may call. As in transformers' immutable sandbox, methods that
// change a value in place are missing. So are methods that pad or format.
var (
	stringMethods = []string{"capitalize", "count", "endswith", "find", "isdigit", "isspace", "join", "lower", "lstrip", "removeprefix",
		"removesuffix", "replace", "rfind", "rsplit", "rstrip", "split", "splitlines", "startswith", "strip", "title", "upper"}
	dictMethods = []string{"get", "items", "keys", "values"}
)

// callMethod calls a method; params are its name, its receiver and its arguments.
func callMethod(e *exec.Evaluator, params *exec.VarArgs) (any, error) {
	name, self := params.Args[0].String(), params.Args[1]
	args := &exec.VarArgs{Args: params.Args[2:], KwArgs: params.KwArgs}
	b := budgetOf(e)
	result, err := any(nil), fmt.Errorf("the method %q is not supported here", name)
	switch {
	case self.IsString() && slices.Contains(stringMethods, name):
		text := self.String()
		if err := b.charge(8, len(text)); err != nil {
			return nil, err
		}
		if err := b.arguments(args, maxValue); err != nil {
			return nil, err
		}
		switch name {
		case "replace":
			if err := b.replaced(text, args); err != nil {
				return nil, err
			}
		case "join":
			if err := b.joined(args.First(), len(text)); err != nil {
				return nil, err
			}
		case "split", "rsplit", "splitlines":
			if err := b.charge(elementBytes, pieces(text, name, args)); err != nil {
				return nil, err
			}
		}
		if method, ok := builtins.Methods.Str.Get(name); ok {
			result, err = method(text, self, args)
		}
	case self.IsDict() && slices.Contains(dictMethods, name):
		if err := b.text(self); err != nil {
			return nil, err
		}
		if method, ok := builtins.Methods.Dict.Get(name); ok {
			dict, ok := self.ToGoSimpleType(false).(map[string]any)
			if !ok {
				return nil, errors.New("a dictionary's keys must be text")
			}
			result, err = method(dict, self, args)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("method %q: %w", name, err)
	}
	return result, b.made(exec.AsValue(result))
}

// pieces is an upper bound of the number of pieces into which a text is split.
func pieces(text, method string, args *exec.VarArgs) int {
	if separator := args.First(); method != "splitlines" && separator.IsString() && separator.String() != "" {
		return strings.Count(text, separator.String()) + 1
	}
	return len(text) + 1
}

// cost is the kind of memory that a filter may allocate in addition to its result. It is
// charged before the filter runs.
type cost int

const (
	costNone    cost = iota
	costLength       // text is decoded
	costText         // the value is written as text
	costShallow      // elements, which are not examined
	costDeep         // elements, which are compared or written
)

// filterCosts are the filters a template may use.
var filterCosts = map[string]cost{
	"abs": costNone, "default": costNone, "d": costNone, "round": costNone, "safe": costNone,
	"count": costLength, "first": costLength, "last": costLength, "length": costLength,
	"capitalize": costText, "e": costText, "escape": costText, "float": costText, "int": costText, "lower": costText,
	"replace": costText, "string": costText, "title": costText, "tojson": costText, "trim": costText, "upper": costText,
	"items": costShallow, "list": costShallow, "map": costShallow, "reject": costShallow, "rejectattr": costShallow,
	"select": costShallow, "selectattr": costShallow,
	"dictsort": costDeep, "join": costDeep, "max": costDeep, "min": costDeep, "reverse": costDeep, "sort": costDeep,
	"sum": costDeep, "unique": costDeep,
}

// maxDigits is the longest text that int and float read, maxIndent the widest indentation
// of tojson, and maxArgument the longest argument of a filter that reads it once for each
// element.
const (
	maxDigits   = 4300
	maxIndent   = 16
	maxArgument = 4 << 10
)

var sandboxFilters = func() *exec.FilterSet {
	set := map[string]exec.FilterFunction{}
	for name, c := range filterCosts {
		if filter, ok := builtins.Filters.Get(name); ok {
			set[name] = charging(name, c, filter)
		}
	}
	return exec.NewFilterSet(set)
}()

func charging(name string, c cost, filter exec.FilterFunction) exec.FilterFunction {
	return func(e *exec.Evaluator, in *exec.Value, params *exec.VarArgs) *exec.Value {
		b := budgetOf(e)
		if err := b.filter(name, c, in, params); err != nil {
			return exec.AsValue(err)
		}
		out := filter(e, in, params)
		if c == costNone || out.IsError() {
			return out
		}
		if err := b.made(out); err != nil {
			return exec.AsValue(err)
		}
		return out
	}
}

// filter charges what a filter may allocate.
func (b *budget) filter(name string, c cost, in *exec.Value, params *exec.VarArgs) error {
	if err := b.late(); err != nil || c == costNone || in.IsError() {
		return err
	}
	if c == costLength {
		if in.IsString() {
			return b.charge(4, elements(in))
		}
		return nil
	}
	if c == costShallow || c == costDeep {
		if err := b.looped(in); err != nil {
			return err
		}
	}
	longest := maxArgument
	if name == "replace" || name == "join" {
		longest = maxValue
	}
	if err := b.arguments(params, longest); err != nil {
		return err
	}
	if c == costShallow {
		return nil
	}
	size, err := b.size(in)
	if err != nil {
		return err
	}
	times := 8
	switch name {
	case "int", "float":
		if size > maxDigits && !in.IsNumber() {
			return fmt.Errorf("the filter %q reads at most %d digits", name, maxDigits)
		}
	case "sort", "dictsort":
		times = 32
	case "replace":
		err = b.replaced(in.String(), params)
	case "join":
		separator := params.First()
		if d, ok := params.KwArgs["d"]; ok {
			separator = d
		}
		err = b.joined(in, len(separator.String()))
	case "tojson":
		indent := params.First()
		if named, ok := params.KwArgs["indent"]; ok {
			indent = named
		}
		if !indent.IsNil() {
			times = 32
		}
		if indent.Integer() > maxIndent {
			err = fmt.Errorf("tojson indents by at most %d", maxIndent)
		}
	}
	if err != nil {
		return err
	}
	return b.charge(times, size)
}

// arguments returns an error for arguments that are longer than longest.
func (b *budget) arguments(params *exec.VarArgs, longest int) error {
	check := func(v *exec.Value) error {
		size, err := b.size(v)
		if err == nil && size > longest {
			err = fmt.Errorf("an argument is longer than %d bytes", longest)
		}
		return err
	}
	for _, v := range params.Args {
		if err := check(v); err != nil {
			return err
		}
	}
	for _, v := range params.KwArgs {
		if err := check(v); err != nil {
			return err
		}
	}
	return nil
}

// replaced charges text.replace(old, new) before it is made.
func (b *budget) replaced(text string, params *exec.VarArgs) error {
	argument := func(i int, name string) string {
		if v, ok := params.KwArgs[name]; ok {
			return v.String()
		}
		if i < len(params.Args) {
			return params.Args[i].String()
		}
		return ""
	}
	old, new := argument(0, "old"), argument(1, "new")
	return b.fits(len(text) + strings.Count(text, old)*len(new))
}

// joined charges the elements of a list, with separators of the given length between them,
// before they are joined.
func (b *budget) joined(list *exec.Value, separator int) error {
	size, err := b.size(list)
	if err != nil {
		return err
	}
	return b.fits(size + elements(list)*separator)
}

// sandboxTests are the tests that a template may use. All compare values, except the
// tests of a value's kind.
var sandboxTests = func() *exec.TestSet {
	set := exec.NewTestSet(map[string]exec.TestFunction{})
	compare := []string{"eq", "equalto", "==", "ge", ">=", "gt", "greaterthan", ">", "in", "le", "<=", "lt", "lessthan", "<", "ne", "!="}
	kinds := []string{"boolean", "callable", "defined", "divisibleby", "even", "false", "float", "integer", "iterable", "mapping", "none",
		"number", "odd", "sameas", "sequence", "string", "true", "undefined"}
	for _, name := range append(compare, kinds...) {
		test, ok := builtins.Tests.Get(name)
		if !ok {
			continue
		}
		function, ok := test.(func(*exec.Context, *exec.Value, *exec.VarArgs) (bool, error))
		if !ok {
			continue
		}
		compares := slices.Contains(compare, name)
		guarded := func(e *exec.Evaluator, in *exec.Value, params *exec.VarArgs) (bool, error) {
			b := budgetOf(e)
			if err := b.late(); err != nil {
				return false, err
			}
			for _, v := range append([]*exec.Value{in}, params.Args...) {
				if !compares {
					break
				}
				if err := b.text(v); err != nil {
					return false, err
				}
			}
			return function(e.Environment.Context, in, params)
		}
		if err := set.Register(name, guarded); err != nil {
			panic(err)
		}
	}
	return set
}()

// noMethods prevents the engine from calling methods without callMethod.
func noMethods() exec.Methods {
	return exec.Methods{
		Bool:  exec.NewMethodSet(map[string]exec.Method[bool]{}),
		Int:   exec.NewMethodSet(map[string]exec.Method[int]{}),
		Float: exec.NewMethodSet(map[string]exec.Method[float64]{}),
		Str:   exec.NewMethodSet(map[string]exec.Method[string]{}),
		Dict:  exec.NewMethodSet(map[string]exec.Method[map[string]any]{}),
		List:  exec.NewMethodSet(map[string]exec.Method[[]any]{}),
	}
}
