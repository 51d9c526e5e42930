package spec

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/model/selection"
)

// algorithmsPage is the page that lists what the tables of credit and selection have.
const algorithmsPage = "../../docs/algorithms.md"

func yes(is bool) string {
	if is {
		return "yes"
	}
	return ""
}

// code is words in code style, with commas.
func code(words ...string) string {
	if len(words) == 0 {
		return ""
	}
	return "`" + strings.Join(words, "`, `") + "`"
}

// algorithmTables are the parts of the page that are written from the tables.
func algorithmTables() map[string]string {
	var algorithms, kept, metrics strings.Builder
	algorithms.WriteString("| `credit.algorithm` | advantage | file | source | critic | compares | reads of `credit` |\n|---|---|---|---|---|---|---|\n")
	for _, a := range methods.Algorithms {
		fmt.Fprintf(&algorithms, "| `%s` | %s | [%s](../model/methods/%s) | %s | %s | %s | %s |\n",
			a.Name, a.Formula, a.File, a.File, a.Paper, yes(a.Critic), yes(a.Compares), code(a.Fields()...))
	}
	kept.WriteString("| `selection.method` | kept | file | source | reads |\n|---|---|---|---|---|\n")
	for _, m := range selection.Methods {
		var reads []string
		if m.Value != "" {
			reads = []string{m.Value}
		}
		fmt.Fprintf(&kept, "| `%s` | %s | [%s](../model/selection/%s) | %s | %s |\n", m.Name, m.Kept, m.File, m.File, m.Source, code(reads...))
	}
	metrics.WriteString("| `selection.metric` | s is | source |\n|---|---|---|\n")
	for _, m := range selection.Metrics {
		fmt.Fprintf(&metrics, "| `%s` | %s | %s |\n", m.Name, m.Is, m.Source)
	}
	return map[string]string{"algorithms": algorithms.String(), "methods": kept.String(), "metrics": metrics.String()}
}

func TestAlgorithmsPageHasTheTables(t *testing.T) {
	methodstest.NeedsAll(t)
	text, err := os.ReadFile(algorithmsPage)
	require.NoError(t, err)
	want := string(text)
	for name, table := range algorithmTables() {
		head := fmt.Sprintf("<!-- %s: written by go test ./workflows/spec -update -->\n", name)
		before, rest, found := strings.Cut(want, head)
		require.True(t, found, "the page has a place for %s", name)
		_, after, found := strings.Cut(rest, "<!-- end -->\n")
		require.True(t, found, "the table of %s ends", name)
		want = before + head + table + "<!-- end -->\n" + after
	}
	if updating() {
		require.NoError(t, os.WriteFile(algorithmsPage, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "go test ./workflows/spec -update writes the tables anew")
}

// Every field of the section credit is read by some algorithm, and every field that
// the tables name is one of the spec.
func TestTablesNameFields(t *testing.T) {
	var read []string
	for _, a := range methods.Algorithms {
		read = append(read, a.Fields()...)
	}
	for _, r := range rules() {
		if key, found := strings.CutPrefix(r.path, "credit."); found && key != "algorithm" {
			require.True(t, slices.Contains(read, key) || !methodstest.Whole(), key)
		}
	}
	for _, key := range read {
		require.NotNil(t, byPath("credit."+key), key)
	}
	for _, m := range selection.Methods {
		require.True(t, m.Value == "" || byPath("selection."+m.Value) != nil, m.Name)
	}
}

// A method's number is the field that the table names.
func TestSelectionValue(t *testing.T) {
	s := Selection{Keep: 0.5, Count: 3, P: 0.25}
	for _, m := range selection.Methods {
		s.Method = m.Name
		want := map[string]float64{"keep": 0.5, "count": 3, "p": 0.25}[m.Value]
		if m.Value != "" {
			require.Equal(t, want, s.Value(), m.Name)
		}
	}
}
