package tokenizer

import (
	"fmt"
	"strings"
	"time"

	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
)

// Bounds of a chat template, which is a program from a model folder. A template can read
// the messages, add_generation_prompt and the special tokens, but no files, clock or random
// numbers.
const (
	maxTemplate    = 64 << 10        // bytes of source
	maxNesting     = 8 << 10         // levels of expressions and statements
	maxRendered    = 16 << 20        // bytes written
	maxValue       = 4 << 20         // bytes of a value
	maxMade        = 128 << 20       // bytes of all values that are made during a rendering
	maxSteps       = 1 << 17         // statements executed
	maxRange       = 1 << 14         // elements of a range()
	maxRenderTime  = 5 * time.Second // wall time; it does not change the result of a rendering that ends in time
	budgetVariable = "reprise budget"
	templatePath   = "/chat_template.jinja"
)

// template is a chat template, ready to render.
type template struct {
	parsed *exec.Template
	tokens map[string]string // bos_token, eos_token, pad_token
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
		Tests:             sandboxTests,
		ControlStructures: sandboxStatements,
		Methods:           noMethods(),
	}
	parsed, err := exec.NewTemplate(templatePath, settings, loader, environment)
	if err != nil {
		return nil, err
	}
	if err := guardOutputs(parsed.Root().Nodes); err != nil {
		return nil, err
	}
	return &template{parsed: parsed, tokens: tokens}, nil
}

// nesting is an upper bound of the parser's recursion: it counts the symbols and words that
// can open a level. The parser uses 16 kB of stack for each level, and Go cannot recover
// from a stack overflow.
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
	limits := &budget{steps: maxSteps, bytes: maxMade, until: time.Now().Add(maxRenderTime)}
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
	if limits.spent != nil {
		return "", limits.spent
	}
	return limits.out.String(), nil
}

func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("template engine: %v", r)
	}
}
