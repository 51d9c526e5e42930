// Package deploy holds no code: the files beside it run Reprise on a machine, in Kubernetes and on a Slurm cluster. Its tests render the
// chart as helm does, and hold the results against Kubernetes' own schemas; docs/deploying.md says how the files are used.
package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	chart     = "chart"
	release   = "rl"
	namespace = "training"
)

type object = map[string]any

// files are the chart's, as templates read them.
type files string

// Get is the text of a file, empty where there is none.
func (f files) Get(name string) string {
	text, err := os.ReadFile(filepath.Join(string(f), name))
	if err != nil {
		return ""
	}
	return string(text)
}

// readYAML decodes one document.
func readYAML(t *testing.T, path string) object {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	out := object{}
	require.NoError(t, yaml.Unmarshal(text, &out), path)
	return out
}

// over lays values above defaults, as helm does: objects field by field, and null takes a field away.
func over(defaults, values object) object {
	out := maps.Clone(defaults)
	for name, value := range values {
		below, isObject := out[name].(object)
		above, both := value.(object)
		switch {
		case value == nil:
			delete(out, name)
		case isObject && both:
			out[name] = over(below, above)
		default:
			out[name] = value
		}
	}
	return out
}

// valuesOf are the chart's values with those of a text above them.
func valuesOf(t *testing.T, text string) object {
	t.Helper()
	values := object{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &values))
	return over(readYAML(t, filepath.Join(chart, "values.yaml")), values)
}

// render is what the chart makes of values: Kubernetes' objects in the order of templates' names.
func render(t *testing.T, values object) ([]object, error) {
	t.Helper()
	meta := readYAML(t, filepath.Join(chart, "Chart.yaml"))
	input := object{
		"Values": values, "Files": files(chart),
		"Release": object{"Name": release, "Namespace": namespace, "Service": "Helm"},
		"Chart":   object{"Name": meta["name"], "Version": meta["version"], "AppVersion": meta["appVersion"]},
	}
	all := template.New("").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = toYAML
	functions["fromYaml"] = func(text string) (object, error) {
		out := object{}
		return out, yaml.Unmarshal([]byte(text), &out)
	}
	functions["include"] = func(name string, data any) (string, error) {
		var out strings.Builder
		err := all.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	functions["required"] = func(what string, value any) (any, error) {
		if value == nil || value == "" {
			return nil, errors.New(what)
		}
		return value, nil
	}
	all.Funcs(functions)
	paths, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		_, err = all.New(filepath.Base(path)).Parse(string(text))
		require.NoError(t, err)
	}
	var out []object
	for _, path := range paths {
		var text strings.Builder
		if err := all.ExecuteTemplate(&text, filepath.Base(path), input); err != nil {
			return nil, err
		}
		if filepath.Ext(path) == ".yaml" {
			out = append(out, documents(t, text.String())...)
		}
	}
	return out, nil
}

func toYAML(value any) (string, error) {
	var out bytes.Buffer
	to := yaml.NewEncoder(&out)
	to.SetIndent(2)
	err := to.Encode(value)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// documents are those of a stream of YAML that are not empty.
func documents(t *testing.T, text string) []object {
	t.Helper()
	var out []object
	from := yaml.NewDecoder(strings.NewReader(text))
	for {
		var one object
		err := from.Decode(&one)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err, text)
		if one != nil {
			out = append(out, one)
		}
	}
}

// schemaOf reads a JSON schema.
func schemaOf(t *testing.T, path string) *jsonschema.Resolved {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var schema jsonschema.Schema
	require.NoError(t, json.Unmarshal(text, &schema), path)
	resolved, err := schema.Resolve(nil)
	require.NoError(t, err, path)
	return resolved
}

// fits holds a value against a schema, as JSON has it.
func fits(t *testing.T, schema *jsonschema.Resolved, value any) error {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	var plain any
	require.NoError(t, json.Unmarshal(text, &plain))
	return schema.Validate(plain)
}

// at is a value inside objects and lists, by the names and numbers that lead to it; nil where there is none.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			inside, _ := value.(object)
			value = inside[step]
		case int:
			list, _ := value.([]any)
			if step >= len(list) {
				return nil
			}
			value = list[step]
		}
	}
	return value
}

// texts are the elements of a list as text.
func texts(value any) []string {
	list, _ := value.([]any)
	var out []string
	for _, one := range list {
		out = append(out, fmt.Sprint(one))
	}
	return out
}

// named is the element of a list that has a name.
func named(value any, name string) any {
	list, _ := value.([]any)
	if i := slices.IndexFunc(list, func(one any) bool { return at(one, "name") == name }); i >= 0 {
		return list[i]
	}
	return nil
}
