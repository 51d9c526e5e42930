package tokenizer

import (
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nikolalohinski/gonja/v2/builtins"
	controlstructures "github.com/nikolalohinski/gonja/v2/builtins/control_structures"
	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/tokens"
)

// init makes a process a renderer if it was started as one. Packages that import this one
// are not initialized then, and main does not run.
func init() {
	if os.Args[0] != rendererName {
		return
	}
	confine()
	questions, answers, parsed := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout), map[string]*exec.Template{}
	var q question
	for ; questions.Decode(&q) == nil; q = (question{}) {
		done := make(chan struct{})
		go watch(done)
		text, err := answerTo(q, parsed)
		close(done)
		a := answer{Text: text}
		if err != nil {
			a = answer{Failure: fmt.Sprintf("%.*s", 2*maxTemplate, err.Error())} // it may repeat the source
		}
		if memory() > maxMemory/4 {
			debug.FreeOSMemory() // the next template begins with as much memory as this one
		}
		_ = answers.Encode(a) // fails only if the worker is gone, and with it the next question
	}
	os.Exit(0)
}

// confine bounds what the process may do. The kernel refuses large allocations; watch sees what
// grows. A limit that cannot be set is lower already, or the system does not have it.
func confine() {
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP) // meant for the worker
	runtime.GOMAXPROCS(2)                                        // for a template and watch
	debug.SetMaxStack(maxStack)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // killed before the worker
	var pages [6]uint64                                             // the last is data, of which a race detector has much
	statm, _ := os.ReadFile("/proc/self/statm")
	_, _ = fmt.Sscan(string(statm), &pages[0], &pages[1], &pages[2], &pages[3], &pages[4], &pages[5])
	data := pages[5]*uint64(os.Getpagesize()) + 4*maxMemory
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: data, Max: data})
	_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{})
}

// watch ends the process if a template takes too much.
func watch(done <-chan struct{}) {
	used := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	for before := used(); ; {
		select {
		case <-done:
			return
		case <-time.After(10 * time.Millisecond):
		}
		switch {
		case used()-before > maxProcessor:
			os.Exit(exitSlow)
		case memory() > maxMemory:
			os.Exit(exitLarge)
		}
	}
}

// memory is what the Go runtime has of the system.
func memory() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

// What a template may use, besides the functions of environment. As in transformers' immutable
// sandbox, methods that change a value in place are missing. No statement reads another template.
const (
	templatePath = "/chat_template.jinja"
	methods      = "capitalize count endswith find get isdigit isspace items join keys lower lstrip removeprefix removesuffix replace " +
		"rfind rsplit rstrip split splitlines startswith strip title upper values"
	filters = "abs capitalize count d default dictsort e escape first float int items join last length list lower map max min " +
		"reject rejectattr replace reverse round safe select selectattr sort string sum title tojson trim unique upper"
	tests = "!= < <= == > >= boolean callable defined divisibleby eq equalto even false float ge greaterthan gt in integer iterable " +
		"le lessthan lt mapping ne none number odd sameas sequence string true undefined"
	statements = "break continue do for if raw set"
)

// environment is what templates run in. The engine would call every Go function and method that
// a value has. Therefore the calls of a parsed template are redirected to variables with names
// that no template can write: "function F", or "method M" with the value as first argument.
var environment = func() *exec.Environment {
	namespace, _ := builtins.GlobalFunctions.Get("namespace")
	globals := map[string]any{
		"function raise_exception": func(args *exec.VarArgs) (any, error) { return nil, errors.New(args.First().String()) },
		"function namespace":       namespace,
		"function range":           rangeOf,
		"index of a value":         indexOf,
		"function dict": func(args *exec.VarArgs) any {
			dict := exec.NewDict()
			for _, key := range slices.Sorted(maps.Keys(args.KwArgs)) {
				dict.Pairs = append(dict.Pairs, &exec.Pair{Key: exec.AsValue(key), Value: args.KwArgs[key]})
			}
			return dict
		},
	}
	for name := range strings.FieldsSeq(methods) {
		ofText, _ := builtins.Methods.Str.Get(name)
		ofDict, _ := builtins.Methods.Dict.Get(name)
		globals["method "+name] = func(args *exec.VarArgs) (any, error) {
			self, rest := args.First(), &exec.VarArgs{Args: args.Args[1:], KwArgs: args.KwArgs}
			if ofText != nil && self.IsString() {
				return ofText(self.String(), self, rest)
			}
			if dict, ok := self.ToGoSimpleType(false).(map[string]any); ok && ofDict != nil {
				return ofDict(dict, self, rest)
			}
			return nil, fmt.Errorf("the method %q is not supported here", name)
		}
	}
	return &exec.Environment{
		Context:           exec.NewContext(globals),
		Filters:           exec.NewFilterSet(pick(filters, builtins.Filters.Get)),
		Tests:             exec.NewTestSet(pick(tests, builtins.Tests.Get)),
		ControlStructures: exec.NewControlStructureSet(pick(statements, builtins.ControlStructures.Get)),
	}
}()

