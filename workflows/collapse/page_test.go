package collapse

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/pagetest"
)

var update = flag.Bool("update", false, "write docs/detectors.md anew")

const (
	page = "../../docs/detectors.md"
	head = `# Detectors of collapse

<!-- Generated from the rules of workflows/collapse; go test ./workflows/collapse -update writes this page. -->

Each detector looks at one figure of every iteration. [When a run collapses](collapse.md) says how they work and what a run does when one
fires. Its numbers are fields of its name in the section ` + "`collapse`" + ` of a spec, with these defaults; each also has ` + "`on_detection`" + `
(` + "`default`, `off`, `warn`, `stop`, `rollback`" + `). "Early" signs come before the reward falls.

| detector | sign | fires when | numbers | source | remedy |
|---|---|---|---|---|---|
`
)

// numbersOf are the numbers of a rule as JSON has them, by name.
func numbersOf(t *testing.T, of json.RawMessage) string {
	var fields map[string]any
	require.NoError(t, json.Unmarshal(of, &fields))
	delete(fields, "on_detection")
	var out []string
	for name, value := range fields {
		out = append(out, fmt.Sprintf("`%s` %.3g", name, value))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// The page lists all rules with their default numbers.
func TestPage(t *testing.T) {
	b, err := json.Marshal(Defaults().Filled())
	require.NoError(t, err)
	var config map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(b, &config))
	want := head
	for _, r := range Rules() {
		numbers := "`above`, none by default"
		if r.Name != RolloutDiff {
			require.Contains(t, config, r.Name)
			numbers = numbersOf(t, config[r.Name])
		}
		row := []string{"`" + r.Name + "`", string(r.Severity), r.Doc, numbers, r.Source, r.Remedy}
		require.NotContains(t, strings.Join(row, ""), "|", "it would end a cell")
		want += "| " + strings.Join(row, " | ") + " |\n"
	}
	pagetest.Same(t, page, want, *update)
}
