package envs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Problem is one thing wrong with an environment's options.
type Problem struct {
	// Path is the option, "low_reward"; "" for the options as a whole.
	Path string
	// Found is the value found, as JSON.
	Found string
	// Want says what is allowed.
	Want string
}

func (p Problem) String() string {
	if p.Path == "" {
		return fmt.Sprintf("found %s, want %s", p.Found, p.Want)
	}
	return fmt.Sprintf("%s: found %s, want %s", p.Path, p.Found, p.Want)
}

// OptionsError is everything wrong with an environment's options.
type OptionsError struct {
	Environment string
	Problems    []Problem
}

func (e *OptionsError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return fmt.Sprintf("options of environment %q: %s", e.Environment, strings.Join(lines, "; "))
}

// DecodeOptions decodes options strictly into a struct that holds the defaults,
// given by pointer: names count with their case; unknown or duplicate names,
// null, values of another type and anything after the end are problems. It
// returns all of them; an environment adds those of the values themselves.
// Absent options have none.
func DecodeOptions(options json.RawMessage, into any) []Problem {
	options = bytes.TrimSpace(options)
	if len(options) == 0 {
		return nil
	}
	fields, names := optionFields(into)
	decoder := json.NewDecoder(bytes.NewReader(options))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return []Problem{{Found: excerpt(options), Want: "a JSON object"}}
	}
	var problems []Problem
	seen := map[string]bool{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return append(problems, Problem{Found: excerpt(options), Want: "valid JSON (" + err.Error() + ")"})
		}
		name := key.(string)
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return append(problems, Problem{Path: name, Found: excerpt(options), Want: "valid JSON (" + err.Error() + ")"})
		}
		field, known := fields[name]
		switch {
		case seen[name]:
			problems = append(problems, Problem{Path: name, Found: excerpt(value), Want: "each option once"})
		case !known:
			want := "one of the options " + strings.Join(names, ", ")
			if near := Nearest(name, names); near != "" {
				want += fmt.Sprintf(" (did you mean %q?)", near)
			}
			problems = append(problems, Problem{Path: name, Found: excerpt(value), Want: want})
		case bytes.Equal(value, []byte("null")):
			problems = append(problems, Problem{Path: name, Found: "null", Want: kindName(field.Type()) + ", or no such option for its default"})
		default:
			if err := json.Unmarshal(value, field.Addr().Interface()); err != nil {
				problems = append(problems, Problem{Path: name, Found: excerpt(value), Want: kindName(field.Type())})
			}
		}
		seen[name] = true
	}
	if _, err := decoder.Token(); err != nil {
		return append(problems, Problem{Found: excerpt(options), Want: "valid JSON (" + err.Error() + ")"})
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		problems = append(problems, Problem{Found: excerpt(options[decoder.InputOffset():]), Want: "nothing after the object"})
	}
	return problems
}

// optionFields are the fields of a struct by their JSON names, and the names in order.
func optionFields(into any) (map[string]reflect.Value, []string) {
	v := reflect.ValueOf(into).Elem()
	fields := make(map[string]reflect.Value, v.NumField())
	names := make([]string, 0, v.NumField())
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		fields[name] = v.Field(i)
		names = append(names, name)
	}
	return fields, names
}

func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	}
	return "a value of type " + t.String()
}

// excerpt is the beginning of a value, for a message.
func excerpt(b []byte) string {
	const most = 60
	if s := []rune(string(b)); len(s) > most {
		return string(s[:most]) + "…"
	}
	return string(b)
}
