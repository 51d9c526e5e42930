package spec

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/workflows/collapse"
)

// readCollapse reads the detectors' config: what is not written is the default's.
// Its fields are those of collapse.Config, which says what they may be.
func (r *rule) readCollapse(n node) (any, Problems) {
	config := collapse.Defaults()
	problems := readStruct(n, reflect.ValueOf(&config).Elem(), r.path)
	if len(problems) > 0 {
		return nil, problems
	}
	for _, p := range config.Validate() {
		problems = append(problems, Problem{Path: within(r.path, p.Path), Found: p.Found, Allowed: p.Allowed, Hint: p.Hint})
	}
	return config, problems
}

// readStruct reads an object strictly into a struct of numbers, texts and structs.
func readStruct(n node, into reflect.Value, path string) Problems {
	var keys []string
	fields := map[string]reflect.Value{}
	for i := range into.NumField() {
		key, _, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ",")
		keys = append(keys, key)
		fields[key] = into.Field(i)
	}
	if n.kind != kindObject {
		return Problems{{Path: path, Found: n.found(), Allowed: "an object with the keys " + strings.Join(keys, ", ")}}
	}
	var problems Problems
	for _, m := range n.members {
		at := join(path, m.key)
		f, ok := fields[m.key]
		if !ok {
			problems = append(problems, Problem{Path: at, Found: "an unknown key", Allowed: strings.Join(keys, ", "), Hint: didYouMean(m.key, keys)})
			continue
		}
		problems = append(problems, readField(m.value, f, at)...)
	}
	return problems
}

func readField(n node, into reflect.Value, path string) Problems {
	wrong := func(allowed string) Problems {
		return Problems{{Path: path, Found: n.found(), Allowed: allowed, Hint: quotedNumberHint(n)}}
	}
	switch into.Kind() {
	case reflect.Struct:
		return readStruct(n, into, path)
	case reflect.String:
		if n.kind != kindString {
			return wrong("a text")
		}
		into.SetString(n.text)
	case reflect.Int:
		i, err := strconv.Atoi(n.text)
		if n.kind != kindNumber || err != nil {
			return wrong("an integer")
		}
		into.SetInt(int64(i))
	default:
		f, err := strconv.ParseFloat(n.text, 64)
		if n.kind != kindNumber || err != nil {
			return wrong("a number")
		}
		if f == 0 {
			f = 0 // not −0
		}
		into.SetFloat(f)
	}
	return nil
}
