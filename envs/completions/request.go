package completions

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Bounds of a request.
const (
	// MaxBody is the most bytes of a request's body.
	MaxBody = 4 << 20
	// MaxDepth is the most objects and arrays in each other.
	MaxDepth = 64
	// MaxValues is the most values and keys of a body, about: each costs memory, however short.
	MaxValues = 200_000
	// MaxMessages is the most messages, MaxCalls the most calls of one message.
	MaxMessages = 4096
	MaxCalls    = 128
	// MaxTools is the most tools, MaxName the most bytes of a name.
	MaxTools = 128
	MaxName  = 64
	// MaxStops is the most texts at which an answer ends, MaxStop the most bytes of each.
	MaxStops = 4
	MaxStop  = 256
	// MaxID is the most bytes of the id of a call, and of the name of a model.
	MaxID = 256
)

// Limits are what the calls of an episode may ask for.
type Limits struct {
	// Temperature is that of the spec: what a call has that names none, and the most that it may ask for.
	Temperature float64
	// MaxTokens is that of the spec: what a call has that names none, and the most that it may ask for.
	MaxTokens int
}

// smallestTemperature is the least temperature above 0, as in a spec: logits are divided by it.
const smallestTemperature = 0.01

// Check reports limits that allow no call.
func (l Limits) Check() error {
	switch {
	case !(l.Temperature >= 0) || math.IsInf(l.Temperature, 0):
		return fmt.Errorf("limits of calls: temperature %v, want a number from 0", l.Temperature)
	case l.MaxTokens < 1:
		return fmt.Errorf("limits of calls: %d tokens, want at least 1", l.MaxTokens)
	}
	return nil
}

// Request is a call as it was read: what is left out in it has the value that counts.
type Request struct {
	// Model is the name by which the client calls the policy. It changes nothing.
	Model    string    `json:"model"`
	Messages []Message `json:"messages"`
	// Tools are the tools that the policy is told about. Their parameters are without blanks, with keys in the order in
	// which they were written, because a chat template shows them so.
	Tools []chat.Tool `json:"tools"`
	// ToolChoice is "auto", or "none": the policy may call no tool. It is "none" if there are no tools.
	ToolChoice string `json:"tool_choice"`
	// Temperature of sampling; 0 is greedy.
	Temperature float64 `json:"temperature"`
	// MaxTokens is the most tokens that are sampled.
	MaxTokens int `json:"max_tokens"`
	// Stop are texts before which the answer ends, in the order of their bytes, each once.
	Stop []string `json:"stop"`
	// Logprobs says that the client wants the log-probability of each token.
	Logprobs bool `json:"logprobs,omitempty"`
	// Stream says that the client reads the answer as server-sent events, Usage that the last of them counts tokens.
	Stream bool `json:"stream,omitempty"`
	Usage  bool `json:"usage,omitempty"`
}

// Encode is a request as JSON, which json.Unmarshal reads.
func Encode(r Request) []byte { return encode(r) }

// reading is a request that is being read.
type reading struct {
	Request
	limits Limits
	// tokensBy is the field that gave MaxTokens.
	tokensBy string
}

// field is a field of a request.
type field struct {
	name string
	read func(*reading, strict.Node, string) *Refusal
}

// fields are read in this order: what a field means may depend on one before it.
var fields = []field{
	{"model", (*reading).model},
	{"messages", func(r *reading, n strict.Node, at string) (refusal *Refusal) {
		r.Messages, refusal = readMessages(n, at)
		return refusal
	}},
	{"tools", func(r *reading, n strict.Node, at string) (refusal *Refusal) {
		r.Tools, refusal = readTools(n, at)
		return refusal
	}},
	{"tool_choice", (*reading).toolChoice},
	{"parallel_tool_calls", only(true, "the policy may call several tools in a turn")},
	{"temperature", (*reading).temperature},
	{"max_tokens", (*reading).maxTokens},
	{"max_completion_tokens", (*reading).maxTokens},
	{"stop", (*reading).stop},
	{"n", (*reading).one},
	{"stream", func(r *reading, n strict.Node, at string) *Refusal { return truth(n, at, &r.Stream) }},
	{"stream_options", (*reading).streamOptions},
	{"logprobs", func(r *reading, n strict.Node, at string) *Refusal { return truth(n, at, &r.Logprobs) }},
	{"top_logprobs", (*reading).topLogprobs},
	{"user", func(_ *reading, n strict.Node, at string) *Refusal { return ofKind(n, strict.String, at, "a text") }},
	{"metadata", func(_ *reading, n strict.Node, at string) *Refusal { return ofKind(n, strict.Object, at, "an object") }},
	{"store", only(false, "no answer can be asked for again under its id")},
}

