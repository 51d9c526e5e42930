package spec

import (
	"reflect"
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// readCollapse reads the detectors' config: what is not written is the default's.
// It has the fields of collapse.Config, which says what is allowed.
func (r *rule) readCollapse(n strict.Node) (any, Problems) {
	config := collapse.Defaults()
	for _, m := range n.Members() {
		config = config.With(m.Key)
	}
	problems := readStruct(n, reflect.ValueOf(&config).Elem(), r.path)
	if len(problems) > 0 {
		return nil, problems
	}
	for _, p := range config.Validate() {
		p.Path = strict.Within(r.path, p.Path)
		problems = append(problems, p)
	}
	return config, problems
}

// readStruct reads an object strictly into a struct of numbers, texts and structs.
func readStruct(n strict.Node, into reflect.Value, path string) Problems {
	var keys []string
	fields := map[string]reflect.Value{}
	for i := range into.NumField() {
		key, _, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ",")
		keys = append(keys, key)
		fields[key] = into.Field(i)
	}
	if n.Kind() != strict.Object {
		return Problems{{Path: path, Found: n.Found(), Allowed: "an object with the keys " + strings.Join(keys, ", ")}}
	}
	var problems Problems
	for _, m := range n.Members() {
		at := strict.Join(path, m.Key)
		f, ok := fields[m.Key]
		if !ok {
			problems = append(problems, Problem{Path: at, Found: "an unknown key", Allowed: strings.Join(keys, ", "), Hint: strict.DidYouMean(m.Key, keys)})
			continue
		}
		problems = append(problems, readField(m.Value, f, at)...)
	}
	return problems
}

func readField(n strict.Node, into reflect.Value, path string) Problems {
	wrong := func(allowed string) Problems {
		return Problems{{Path: path, Found: n.Found(), Allowed: allowed, Hint: n.HintQuotes()}}
	}
	switch into.Kind() {
	case reflect.Struct:
		return readStruct(n, into, path)
	case reflect.String:
		text, ok := n.Text()
		if !ok {
			return wrong("a text")
		}
		into.SetString(text)
	case reflect.Int:
		i, ok := n.Integer()
		if !ok {
			return wrong("an integer")
		}
		into.SetInt(i)
	default:
		f, ok := n.Float()
		if !ok {
			return wrong("a number")
		}
		if f == 0 {
			f = 0 // not −0
		}
		into.SetFloat(f)
	}
	return nil
}
