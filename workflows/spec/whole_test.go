package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/pagetest"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
)

// smallest is the spec that docs/whole-spec.md shows with all its defaults.
const smallest = `{"environment":{"name":"bandit"}}`

// wholeSpecHead is what stands above the block of docs/whole-spec.md.
const wholeSpecHead = `# A whole spec

<!-- Generated from workflows/spec/defaults.go; go test ./workflows/spec -update writes this page. -->

This is ` + "`" + `{"environment": {"name": "bandit"}}` + "`" + ` with every field and its default. [Spec](spec.md) has ranges, sources and
all meanings.

A field that has no default, or that this spec cannot have, is commented out, with its default in other specs or with
what it may be. ◆ marks a knob, which the change-knob command changes during the run. Where policies other than the
starter have another default, the comment ends with it. ` + "`reprise validate FILE`" + ` prints your own spec with its defaults.
A spec is JSON, without comments.

`

// wholeSpecPage is docs/whole-spec.md.
func wholeSpecPage(t *testing.T) string {
	t.Helper()
	spec, err := Decode([]byte(smallest), Known{})
	require.NoError(t, err)
	b, err := spec.JSON()
	require.NoError(t, err)
	var values map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(b, &values))
	var out strings.Builder
	out.WriteString(wholeSpecHead + "```jsonc\n{\n")
	writeObject(t, &out, rules(), "", "  ", values)
	out.WriteString("}\n```\n")
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(out.String())
}

// writeObject writes the fields of the object at a prefix, and the objects in it after them. values has what the
// spec has there; what it lacks is commented out.
func writeObject(t *testing.T, out *strings.Builder, all []*rule, prefix, indent string, values map[string]json.RawMessage) {
	t.Helper()
	var objects []string
	seen, left := map[string]bool{}, len(values)
	comma := func() string {
		left--
		return map[bool]string{true: ","}[left > 0]
	}
	for _, r := range all {
		key, below := strings.CutPrefix(r.path, prefix)
		if !below {
			continue
		}
		if object, _, deeper := strings.Cut(key, "."); deeper {
			if !seen[object] {
				objects = append(objects, object)
			}
			seen[object] = true
			continue
		}
		writeComment(out, indent, r)
		if value, ok := values[key]; ok {
			fmt.Fprintf(out, "%s%q: %s%s\n", indent, key, spaced(t, value, indent), comma())
		} else {
			fmt.Fprintf(out, "%s// %q: %s\n", indent, key, otherwise(r))
		}
	}
	for _, object := range objects {
		value, ok := values[object]
		lead, end := indent, ""
		var inner map[string]json.RawMessage
		if ok {
			require.NoError(t, json.Unmarshal(value, &inner))
			end = comma()
		} else {
			lead = indent + "// "
		}
		fmt.Fprintf(out, "\n%s%q: {\n", lead, object)
		writeObject(t, out, all, prefix+object+".", indent+"  ", inner)
		fmt.Fprintf(out, "%s}%s\n", lead, end)
	}
	require.Zero(t, left, "%s has values without a rule", prefix)
}

// writeComment writes the first sentence of what a field means.
func writeComment(out *strings.Builder, indent string, r *rule) {
	text := firstSentence(r.doc)
	if r.knob {
		text = "◆ " + text
	}
	switch {
	case r.decided != "":
		text += " Other policies: " + r.decided + "."
	case r.loaded != nil:
		text += " Other policies: " + literal(r.loaded) + "."
	}
	line := indent + "//"
	for word := range strings.FieldsSeq(text) {
		if len([]rune(line+" "+word)) > 118 {
			out.WriteString(line + "\n")
			line = indent + "//"
		}
		line += " " + word
	}
	out.WriteString(line + "\n")
}

// otherwise is the default of a field in other specs, or what it may be.
func otherwise(r *rule) string {
	for _, value := range []any{r.value, r.starter, r.loaded} {
		if value != nil && r.typ != typeObjects {
			return literal(value)
		}
	}
	return r.allowed()
}

// spaced is JSON as a person writes it: in a line with spaces, or a line a member where that is too long.
func spaced(t *testing.T, b json.RawMessage, indent string) string {
	t.Helper()
	line := pagetest.JSON(b)
	var members map[string]json.RawMessage
	var items []json.RawMessage
	switch inner := indent + "  "; {
	case len(indent)+len(line) < 100:
		return line
	case json.Unmarshal(b, &members) == nil:
		lines := make([]string, 0, len(members))
		for _, name := range slices.Sorted(maps.Keys(members)) {
			lines = append(lines, fmt.Sprintf("%s%q: %s", inner, name, spaced(t, members[name], inner)))
		}
		return "{\n" + strings.Join(lines, ",\n") + "\n" + indent + "}"
	default:
		require.NoError(t, json.Unmarshal(b, &items))
		lines := make([]string, 0, len(items))
		for _, item := range items {
			lines = append(lines, inner+spaced(t, item, inner))
		}
		return "[\n" + strings.Join(lines, ",\n") + "\n" + indent + "]"
	}
}

// sentenceEnd is where a sentence may end.
var sentenceEnd = regexp.MustCompile("\\. [A-Z0-9`]")

// firstSentence ends at the first such place outside of brackets: "(Dr. GRPO)" has none.
func firstSentence(text string) string {
	for _, end := range sentenceEnd.FindAllStringIndex(text, -1) {
		if first := text[:end[0]+1]; strings.Count(first, "(") == strings.Count(first, ")") {
			return first
		}
	}
	return text
}

// The page has every field; without its comments it is the spec of its first line.
func TestWholeSpecIsTheSpec(t *testing.T) {
	methodstest.NeedsAll(t)
	page := wholeSpecPage(t)
	pagetest.Same(t, "../../docs/whole-spec.md", page, updating())
	_, block, _ := strings.Cut(page, "```jsonc\n")
	block, _, found := strings.Cut(block, "\n```")
	require.True(t, found)
	written, err := Decode([]byte(regexp.MustCompile(`(?m)^\s*//.*$`).ReplaceAllString(block, "")), Known{})
	require.NoError(t, err)
	whole, err := Decode([]byte(smallest), Known{})
	require.NoError(t, err)
	require.Equal(t, whole, written)
	for _, r := range rules() {
		key := r.path[strings.LastIndexByte(r.path, '.')+1:]
		require.Regexp(t, `(?m)^ *(// )?"`+key+`": `, block, r.path)
	}
}
