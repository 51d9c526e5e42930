package tokenizer

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/nikolalohinski/gonja/v2/builtins"
	controlstructures "github.com/nikolalohinski/gonja/v2/builtins/control_structures"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/parser"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// sandboxStatements are the statements that a template may use. None reads another
// template, and none recurses, because Go cannot recover from a stack overflow. Each
// execution is charged to the rendering's budget, and all expressions are guarded.
var sandboxStatements = func() *exec.ControlStructureSet {
	set := map[string]parser.ControlStructureParser{"set": charged(parseSet)}
	for _, name := range []string{"for", "if", "raw", "do", "break", "continue"} {
		if parse, ok := builtins.ControlStructures.Get(name); ok {
			set[name] = charged(parse)
		}
	}
	return exec.NewControlStructureSet(set)
}()

func charged(parse parser.ControlStructureParser) parser.ControlStructureParser {
	return func(p, args *parser.Parser) (nodes.ControlStructure, error) {
		statement, err := parse(p, args)
		if err != nil {
			return nil, err
		}
		if err := guardStatement(statement); err != nil {
			return nil, err
		}
		executable, ok := statement.(exec.ControlStructure)
		if !ok {
			return nil, fmt.Errorf("statements of type %T are not supported", statement)
		}
		return &chargedStatement{executable}, nil
	}
}

func guardStatement(statement nodes.ControlStructure) error {
	switch s := statement.(type) {
	case *controlstructures.ForControlStructure:
		if s.Recursive {
			return errors.New("recursive loops are not supported")
		}
		if err := guardEach(0, &s.ObjectEvaluator); err != nil {
			return err
		}
		s.ObjectEvaluator = call(guardLooped, s.ObjectEvaluator)
		if s.IfCondition != nil {
			if err := guardEach(0, &s.IfCondition); err != nil {
				return err
			}
			// The engine evaluates the condition for every element before the loop runs.
			at := s.IfCondition.Position()
			s.IfCondition = &nodes.BinaryExpression{
				Left:     call(guardStep, &nodes.Bool{Location: at, Val: true}),
				Right:    s.IfCondition,
				Operator: parser.BinOp(&tokens.Token{Type: tokens.And, Val: "and"}),
			}
		}
		return guardBlocks(s.BodyWrapper, s.EmptyWrapper)
	case *controlstructures.IfControlStructure:
		for i := range s.Conditions {
			if err := guardEach(0, &s.Conditions[i]); err != nil {
				return err
			}
		}
		return guardBlocks(s.Wrappers...)
	case *controlstructures.DoControlStructure:
		return guardEach(0, &s.Expression)
	case *assignment:
		return s.guard()
	case *controlstructures.RawControlStructure, *controlstructures.BreakControlStructure, *controlstructures.ContinueControlStructure:
		return nil
	}
	return fmt.Errorf("statements of type %T are not supported", statement)
}

func guardBlocks(blocks ...*nodes.Wrapper) error {
	for _, block := range blocks {
		if block == nil {
			continue
		}
		if err := guardOutputs(block.Nodes); err != nil {
			return err
		}
	}
	return nil
}

// chargedStatement charges one step to the budget before the statement runs.
type chargedStatement struct{ exec.ControlStructure }

func (c *chargedStatement) Execute(r *exec.Renderer, tag *nodes.ControlStructureBlock) error {
	if err := budgetOf(r.Evaluator()).step(); err != nil {
		return err
	}
	return c.ControlStructure.Execute(r, tag)
}

// assignment is the statement set. Like Jinja's, it sets only variables and the attributes
// of a namespace. The engine's own statement would set any part of any value and does not
// limit the text of a block.
type assignment struct {
	location *tokens.Token
	name     string // of the variable or the namespace
	part     string // of the namespace; empty without
	// value is assigned or, if there is a condition and it is false, other. A block has
	// none of the three.
	value, condition, other nodes.Expression
	block                   *nodes.Wrapper
}