func pick[T any](names string, get func(string) (T, bool)) map[string]T {
	picked := map[string]T{}
	for name := range strings.FieldsSeq(names) {
		picked[name], _ = get(name)
	}
	return picked
}

// rangeOf is a list, unlike the engine's range.
func rangeOf(args *exec.VarArgs) (list []int, err error) {
	n, at := len(args.Args), [3]int{2: 1} // start, stop and step
	valid := n > 0 && n <= len(at)
	for i := 0; valid && i < n; i++ {
		at[i], valid = args.Args[i].Integer(), args.Args[i].IsInteger()
	}
	if n == 1 {
		at[0], at[1] = 0, at[0]
	}
	if !valid || at[2] == 0 {
		return nil, errors.New("range takes one to three integers, and no step of 0")
	}
	for i := at[0]; at[2] > 0 && i < at[1] || at[2] < 0 && i > at[1]; i += at[2] {
		list = append(list, i)
	}
	return list, nil
}

// redirect redirects the calls in a part of a template, and counts what its loops run over.
func redirect(part reflect.Value) {
	switch part.Kind() {
	case reflect.Interface:
		redirect(part.Elem())
	case reflect.Struct:
		for _, field := range part.Fields() {
			redirect(reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem()) // exported or not
		}
	case reflect.Slice, reflect.Map:
		for _, element := range part.Seq2() {
			redirect(element)
		}
	case reflect.Pointer:
		if n, ok := part.Interface().(*nodes.Call); ok {
			n.Parent = nil // Func holds it too
		}
		redirect(part.Elem())
		switch n := part.Interface().(type) {
		case *nodes.Call:
			name := "function of an expression"
			switch f := n.Func.(type) {
			case *nodes.Name:
				name = "function " + f.Name.Val
			case *nodes.GetAttribute:
				name = "method " + f.Attribute
				n.Args = slices.Insert(n.Args, 0, nodes.Expression(f.Node))
			}
			n.Func = call(name, n).Func
		case *nodes.GetItem:
			n.Arg = call("index of a value", n.Node, n.Arg)
		case *controlstructures.ForControlStructure:
			n.ObjectEvaluator = call("elements of a loop", n.ObjectEvaluator)
		}
	}
}

func call(name string, arguments ...nodes.Node) *nodes.Call {
	at := *arguments[0].Position()
	at.Type, at.Val = tokens.Name, name
	c := &nodes.Call{Location: &at, Func: &nodes.Name{Name: &at}}
	for _, a := range arguments {
		c.Args = append(c.Args, a.(nodes.Expression))
	}
	return c
}

// indexOf is the index of a value, from its beginning: the engine does not find the first
// element of a list counted from its end.
func indexOf(args *exec.VarArgs) *exec.Value {
	value, index := args.Args[0], args.Args[1]
	if index.IsInteger() && value.IsList() && index.Integer() == -value.Len() {
		return exec.AsValue(0)
	}
	return index
}

// answerTo parses the template of a question and renders the conversation.
func answerTo(q question, parsed map[string]*exec.Template) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("template engine: %v", r)
		}
	}()
	t := parsed[q.Template.Source]
	if t == nil {
		settings, loader := config.New(), loaders.MustNewMemoryLoader(map[string]string{templatePath: q.Template.Source})
		settings.TrimBlocks, settings.LeftStripBlocks = true, true // as in transformers
		if len(parsed) == 4 {
			clear(parsed) // few templates take little of the memory
		}
		if t, err = exec.NewTemplate(templatePath, settings, loader, environment); err == nil {
			redirect(reflect.ValueOf(t.Root()))
			parsed[q.Template.Source] = t
		}
	}
	if err != nil || !q.Render {
		return "", err
	}
	messages := make([]any, len(q.Messages))
	for i, m := range q.Messages {
		messages[i] = map[string]any{"role": m.Role, "content": m.Content}
	}
	looped := 0
	data := map[string]any{
		"messages":              messages,
		"add_generation_prompt": q.AddGenerationPrompt,
		"elements of a loop": func(args *exec.VarArgs) (*exec.Value, error) {
			if looped += args.First().Len(); looped > maxLooped {
				return nil, fmt.Errorf("loops over more than %d elements", maxLooped)
			}
			return args.First(), nil
		},
	}
	for name, token := range q.Template.Tokens {
		data[name] = token
	}
	maps.Copy(data, q.Template.Variables)
	out := strings.Builder{}
	if err = t.Execute(&out, exec.NewContext(data)); err == nil && out.Len() > maxRendered {
		err = fmt.Errorf("writes more than %d bytes", maxRendered)
	}
	return out.String(), err
}
