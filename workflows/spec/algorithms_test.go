package spec

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/pagetest"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/loss/terms"
	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/model/search"
	"github.com/reprise-rl/reprise/model/selection"
)

// methodsPage is the page that lists what the tables of methods, selections and losses have.
const methodsPage = "../../docs/methods.md"

const methodsHead = `# Methods, from their tables

<!-- Generated from the tables of model/methods, model/selection, model/loss/terms and model/search; go test ./workflows/spec -update writes this page. -->

Every method that a spec can name, with what it computes and where it comes from. [Algorithms](algorithms.md) says which to choose, and
[presets](presets.md) has a run of each. The comment of a method's file has its formulas, and how it differs from its paper and from the
authors' code. [spec.md](spec.md) has every field with its default.

R is the return of a trajectory, penalties included, r the reward of a turn or a token, V a value, G a group. w(·) gives the
advantages of all sampled tokens of the batch mean 0 and deviation 1. ρ = π/π_old, A is the advantage, and sg(·) is not differentiated.
`

// methodTable is a section of the page: a heading, a sentence, and rows below their head.
type methodTable struct {
	title, about string
	head         []string
	rows         [][]string
}

func (m methodTable) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| %s |\n|%s\n", m.title, m.about, strings.Join(m.head, " | "), strings.Repeat("---|", len(m.head)))
	for _, row := range m.rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String()
}

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

// fileOf links a file below a folder of the repository by its last name.
func fileOf(folder, file string) string {
	return fmt.Sprintf("[%s](../%s/%s)", file, folder, file)
}

// nonEmpty is a word in a list of its own, or no list.
func nonEmpty(word string) []string {
	if word == "" {
		return nil
	}
	return []string{word}
}

// rowsOf is a row of each entry.
func rowsOf[T any](table []T, row func(T) []string) [][]string {
	var out [][]string
	for _, entry := range table {
		out = append(out, row(entry))
	}
	return out
}

// termTable is a section with the terms of some kinds.
func termTable(title, about string, of ...terms.Kind) methodTable {
	m := methodTable{title: title, about: about, head: []string{"name", "kind", "is", "source", "knobs"}}
	for _, kind := range of {
		m.rows = append(m.rows, rowsOf(terms.Of(kind), func(t terms.Term) []string {
			var knobs []string
			for _, k := range t.Knobs {
				knobs = append(knobs, k.Name)
			}
			return []string{code(t.Name), string(t.Kind), t.Doc, t.Paper, code(knobs...)}
		})...)
	}
	return m
}

// methodTables are the sections of the page, in their order.
func methodTables() []methodTable {
	return []methodTable{
		{
			"Credit", "`credit.algorithm` turns rewards into advantages. \"Compares\" marks the algorithms that compare the members of a group, " +
				"which then needs two at least; \"critic\" marks those that train one.",
			[]string{"`credit.algorithm`", "advantages by", "advantage", "file", "source", "critic", "compares", "reads of `credit`"},
			rowsOf(methods.Algorithms, func(a credit.Algorithm) []string {
				return []string{
					code(a.Name), a.By, a.Formula, fileOf("model/methods", a.File), a.Paper, yes(a.Critic), yes(a.Compares), code(a.Fields()...),
				}
			}),
		},
		{
			"Selection of groups", "`selection.method` keeps groups by their score s, the highest first. An empty selection skips the update.",
			[]string{"`selection.method`", "kept", "file", "source", "reads"},
			rowsOf(selection.Methods, func(m selection.Method) []string {
				return []string{code(m.Name), m.Kept, fileOf("model/selection", m.File), m.Source, code(nonEmpty(m.Value)...)}
			}),
		},
		{
			"Scores of groups", "`selection.metric` is the score s. Its code is in [score.go](../model/selection/score.go).",
			[]string{"`selection.metric`", "s is", "source"},
			rowsOf(selection.Metrics, func(m selection.Metric) []string { return []string{code(m.Name), m.Is, m.Source} }),
		},
		{
			"Selection of members", "`selection.member_metric` ranks the members of a group, of which `selection.members` are kept, the highest " +
				"first ([members.go](../model/selection/members.go)).",
			[]string{"`selection.member_metric`", "is", "source"},
			rowsOf(selection.MemberMetrics, func(m selection.MemberMetric) []string { return []string{code(m.Name), m.Is, m.Source} }),
		},
		{
			"Surrogates", "`update.surrogate` is the loss of a token, from its ratio and its advantage.",
			[]string{"`update.surrogate`", "is", "loss of a token", "file", "source"},
			rowsOf(terms.Of(terms.Surrogate), func(t terms.Term) []string {
				is := t.Doc
				if t.Note != "" {
					is += "; " + t.Note
				}
				return []string{code(t.Name), is, t.Formula, fileOf("model/net/losses", t.Name+".go"), t.Paper}
			}),
		},
		termTable("Other terms of the loss", "`update.ratio` names a ratio, and `update.kl_estimator` a distance of d = log π − log π_ref. A guard "+
			"acts where a spec sets its knob. The files are in [model/net/losses](../model/net/losses).",
			terms.Ratio, terms.Distance, terms.Guard, terms.Imitation, terms.Weighing, terms.Value),
		{
			"Searches", "`rollout.search` makes the trajectories of a group otherwise than one by one.",
			[]string{"`rollout.search`", "it", "file", "source", "reads"},
			rowsOf(methods.Searches, func(m search.Method) []string {
				var reads []string
				for _, o := range m.Options {
					reads = append(reads, o.Path())
				}
				return []string{code(m.Name), m.Is, fileOf("model/methods", m.File), strings.TrimPrefix(m.Source, m.Name+": "), code(reads...)}
			}),
		},
		{
			"Passes", "`update.passes.order` cuts an update into several.",
			[]string{"`update.passes.order`", "is", "source"},
			rowsOf(methods.Orders, func(p credit.Passes) []string {
				return []string{code(p.Name), strings.TrimPrefix(p.Doc, p.Name+" (SeeUPO): "), p.Paper}
			}),
		},
	}
}

func TestMethodsPage(t *testing.T) {
	methodstest.NeedsAll(t)
	want := methodsHead
	for _, table := range methodTables() {
		want += table.markdown()
		for _, row := range table.rows {
			require.Len(t, row, len(table.head), table.title)
			require.NotContains(t, strings.Join(row, ""), "|", "it would end a cell")
		}
	}
	pagetest.Same(t, methodsPage, want, updating())
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
