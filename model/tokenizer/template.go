package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/nikolalohinski/gonja/v2/builtins"
	controlstructures "github.com/nikolalohinski/gonja/v2/builtins/control_structures"
	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/parser"
)

// Bounds of a chat template, which is a program from a model folder. A template
// sees the messages, add_generation_prompt and the special tokens; it reads no
// file, no clock and no random numbers.
const (
	maxTemplate    = 64 << 10        // bytes of source
	maxNesting     = 8 << 10         // levels of expressions and statements
	maxRendered    = 16 << 20        // bytes written
	maxValue       = 4 << 20         // bytes of a variable
	maxSteps       = 1 << 17         // statements executed
	maxRange       = 1 << 14         // elements of a range()
	maxRenderTime  = 5 * time.Second // wall time; a run that passes differs in no bit
	budgetVariable = "reprise budget"
	templatePath   = "/chat_template.jinja"
)

// template is a chat template, ready to render.
type template struct {
	parsed *exec.Template
	tokens map[string]string // bos_token, eos_token, pad_token
}

// templateSource finds the chat template: chat_template.jinja, else the
// chat_template of tokenizer_config.json, which is text or a list of named texts.
func templateSource(file []byte, inConfig json.RawMessage) (string, error) {
	if len(file) > 0 {
		return string(file), nil
	}
	if len(inConfig) == 0 || string(inConfig) == "null" {
		return "", nil
	}
	var source string
	if err := json.Unmarshal(inConfig, &source); err == nil {
		return source, nil
	}
	var named []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	if err := json.Unmarshal(inConfig, &named); err != nil {
		return "", err
	}
	for _, n := range named {
		if n.Name == "default" {
			return n.Template, nil
		}
	}
	return "", errors.New(`no template is named "default"`)
}

// newTemplate parses a chat template with the settings transformers uses:
// trim_blocks and lstrip_blocks.
func newTemplate(source string, tokens map[string]string) (t *template, err error) {
	defer recovered(&err)
	if len(source) > maxTemplate {
		return nil, fmt.Errorf("%d bytes, at most %d are read", len(source), maxTemplate)
	}
	if n := nesting(source); n > maxNesting {
		return nil, fmt.Errorf("could nest %d levels deep, at most %d are read", n, maxNesting)
	}
	settings := config.New()
	settings.TrimBlocks = true
	settings.LeftStripBlocks = true
	loader, err := loaders.NewMemoryLoader(map[string]string{templatePath: source})
	if err != nil {
		return nil, err
	}
	environment := &exec.Environment{
		Context:           sandboxGlobals(),
		Filters:           sandboxFilters,
		Tests:             builtins.Tests,
		ControlStructures: sandboxStatements,
		Methods:           builtins.Methods,
	}
	parsed, err := exec.NewTemplate(templatePath, settings, loader, environment)
	if err != nil {
		return nil, err
	}
	return &template{parsed: parsed, tokens: tokens}, nil
}

// nesting bounds how deep the parser may recurse: whatever opens a level takes
// one of these. The parser spends 16 kB of stack a level, and Go cannot recover
// from a stack that overflows.
func nesting(source string) (n int) {
	for _, opens := range []string{"(", "[", "{", "-", "+", "*", "~", "not", "else"} {
		n += strings.Count(source, opens)
	}
	return n
}

// render writes the conversation as text. Errors are of kind ErrTemplate.
func (t *template) render(messages []Message, addGenerationPrompt bool) (text string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: %w", ErrTemplate, err)
		}
	}()
	defer recovered(&err)
	list := make([]any, len(messages))
	for i, m := range messages {
		list[i] = map[string]any{"role": m.Role, "content": m.Content}
	}
	limits := &budget{steps: maxSteps, end: time.Now().Add(maxRenderTime)}
	data := map[string]any{
		"messages":              list,
		"add_generation_prompt": addGenerationPrompt,
		budgetVariable:          limits,
	}
	for name, token := range t.tokens {
		if token != "" {
			data[name] = token
		}
	}
	if err := t.parsed.Execute(limits, exec.NewContext(data)); err != nil {
		return "", err
	}
	return limits.out.String(), nil
}

func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("template engine: %v", r)
	}
}

// budget is what one rendering may spend, and where it writes.
type budget struct {
	out   bytes.Buffer
	steps int
	end   time.Time
}

func (b *budget) Write(p []byte) (int, error) {
	if b.out.Len()+len(p) > maxRendered {
		return 0, fmt.Errorf("writes more than %d bytes", maxRendered)
	}
	if err := b.step(); err != nil {
		return 0, err
	}
	return b.out.Write(p)
}

