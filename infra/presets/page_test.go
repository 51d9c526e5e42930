package presets_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/pagetest"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

const (
	page = "../../docs/presets.md"
	head = `# Presets

<!-- Generated from infra/presets and its sources.tsv; go test ./infra/presets -update writes this page. -->

A preset is a spec that is ready to start; the program carries all of them. ` + "`reprise validate infra/presets/NAME.json`" + ` says what a run of it
needs. [Algorithms](algorithms.md#presets) says what the presets of methods have in common, and [methods](methods.md) has their formulas.
`
)

// groups are the sections of the page.
func groups() []struct {
	title, about string
	names        []string
} {
	var sweeps, cards []string
	for _, method := range published {
		cards = append(cards, onCard+method)
	}
	for _, name := range presets.Names() {
		if isSweep(name) {
			sweeps = append(sweeps, name)
		}
	}
	return []struct {
		title, about string
		names        []string
	}{
		{"Methods", "One method each. [Where their values come from](#where-the-values-come-from) is below.", methods},
		{"Rewards", "One [part of the reward](rewards.md) each.", rewards},
		{"On a card", "Each method of the first table with Qwen2.5-0.5B for a card of 80 GB, `" + onCard + "NAME`. " +
			"These have the settings that their authors published; the others have those of the starter's preset. None has run.", cards},
		{"Other runs", "Tasks, pretrained models, sizes and tests.", runs},
		{"Sweeps", "Tables and figures of [the paper](results/paper.md), and others: see [sweeps](sweeps.md).", sweeps},
	}
}

// described is a line of each preset with its description.
func described(t *testing.T, names []string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(slices.Values(names)) {
		text, err := presets.Read(name)
		require.NoError(t, err)
		var has struct{ Description string }
		require.NoError(t, json.Unmarshal(text, &has))
		fmt.Fprintf(&b, "| [%s](../infra/presets/%s.json) | %s |\n", name, name, cell(has.Description))
	}
	return b.String()
}

// cell is a text as a cell of a table has it.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// valuesOf are the values that presets have at a field, as the spec's JSON has them. Defaults are filled in.
func valuesOf(t *testing.T, of map[string]any, field string) string {
	var at any = of
	for key := range strings.SplitSeq(field, ".") {
		section, _ := at.(map[string]any)
		at = section[key]
	}
	switch v := at.(type) {
	case nil:
		return "–"
	case string:
		return v
	case bool, json.Number:
		return fmt.Sprint(v)
	}
	text, err := json.Marshal(at)
	require.NoError(t, err)
	return "`" + string(text) + "`"
}

// sources is a row of each line of sources.tsv, whose values are read from the presets.
func sources(t *testing.T) string {
	known := maps.Collect(spec.Fields())
	var b strings.Builder
	text, err := os.ReadFile("sources.tsv")
	require.NoError(t, err)
	for i, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		columns := strings.Split(line, "\t")
		require.Len(t, columns, 4, "sources.tsv:%d", i+1)
		if i == 0 {
			require.Equal(t, []string{"presets", "fields", "source", "here"}, columns)
			continue
		}
		fields := strings.Fields(columns[1])
		for _, field := range fields {
			require.Contains(t, known, field, "sources.tsv:%d", i+1)
		}
		var values []string
		for name := range strings.FieldsSeq(columns[0]) {
			require.Contains(t, trains(), name, "sources.tsv:%d", i+1)
			encoded, err := json.Marshal(decode(t, name))
			require.NoError(t, err)
			var of map[string]any
			decoder := json.NewDecoder(bytes.NewReader(encoded))
			decoder.UseNumber()
			require.NoError(t, decoder.Decode(&of))
			var one []string
			for _, field := range fields {
				one = append(one, valuesOf(t, of, field))
			}
			values = append(values, strings.Join(one, ", "))
		}
		if len(slices.Compact(slices.Clone(values))) == 1 {
			values = values[:1]
		}
		names := strings.Join(strings.Fields(columns[0]), ", ")
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", names, strings.Join(fields, "`, `"), cell(strings.Join(values, "; ")), cell(columns[2]), cell(columns[3]))
	}
	return b.String()
}

// The page has every preset, and the values of the presets of methods beside those of their sources.
func TestPage(t *testing.T) {
	methodstest.NeedsAll(t)
	want, count := head, 0
	for _, g := range groups() {
		want += fmt.Sprintf("\n## %s\n\n%s\n\n| preset | it |\n|---|---|\n%s", g.title, g.about, described(t, g.names))
		count += len(g.names)
	}
	count += len(onCards) - len(published)
	require.Equal(t, len(presets.Names()), count, "each in one section, but for those on a card that are written from another's")
	want += "\n## Where the values come from\n\nThe values are read from the presets, in their order; – is left out, and [spec.md](spec.md) has its default. \"Here\" says how the preset " +
		"differs, and why.\n\n" +
		"| preset | field | value | source | here |\n|---|---|---|---|---|\n" + sources(t)
	pagetest.Same(t, page, want, *update)
}