func (s *assignment) Position() *tokens.Token { return s.location }

func (s *assignment) String() string { return "set " + s.target() }

func (s *assignment) target() string {
	if s.part != "" {
		return s.name + "." + s.part
	}
	return s.name
}

func parseSet(p, args *parser.Parser) (nodes.ControlStructure, error) {
	s := &assignment{location: p.Current()}
	target, err := args.ParseVariableOrLiteral()
	if err != nil {
		return nil, err
	}
	switch t := target.(type) {
	case *nodes.Name:
		s.name = t.Name.Val
	case *nodes.GetAttribute:
		space, ok := t.Node.(*nodes.Name)
		if !ok || t.Attribute == "" {
			return nil, errors.New("only variables and a namespace's attributes can be set")
		}
		s.name, s.part = space.Name.Val, t.Attribute
	default:
		return nil, errors.New("only variables and a namespace's attributes can be set")
	}
	if args.Match(tokens.Assign) == nil {
		if !args.End() {
			return nil, args.Error("expected '=' or the end of set", args.Current())
		}
		block, end, err := p.WrapUntil("endset")
		if err != nil {
			return nil, err
		}
		if !end.End() {
			return nil, end.Error("endset takes no arguments", nil)
		}
		s.block = block
		return s, nil
	}
	if s.value, err = args.ParseExpression(); err != nil {
		return nil, err
	}
	if s.condition, s.other, err = args.ParseCondition(); err != nil {
		return nil, err
	}
	if s.condition != nil && s.other == nil {
		return nil, args.Error("a condition in set has no else", args.Current())
	}
	if !args.End() {
		return nil, args.Error("set has more than an expression", args.Current())
	}
	return s, nil
}

func (s *assignment) guard() error {
	if s.block != nil {
		return guardOutputs(s.block.Nodes)
	}
	if s.condition != nil {
		if err := guardEach(0, &s.condition, &s.other); err != nil {
			return err
		}
	}
	return guardEach(0, &s.value)
}

// Execute implements the engine's statement.
func (s *assignment) Execute(r *exec.Renderer, _ *nodes.ControlStructureBlock) error {
	b := budgetOf(r.Evaluator())
	value, err := s.evaluate(r, b)
	if err != nil {
		return err
	}
	if value.IsError() {
		return value
	}
	if s.part == "" {
		r.Environment.Context.Set(s.name, value.Interface())
		return nil
	}
	held, _ := r.Environment.Context.Get(s.name)
	space, ok := exec.ToValue(held).Interface().(namespace)
	if !ok {
		return fmt.Errorf("set %s: only a namespace's attributes can be set", s.target())
	}
	if value.IsNil() {
		delete(space, s.part)
		return nil
	}
	space[s.part] = value.Interface()
	size, err := b.size(exec.AsValue(space))
	if err == nil && size > maxValue {
		err = fmt.Errorf("set %s: the namespace is larger than %d bytes", s.target(), maxValue)
	}
	return err
}

func (s *assignment) evaluate(r *exec.Renderer, b *budget) (*exec.Value, error) {
	if s.block != nil {
		text := &captured{budget: b}
		inner := r.Inherit()
		inner.Output = text
		if err := inner.ExecuteWrapper(s.block); err != nil {
			return nil, err
		}
		return exec.AsSafeValue(text.out.String()), b.charge(1, text.out.Len())
	}
	if s.condition != nil {
		condition := r.Eval(s.condition)
		if condition.IsError() {
			return condition, nil
		}
		if condition.IsNil() || !condition.IsTrue() {
			return r.Eval(s.other), nil
		}
	}
	return r.Eval(s.value), nil
}

// captured collects what a block of set writes.
type captured struct {
	budget *budget
	out    bytes.Buffer
}

func (c *captured) Write(p []byte) (int, error) { return c.budget.write(&c.out, p, maxValue) }
