package workflows

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/reprise-rl/reprise/infra/strict"
)

// inputName names the whole input of a command in a problem.
const inputName = "(input)"

// readInput reads the input of a command as strictly as a spec is read. T is a struct: a field whose json
// tag has no omitempty is required. example is an input that is right; empty for a command without input.
// The error is strict.Problems.
func readInput[T any](input json.RawMessage, example string) (T, error) {
	var out T
	fields := reflect.TypeFor[T]()
	n, err := strict.Parse(input, strict.Limits{})
	if len(input) == 0 {
		n, err = strict.Node{}, nil
	}
	switch {
	case err != nil:
		return out, strict.Problems{{Path: inputName, Found: err.Error(), Allowed: "JSON"}}
	case n.Kind() == strict.Null && fields.NumField() == 0, n.Kind() == strict.Object && fields.NumField() == 0 && len(n.Members()) == 0:
		return out, nil
	case fields.NumField() == 0:
		return out, strict.Problems{{Path: inputName, Found: strict.Shorten(n.Raw()), Allowed: "nothing: this command has no input"}}
	case n.Kind() == strict.Null:
		n = strict.NewObject()
	case n.Kind() != strict.Object:
		return out, strict.Problems{{Path: inputName, Found: strict.Shorten(n.Raw()), Allowed: "an object, as " + example}}
	}
	var names []string
	at := map[string]reflect.StructField{}
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		names, at[name] = append(names, name), fields.Field(i)
	}
	var problems strict.Problems
	written := map[string]bool{}
	for _, m := range n.Written() {
		field, known := at[m.Key]
		switch {
		case !known:
			problems = append(problems, strict.Problem{
				Path: m.Key, Found: "an unknown key", Allowed: strings.Join(names, ", "), Hint: strict.DidYouMean(m.Key, names),
			})
			continue
		case m.Again:
			problems = append(problems, strict.Problem{Path: m.Key, Found: "the key again", Allowed: "each key once"})
		}
		written[m.Key] = true
		value := reflect.ValueOf(&out).Elem().FieldByIndex(field.Index)
		if m.Value.Kind() == strict.Null || json.Unmarshal([]byte(m.Value.Raw()), value.Addr().Interface()) != nil {
			problems = append(problems, strict.Problem{Path: m.Key, Found: strict.Shorten(m.Value.Raw()), Allowed: allowed(field.Type)})
		}
	}
	for _, name := range names {
		if _, options, _ := strings.Cut(at[name].Tag.Get("json"), ","); options == "" && !written[name] {
			problems = append(problems, strict.Problem{Path: name, Found: "nothing", Allowed: allowed(at[name].Type), Hint: "as " + example})
		}
	}
	return out, problems.Err()
}

// allowed says in words which values a field has.
func allowed(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Int:
		return "an integer"
	case reflect.String:
		return "a text in quotes"
	}
	return "a JSON value"
}

// command is a query or an update of a workflow, as the SDK takes it. A query has no validator.
type command struct {
	name              string
	handler, validate any
	about             string
}

// nothing is the input of a command that has none.
type nothing struct{}

// update is a command that changes something. Its input is refused before anything is recorded if it is not a
// T or if valid returns an error; do has it then. In a replay do alone is called: what an earlier build has
// accepted stays accepted.
func update[T any](
	name string, do func(workflow.Context, T) (string, error), valid func(workflow.Context, T) error, about, example string,
) command {
	return command{
		name: name,
		handler: func(ctx workflow.Context, input json.RawMessage) (string, error) {
			var in T
			if len(input) > 0 {
				if err := json.Unmarshal(input, &in); err != nil {
					return "", fmt.Errorf("read the input of %s: %w", name, err)
				}
			}
			return do(ctx, in)
		},
		validate: func(ctx workflow.Context, input json.RawMessage) error {
			in, err := readInput[T](input, example)
			if err != nil {
				return err
			}
			return valid(ctx, in)
		},
		about: withExample(about, example),
	}
}

// order is an update without an input.
func order(name string, do func(workflow.Context) (string, error), valid func(workflow.Context) error, about string) command {
	return update(name, func(ctx workflow.Context, _ nothing) (string, error) { return do(ctx) },
		func(ctx workflow.Context, _ nothing) error { return valid(ctx) }, about, "")
}

// question is a query: it answers, and changes nothing.
func question[T, A any](name string, answer func(T) (A, error), about, example string) command {
	return command{name: name, about: withExample(about, example), handler: func(input json.RawMessage) (A, error) {
		in, err := readInput[T](input, example)
		if err != nil {
			var none A
			return none, err
		}
		return answer(in)
	}}
}

func withExample(about, example string) string {
	if example == "" {
		return about
	}
	return about + ": " + example
}

// register registers a workflow's queries and updates.
func register(ctx workflow.Context, queries, updates []command) error {
	for _, q := range queries {
		if err := workflow.SetQueryHandlerWithOptions(ctx, q.name, q.handler, workflow.QueryHandlerOptions{Description: q.about}); err != nil {
			return fmt.Errorf("register query %s: %w", q.name, err)
		}
	}
	for _, u := range updates {
		options := workflow.UpdateHandlerOptions{Validator: u.validate, Description: u.about}
		if err := workflow.SetUpdateHandlerWithOptions(ctx, u.name, u.handler, options); err != nil {
			return fmt.Errorf("register update %s: %w", u.name, err)
		}
	}
	return nil
}

// unheard are warnings of the signals that were sent to a workflow, in the order of their names. A person's commands are
// updates, which are answered or refused; a signal by their name would be lost without a word.
func unheard(ctx workflow.Context) []string {
	const most = 10 // names of strangers
	names := slices.Sorted(slices.Values(workflow.GetUnhandledSignalNames(ctx)))
	var out []string
	for _, name := range names[:min(most, len(names))] {
		if name != TrialSignal {
			out = append(out, fmt.Sprintf("the signal %s was sent, and nothing listens to it: commands are updates (temporal workflow update execute --name NAME)", strict.Shorten(strconv.Quote(name))))
		}
	}
	return out
}
