package envs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Tool is something that a policy may call while it plays an episode, with its options resolved. It has no state and
// may be used by several goroutines: what it answers follows from the arguments alone.
type Tool interface {
	// Describe is what the policy is told about it.
	Describe() chat.Tool
	// Call answers. The arguments are a JSON object that fits the tool's Parameters.
	Call(arguments json.RawMessage) ToolAnswer
}

// ToolAnswer is what a tool says.
type ToolAnswer struct {
	// Text goes back to the policy.
	Text string `json:"text"`
	// Failed says that the tool could not do what it was asked; Text says why. That is the policy's failure and no
	// error of the run.
	Failed bool `json:"failed,omitempty"`
	// Killed says that it failed because a process that worked on it was ended: it took too long or too much memory.
	Killed bool `json:"killed,omitempty"`
}

// OutsideTool is a tool that a process of its own answers, so that its answers are recorded and its Call is never used.
type OutsideTool interface {
	Tool
	// Question is what is asked, and who answers it.
	Question(arguments json.RawMessage) ToolQuestion
}

// ToolQuestion is a question to an outside tool.
type ToolQuestion struct {
	// Kind is the kind of who answers, a tool's registered name; Server which of them, as a worker names it, "" if there
	// is one.
	Kind   string `json:"kind"`
	Server string `json:"server,omitempty"`
	// Body is the question itself, in canonical JSON.
	Body json.RawMessage `json:"body"`
}

// SeveralTools is implemented by a tool of a spec that stands for several: those of a server.
type SeveralTools interface {
	// Tools are the tools, in their order.
	Tools() []Tool
}

// Suggesting is implemented by tools that can give examples of arguments, without a hint of which of them helps. A warm
// start teaches the form of calls with them.
type Suggesting interface {
	// Suggest gives JSON objects that fit the tool's Parameters. read is what the policy has read before it calls: the state
	// and the newest answers, in which the examples may be found.
	Suggest(read string) []json.RawMessage
}

// Phrases are the texts of 1 to most words that follow each other on a line of a text, as they stand there, without the marks
// around them: each in its place, so that a text that stands twice is there twice. All that begin with a word stand
// together, the shortest first.
func Phrases(text string, most int) []string {
	var out []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		for first := range words {
			for end := first + 1; end <= min(first+most, len(words)); end++ {
				if strings.Trim(words[first], marks) == "" || strings.Trim(words[end-1], marks) == "" {
					continue // the same without the marks is there
				}
				phrase := strings.TrimSuffix(strings.Trim(strings.Join(words[first:end], " "), marks), "'s")
				if phrase != "" {
					out = append(out, phrase)
				}
			}
		}
	}
	return out
}

// marks stand around words.
const marks = ".,;:?!()[]<>\"'"

// ToolEntry is a kind of tool.
type ToolEntry struct {
	// Summary describes it to people.
	Summary string
	// Make declares the options and makes the tool from their values, for an environment, which may have what the tool
	// needs: a corpus. Its result is ignored if the options have a problem.
	Make func(*Options, Environment) Tool
}

var toolRegistry = struct {
	sync.RWMutex
	entries map[string]ToolEntry
}{entries: map[string]ToolEntry{}}

// RegisterTool adds a kind of tool under its name, from an init function. A name registered twice panics.
func RegisterTool(name string, e ToolEntry) {
	toolRegistry.Lock()
	defer toolRegistry.Unlock()
	if _, ok := toolRegistry.entries[name]; ok || !ValidName(name) {
		panic(fmt.Sprintf("tool %q is registered twice, or its name is not valid", name))
	}
	toolRegistry.entries[name] = e
}

// ToolNames are the registered tools in alphabetical order.
func ToolNames() []string {
	toolRegistry.RLock()
	defer toolRegistry.RUnlock()
	return slices.Sorted(maps.Keys(toolRegistry.entries))
}

// NewTool makes the tool registered under name from its options, which may be absent. Errors: of kind ErrUnknown, with
// the nearest known name; an *OptionsError with every problem of the options.
func NewTool(name string, options json.RawMessage, env Environment) (Tool, error) {
	e, err := findTool(name)
	if err != nil {
		return nil, err
	}
	o := parseOptions(options)
	tool := e.Make(o, env)
	if problems := o.all(); len(problems) > 0 {
		return nil, &OptionsError{Environment: name, Tool: true, Problems: problems}
	}
	return tool, nil
}

// DescribeTool explains a kind of tool and its options to people. The error is of kind ErrUnknown.
func DescribeTool(name string) (Description, error) {
	e, err := findTool(name)
	if err != nil {
		return Description{}, err
	}
	o := parseOptions(nil)
	e.Make(o, nil)
	d := Description{Name: name, Summary: e.Summary, Options: []Option{}}
	for _, r := range o.rows {
		d.Options = append(d.Options, r.Option)
	}
	return d, nil
}

func findTool(name string) (ToolEntry, error) {
	toolRegistry.RLock()
	e, ok := toolRegistry.entries[name]
	toolRegistry.RUnlock()
	if ok {
		return e, nil
	}
	names := ToolNames()
	text := "known are: " + strings.Join(names, ", ")
	if hint := strict.DidYouMean(name, names); hint != "" {
		text += "; " + hint
	}
	return ToolEntry{}, fmt.Errorf("%w: tool %q, %s", ErrUnknown, name, text)
}