// instead says of some fields that are refused why, or what to use.
var instead = map[string]string{
	"seed":              "what is drawn follows from the run's seed and the call",
	"functions":         "use tools",
	"function_call":     "use tool_choice",
	"response_format":   "no form of answers is enforced",
	"top_p":             "sampling is from the whole distribution",
	"top_k":             "sampling is from the whole distribution",
	"min_p":             "sampling is from the whole distribution",
	"frequency_penalty": "sampling is from the policy's own distribution",
	"presence_penalty":  "sampling is from the policy's own distribution",
	"logit_bias":        "sampling is from the policy's own distribution",
}

// ReadRequest reads the body of a call, strictly: a body has one meaning or is refused.
func ReadRequest(body []byte, limits Limits) (Request, *Refusal) {
	root, refusal := parse(body)
	if refusal != nil {
		return Request{}, refusal
	}
	given := map[string]strict.Node{}
	for _, m := range root.Members() {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == m.Key }) {
			return Request{}, unknown(m.Key)
		}
		if m.Value.Kind() != strict.Null {
			given[m.Key] = m.Value
		}
	}
	r := &reading{
		Request: Request{Tools: []chat.Tool{}, Temperature: limits.Temperature, MaxTokens: limits.MaxTokens, Stop: []string{}},
		limits:  limits,
	}
	for _, name := range []string{"model", "messages"} {
		if _, ok := given[name]; !ok {
			return Request{}, refuse(CodeMissing, name, "%s is missing", name)
		}
	}
	for _, f := range fields {
		if n, ok := given[f.name]; ok {
			if refusal := f.read(r, n, f.name); refusal != nil {
				return Request{}, refusal
			}
		}
	}
	if r.ToolChoice == "" {
		r.ToolChoice = "auto"
	}
	if len(r.Tools) == 0 {
		r.ToolChoice = "none"
	}
	return r.Request, nil
}

// parse is the body as one object in which no key stands twice.
func parse(body []byte) (strict.Node, *Refusal) {
	if len(body) > MaxBody {
		return strict.Node{}, tooLarge()
	}
	if n := values(body); n > MaxValues {
		return strict.Node{}, refuse(CodeValue, "", "the body has more than %d values", MaxValues)
	}
	root, err := strict.Parse(body, strict.Limits{Bytes: MaxBody, Depth: MaxDepth})
	if err != nil {
		return strict.Node{}, refuse(CodeJSON, "", "the body is not read: %v", err)
	}
	if root.Kind() != strict.Object {
		return strict.Node{}, refuse(CodeType, "", "the body is %s, want an object", root.Found())
	}
	if twice := root.Repeated(""); len(twice) > 0 {
		return strict.Node{}, refuse(CodeValue, twice[0].Path, "%s stands twice", twice[0].Path)
	}
	return root, nil
}

// values counts the values and keys of a JSON text, give or take a few, before memory is spent on them.
func values(body []byte) int {
	n, quoted := 1, false
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			quoted = !quoted
		case '\\':
			if quoted {
				i++
			}
		case ',', ':', '[', '{':
			if !quoted {
				n++
			}
		}
	}
	return n
}

func tooLarge() *Refusal {
	return &Refusal{
		Status: http.StatusRequestEntityTooLarge, Code: CodeTooLarge,
		Message: fmt.Sprintf("the body has more than %d bytes", MaxBody),
	}
}

// unknown refuses a field of the request.
func unknown(name string) *Refusal {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	text := strict.Join("", name) + " is not honoured here: leave it out"
	switch hint := strict.DidYouMean(name, names); {
	case instead[name] != "":
		text += "; " + instead[name]
	case hint != "":
		text += "; " + hint
	default:
		text += ". Fields are: " + strings.Join(names, ", ")
	}
	return refuse(CodeUnknown, strict.Join("", name), "%s", text)
}
