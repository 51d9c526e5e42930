package telemetry

import (
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/pagetest"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
)

var update = flag.Bool("update", false, "write docs/metric-names.md anew")

const namesHead = `# Names of metrics

<!-- Generated from activities/metric_docs.go and workers/telemetry; go test ./workers/telemetry -update writes this page. -->

This page lists every metric of an iteration, and every metric that a worker gives to Prometheus. [Metrics](metrics.md) says
where to read them, and [algorithms](algorithms.md#reading-the-metrics) what to look for.

## Of an iteration

A manifest's ` + "`metrics`" + `, the table of a run and reports have these names. Words in capitals stand for names and numbers of the
run; "if" and "with" say when a metric is there. ` + "`METRIC_ema`" + ` is the moving average of a metric in which a collapse shows
([curves](collapse.md#curves)). The figures of evaluations are in [evaluation](evaluation.md#what-is-measured).
`

// namesPage is docs/metric-names.md.
func namesPage(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(namesHead)
	cell := strings.NewReplacer("|", `\|`).Replace
	for _, section := range activities.MetricDocs {
		fmt.Fprintf(&b, "\n### %s\n\n| metric | meaning |\n|---|---|\n", section.Title)
		for _, m := range section.Metrics {
			fmt.Fprintf(&b, "| `%s` | %s |\n", strings.Join(m.Names, "`, `"), cell(m.Meaning))
		}
	}
	b.WriteString("\n## Of a worker, for Prometheus\n\n| metric | kind | labels | content |\n|---|---|---|---|\n")
	m := toldAll(t)
	m.leases.WithLabelValues("lost")
	families, err := m.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "reprise_") {
			continue
		}
		var labels []string
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if name := "`" + label.GetName() + "`"; !slices.Contains(labels, name) {
					labels = append(labels, name)
				}
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ", "), cell(f.GetHelp()))
	}
	b.WriteString("| `temporal_…` | | | [the SDK's own](https://docs.temporal.io/references/sdk-metrics), with `_total` and `_seconds` as elsewhere |\n" +
		"| `go_…`, `process_…` | | | the Go runtime and the process |\n")
	return b.String()
}

// The page lists what the code says of metrics.
func TestNamesAreThePage(t *testing.T) {
	methodstest.NeedsAll(t)
	const page = "../../docs/metric-names.md"
	want := namesPage(t)
	pagetest.Same(t, page, want, *update)
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		New(Options{}).registry.Describe(described)
	}()
	for d := range described {
		if name := regexp.MustCompile(`fqName: "(reprise_[a-z_]+)"`).FindStringSubmatch(d.String()); name != nil {
			require.Contains(t, want, "| `"+name[1]+"` |")
		}
	}
}
