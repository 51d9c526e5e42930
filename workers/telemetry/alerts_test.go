package telemetry

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const alerts = "../../infra/grafana/alerts.yml"

// The rules are those of a rule file, and ask for nothing that a worker does not tell.
func TestAlerts(t *testing.T) {
	b, err := os.ReadFile(alerts)
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	strict := yaml.NewDecoder(bytes.NewReader(b))
	strict.KnownFields(true)
	require.NoError(t, strict.Decode(&file))
	require.Len(t, file.Groups, 1)

	told := tellAll(t)
	known := names(told)
	page, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	metric := regexp.MustCompile(`\b(?:reprise|temporal|go|process)_[a-z0-9_]+(?:\{[^}]*\})?`)
	duration := regexp.MustCompile(`^([0-9]+m)?$`)
	seen := map[string]bool{}
	for _, rule := range file.Groups[0].Rules {
		require.Regexp(t, "^Reprise[A-Za-z]+$", rule.Alert)
		require.False(t, seen[rule.Alert], rule.Alert)
		seen[rule.Alert] = true
		require.Contains(t, string(page), "| `"+rule.Alert+"` |")
		require.Regexp(t, duration, rule.For, rule.Alert)
		require.Contains(t, []string{"info", "warning", "critical"}, rule.Labels["severity"], rule.Alert)
		require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		require.NotEmpty(t, rule.Annotations["description"], rule.Alert)
		require.Equal(t, strings.Count(rule.Expr, "("), strings.Count(rule.Expr, ")"), rule.Alert)
		found := metric.FindAllString(rule.Expr, -1)
		require.NotEmpty(t, found, rule.Alert)
		for _, series := range found {
			name, labels, labelled := strings.Cut(series, "{")
			require.True(t, known[name], "%s asks for %s, which no worker tells", rule.Alert, name)
			if labelled {
				require.Contains(t, told, name+"{"+labels, rule.Alert)
			}
		}
		for _, label := range regexp.MustCompile(`by \(([a-z]+)\)|\$labels\.([a-z]+)`).FindAllStringSubmatch(rule.Expr+rule.Annotations["summary"], -1) {
			require.Regexp(t, found[0]+`\{.*`+label[1]+label[2]+`="`, strings.Join(seriesOf(told), "\n"), rule.Alert)
		}
	}
	require.Len(t, seen, 6)
}

func seriesOf(told map[string]float64) (out []string) {
	for series := range told {
		out = append(out, series)
	}
	return out
}
