package spec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/reprise-rl/reprise/infra/pagetest"
	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/model/option"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workflows/collapse"
)

// leafPaths are the JSON paths of a type's fields, in order.
func leafPaths(t reflect.Type, prefix string) []string {
	var paths []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" && f.Type != reflect.TypeFor[option.Values]() {
			continue // no part of a spec
		}
		typ := f.Type
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() == reflect.Struct && typ != reflect.TypeFor[collapse.Config]() {
			paths = append(paths, leafPaths(typ, prefix+name+".")...)
			continue
		}
		if f.Type == reflect.TypeFor[option.Values]() {
			for _, o := range methods.Options() {
				if prefix == o.Section+"." {
					paths = append(paths, o.Path())
				}
			}
			continue
		}
		paths = append(paths, prefix+name)
	}
	return paths
}

func TestEveryFieldHasARule(t *testing.T) {
	var paths []string
	for _, f := range fieldsOf(rules()) {
		paths = append(paths, f.Path)
		require.NotEmpty(t, f.Type, f.Path)
		require.NotEmpty(t, f.Default, f.Path)
		require.NotEmpty(t, f.Allowed, f.Path)
		require.NotEmpty(t, f.Source, f.Path)
		require.NotEmpty(t, f.Doc, f.Path)
		require.NotContains(t, f.Allowed+f.Doc+f.Default+f.Source, "|", "it would end a cell of docs/spec.md: %s", f.Path)
	}
	require.Equal(t, leafPaths(reflect.TypeFor[Train](), ""), paths)
}

func TestEveryElementHasARule(t *testing.T) {
	rules() // fills in what elements inherit
	for _, list := range []struct {
		rules []*rule
		typ   reflect.Type
		more  []string // what a person may write besides
	}{{partRules, reflect.TypeFor[Part](), nil}, {clipRules, reflect.TypeFor[Clip](), nil}, {rewardRules, reflect.TypeFor[Reward](), nil}, {toolRules, reflect.TypeFor[Tool](), nil}, {contextRules, reflect.TypeFor[ContextCut](), nil}, {suiteRules, reflect.TypeFor[Suite](), []string{"suite"}}} {
		var paths []string
		for _, f := range fieldsOf(list.rules) {
			paths = append(paths, f.Path)
			require.NotEmpty(t, f.Default, f.Path)
			require.NotEmpty(t, f.Allowed, f.Path)
			require.NotEmpty(t, f.Doc, f.Path)
			require.NotContains(t, f.Allowed+f.Doc+f.Default+f.Source, "|", f.Path)
		}
		require.ElementsMatch(t, append(leafPaths(list.typ, ""), list.more...), paths)
	}
}

func TestDefaultsAreAllowed(t *testing.T) {
	for _, r := range rules() {
		for _, value := range []any{r.fallback(FromStarter), r.fallback("hf:a/model")} {
			if value == nil {
				continue
			}
			b, err := canonicalJSON(value)
			require.NoError(t, err, r.path)
			n, _, ok := parse(b)
			require.True(t, ok, r.path)
			read, problems := r.read(n)
			require.Empty(t, problems, r.path)
			require.Equal(t, value, read, r.path)
			require.NotPanics(t, func() { set(&Train{}, r.path, value) }, r.path)
		}
	}
}

// A default is written once: a pair of defaults is two different ones.
func TestDefaultsAreToldOnce(t *testing.T) {
	for _, r := range rules() {
		require.False(t, r.loaded != nil && reflect.DeepEqual(r.starter, r.loaded), r.path)
		require.False(t, r.value != nil && (r.starter != nil || r.loaded != nil), r.path)
	}
}

func TestSettingsHaveEveryKnob(t *testing.T) {
	for _, path := range Knobs() {
		_, ok := field(reflect.ValueOf(Settings{}), path, false)
		require.True(t, ok, path)
	}
	for _, path := range leafPaths(reflect.TypeFor[Settings](), "") {
		if path == "weights" {
			continue // of the spec's rewards, by their names
		}
		require.NotNil(t, byPath(path), "a setting is a field of the spec: %s", path)
	}
}

func TestRelationsReadKnownPaths(t *testing.T) {
	every := Default(FromStarter)
	every.From, every.Teacher = &From{}, &Teacher{}
	for _, r := range relations() {
		for _, path := range r.paths {
			_, ok := field(reflect.ValueOf(every), path, false)
			require.True(t, ok || methodstest.Mentions(path), path)
		}
	}
}

// Each section has one heading and one table.
func TestMarkdownHasEachSectionOnce(t *testing.T) {
	seen := map[string]bool{}
	for line := range strings.Lines(markdown()) {
		if strings.HasPrefix(line, "## ") {
			require.False(t, seen[line], line)
			seen[line] = true
		}
	}
	require.True(t, seen["## At the top\n"])
}

func TestMarkdownIsDocsSpec(t *testing.T) {
	methodstest.NeedsAll(t)
	pagetest.Same(t, "../../docs/spec.md", markdown(), updating())
}