func (b *budget) step() error {
	b.steps--
	if b.steps < 0 {
		return fmt.Errorf("executes more than %d statements", maxSteps)
	}
	if time.Now().After(b.end) {
		return fmt.Errorf("runs longer than %v", maxRenderTime)
	}
	return nil
}

// sandboxGlobals are the functions a template may call.
func sandboxGlobals() *exec.Context {
	globals := map[string]any{
		"raise_exception": func(_ *exec.Evaluator, params *exec.VarArgs) (string, error) {
			message := "raised an exception"
			if len(params.Args) > 0 {
				message = params.Args[0].String()
			}
			return "", errors.New(message)
		},
		"range": func(_ *exec.Evaluator, params *exec.VarArgs) ([]int, error) { return boundedRange(params) },
	}
	for _, name := range []string{"namespace", "dict"} {
		if f, ok := builtins.GlobalFunctions.Get(name); ok {
			globals[name] = f
		}
	}
	return exec.NewContext(globals)
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

// sandboxFilters are the filters a template may use: those that neither draw
// random numbers nor make much of little.
var sandboxFilters = func() *exec.FilterSet {
	set := exec.NewFilterSet(map[string]exec.FilterFunction{})
	for _, name := range []string{"abs", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first", "float",
		"int", "items", "join", "last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "replace",
		"reverse", "round", "safe", "select", "selectattr", "sort", "string", "sum", "title", "tojson", "trim", "unique", "upper"} {
		if f, ok := builtins.Filters.Get(name); ok {
			if err := set.Register(name, f); err != nil {
				panic(err)
			}
		}
	}
	return set
}()

// sandboxStatements are the statements a template may use: none that reads
// another template and none that recurses, since Go cannot recover from a stack
// that overflows. Each execution is charged to the rendering's budget.
var sandboxStatements = func() *exec.ControlStructureSet {
	set := exec.NewControlStructureSet(map[string]parser.ControlStructureParser{})
	for _, name := range []string{"for", "if", "set", "raw", "with", "do", "break", "continue", "filter"} {
		parse, ok := builtins.ControlStructures.Get(name)
		if !ok {
			continue
		}
		if err := set.Register(name, charged(name, parse)); err != nil {
			panic(err)
		}
	}
	return set
}()

func charged(name string, parse parser.ControlStructureParser) parser.ControlStructureParser {
	return func(p, args *parser.Parser) (nodes.ControlStructure, error) {
		target := ""
		if token := args.Current(); name == "set" && token != nil {
			target = token.Val
		}
		statement, err := parse(p, args)
		if err != nil {
			return nil, err
		}
		if loop, ok := statement.(*controlstructures.ForControlStructure); ok && loop.Recursive {
			return nil, errors.New("recursive loops are not supported")
		}
		executable, ok := statement.(exec.ControlStructure)
		if !ok {
			return statement, nil
		}
		return &chargedStatement{ControlStructure: executable, target: target}, nil
	}
}

// chargedStatement takes one step from the budget before the statement runs and
// checks the size of the variable it set.
type chargedStatement struct {
	exec.ControlStructure
	target string
}

func (c *chargedStatement) Execute(r *exec.Renderer, tag *nodes.ControlStructureBlock) error {
	if b, ok := r.Environment.Context.Get(budgetVariable); ok {
		if err := b.(*budget).step(); err != nil {
			return err
		}
	}
	if err := c.ControlStructure.Execute(r, tag); err != nil {
		return err
	}
	if c.target == "" {
		return nil
	}
	value, _ := r.Environment.Context.Get(c.target)
	if sizeOf(reflect.ValueOf(value), 3) > maxValue {
		return fmt.Errorf("variable %q is larger than %d bytes", c.target, maxValue)
	}
	return nil
}

// sizeOf is about the size of a template's value in bytes, to some depth.
func sizeOf(v reflect.Value, depth int) int {
	if value, ok := asValue(v); ok {
		v = value
	}
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() || depth == 0 {
			return 0
		}
		return sizeOf(v.Elem(), depth-1)
	case reflect.Slice, reflect.Array:
		size := 16 * v.Len()
		for i := 0; depth > 0 && i < v.Len(); i++ {
			size += sizeOf(v.Index(i), depth-1)
		}
		return size
	case reflect.Map:
		size := 32 * v.Len()
		for it := v.MapRange(); depth > 0 && it.Next(); {
			size += sizeOf(it.Value(), depth-1)
		}
		return size
	}
	return 0
}

// asValue unwraps the engine's own boxes.
func asValue(v reflect.Value) (reflect.Value, bool) {
	if !v.IsValid() || !v.CanInterface() {
		return v, false
	}
	boxed, ok := v.Interface().(*exec.Value)
	if !ok || boxed == nil {
		return v, false
	}
	return reflect.ValueOf(boxed.Interface()), true
}
