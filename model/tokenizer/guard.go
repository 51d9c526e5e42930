package tokenizer

import (
	"errors"
	"fmt"

	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// The engine has no limits: one operator may allocate any amount of memory, and Go cannot
// recover from running out of it. Therefore a parsed template is rewritten before it runs.
// Every expression that makes a value is wrapped in a guard, a function with a name that no
// template can write. The guard charges the value to the rendering's budget and returns it.
// Expressions that the rewriting does not know are errors.
const (
	guardText     = "guard text"     // a value that is about to be written, joined or compared
	guardNumber   = "guard number"   // an operand of *
	guardSliced   = "guard sliced"   // a value that is about to be sliced
	guardLooped   = "guard looped"   // a value that is about to be iterated over
	guardMade     = "guard made"     // a value that was just made
	guardStep     = "guard step"     // true, or an error once the budget is spent
	guardMethod   = "guard method"   // calls a method of a value
	guardFunction = "guard function" // calls a function
)

// Bounds of an expression. The engine's errors print every level of it.
const (
	maxExpression = 200  // levels
	maxDict       = 1024 // entries of a literal: the engine looks them up one after the other
)

// guardOutputs rewrites the expressions that the nodes write.
func guardOutputs(list []nodes.Node) error {
	for _, node := range list {
		output, ok := node.(*nodes.Output)
		if !ok {
			continue
		}
		for _, e := range []*nodes.Expression{&output.Expression, &output.Condition, &output.Alternative} {
			if *e == nil {
				continue
			}
			guarded, err := guard(*e)
			if err != nil {
				return err
			}
			if e != &output.Condition {
				guarded = call(guardText, guarded)
			}
			*e = guarded
		}
	}
	return nil
}

// guard rewrites an expression.
func guard(e nodes.Expression) (nodes.Expression, error) { return guardAt(e, 0) }

func guardAt(e nodes.Expression, depth int) (nodes.Expression, error) {
	if depth > maxExpression {
		return nil, fmt.Errorf("an expression nests more than %d levels", maxExpression)
	}
	depth++
	switch n := e.(type) {
	case *nodes.None, *nodes.String, *nodes.Integer, *nodes.Float, *nodes.Bool, *nodes.Name:
		return n, nil
	case *nodes.List:
		return call(guardMade, n), guardAll(n.Val, depth)
	case *nodes.Tuple:
		return call(guardMade, n), guardAll(n.Val, depth)
	case *nodes.Dict:
		if len(n.Pairs) > maxDict {
			return nil, fmt.Errorf("a dictionary has %d entries, at most %d are read", len(n.Pairs), maxDict)
		}
		for _, pair := range n.Pairs {
			if err := guardEach(depth, &pair.Key, &pair.Value); err != nil {
				return nil, err
			}
		}
		return call(guardMade, n), nil
	case *nodes.Call:
		return guardCall(n, depth)
	case *nodes.GetItem:
		return n, guardNodes(depth, &n.Node, &n.Arg)
	case *nodes.GetAttribute:
		return n, guardNodes(depth, &n.Node)
	case *nodes.GetSlice:
		if err := guardNodes(depth, &n.Node, &n.Start, &n.End, &n.Step); err != nil {
			return nil, err
		}
		n.Node = call(guardSliced, n.Node)
		return call(guardMade, n), nil
	case *nodes.Negation:
		return n, guardEach(depth, &n.Term)
	case *nodes.UnaryExpression:
		return n, guardEach(depth, &n.Term)
	case *nodes.BinaryExpression:
		return guardBinary(n, depth)
	case *nodes.FilteredExpression:
		if len(n.Filters) > maxExpression {
			return nil, fmt.Errorf("an expression has more than %d filters", maxExpression)
		}
		for _, f := range n.Filters {
			if err := guardArguments(f.Args, f.Kwargs, depth); err != nil {
				return nil, err
			}
		}
		return n, guardEach(depth, &n.Expression)
	case *nodes.TestExpression:
		if err := guardArguments(n.Test.Args, n.Test.Kwargs, depth); err != nil {
			return nil, err
		}
		return n, guardEach(depth, &n.Expression)
	case nil:
		return nil, errors.New("an expression is missing")
	}
	return nil, fmt.Errorf("expressions of type %T are not supported", e)
}

func guardBinary(n *nodes.BinaryExpression, depth int) (nodes.Expression, error) {
	if err := guardEach(depth, &n.Left, &n.Right); err != nil {
		return nil, err
	}
	switch n.Operator.Token.Type {
	case tokens.And, tokens.Or:
		return n, nil
	case tokens.Multiply:
		n.Left, n.Right = call(guardNumber, n.Left), call(guardNumber, n.Right)
		return n, nil
	case tokens.Addition, tokens.Tilde:
		n.Left, n.Right = call(guardText, n.Left), call(guardText, n.Right)
		return call(guardMade, n), nil
	}
	n.Left, n.Right = call(guardText, n.Left), call(guardText, n.Right)
	return n, nil
}

// guardCall redirects a call to the allowed functions and methods. The engine would call
// any function of a value.
func guardCall(n *nodes.Call, depth int) (nodes.Expression, error) {
	if err := guardArguments(n.Args, n.Kwargs, depth); err != nil {
		return nil, err
	}
	if len(n.Kwargs) > maxDict {
		return nil, fmt.Errorf("a call has %d named arguments, at most %d are read", len(n.Kwargs), maxDict)
	}
	var to *nodes.Call
	switch f := n.Func.(type) {
	case *nodes.Name:
		to = call(guardFunction, &nodes.String{Location: f.Name, Val: f.Name.Val})
	case *nodes.GetAttribute:
		if err := guardNodes(depth, &f.Node); err != nil {
			return nil, err
		}
		to = call(guardMethod, &nodes.String{Location: f.Location, Val: f.Attribute}, f.Node)
	default:
		return nil, fmt.Errorf("calls of %T are not supported", n.Func)
	}
	to.Args, to.Kwargs = append(to.Args, n.Args...), n.Kwargs
	return to, nil
}

func guardArguments(args []nodes.Expression, named map[string]nodes.Expression, depth int) error {
	for name, e := range named {
		if err := guardEach(depth, &e); err != nil {
			return err
		}
		named[name] = e
	}
	return guardAll(args, depth)
}

func guardAll(list []nodes.Expression, depth int) error {
	for i := range list {
		if err := guardEach(depth, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

func guardEach(depth int, list ...*nodes.Expression) error {
	for _, e := range list {
		guarded, err := guardAt(*e, depth)
		if err != nil {
			return err
		}
		*e = guarded
	}
	return nil
}

// guardNodes is guardEach for operands that may be absent.
func guardNodes(depth int, list ...*nodes.Node) error {
	for _, n := range list {
		if *n == nil {
			continue
		}
		guarded, err := guardAt(*n, depth)
		if err != nil {
			return err
		}
		*n = guarded
	}
	return nil
}

// call makes a call of a guard.
func call(name string, args ...nodes.Expression) *nodes.Call {
	at := args[0].Position()
	return &nodes.Call{
		Location: at,
		Func:     &nodes.Name{Name: &tokens.Token{Type: tokens.Name, Val: name, Line: at.Line, Col: at.Col}},
		Args:     args,
		Kwargs:   map[string]nodes.Expression{},
	}
}
