package device

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// documented checks that activities.MetricDocs has the metrics of an iteration. Every test that commits an
// iteration calls it, so that it sees the metrics of all methods.
func documented(t *testing.T, metrics activities.Metrics) {
	t.Helper()
	described, err := metricsTable()
	require.NoError(t, err)
	for name := range metrics {
		if raw, averaged := strings.CutSuffix(name, collapse.SmoothedSuffix); averaged && slices.Contains(collapse.Curves(), raw) {
			name = raw
		}
		require.Regexp(t, described, name, "activities.MetricDocs has no entry for it")
	}
}

// metricNames are the documented names. Words in capitals in them stand for names without a slash.
func metricNames() (names []string) {
	for _, section := range activities.MetricDocs {
		for _, m := range section.Metrics {
			names = append(names, m.Names...)
		}
	}
	return names
}

var placeholder = regexp.MustCompile(`[A-Z]+`)

// metricsTable matches the documented names.
var metricsTable = sync.OnceValues(func() (*regexp.Regexp, error) {
	names := metricNames()
	for i, name := range names {
		names[i] = placeholder.ReplaceAllString(regexp.QuoteMeta(name), `[^/]+`)
	}
	return regexp.Compile("^(?:" + strings.Join(names, "|") + ")$")
})

// No metric is documented that is gone: the last part of each name is in the code.
func TestDocumentedMetricsExist(t *testing.T) {
	methodstest.NeedsAll(t)
	var code strings.Builder
	for _, root := range []string{"../../activities", "../../envs", "../../model/loss/terms", "../../model/methods", "../../workflows/collapse"} {
		require.NoError(t, filepath.WalkDir(root, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || path.Base(file) == "metric_docs.go" {
				return err
			}
			b, err := os.ReadFile(file)
			code.Write(b)
			return err
		}))
	}
	names := metricNames()
	require.NotEmpty(t, names)
	for _, name := range names {
		if last := path.Base(name); !placeholder.MatchString(last) {
			require.True(t, strings.Contains(code.String(), `"`+last+`"`) || strings.Contains(code.String(), "/"+last+`"`), name)
		}
	}
}

func TestMetricsTable(t *testing.T) {
	described, err := metricsTable()
	require.NoError(t, err)
	for _, name := range []string{"actor/entropy", "train/bandit/pass@16", "train/countdown/calculate_calls", "agents/reader/turns", "reward/length/mean"} {
		require.Regexp(t, described, name)
	}
	for _, name := range []string{"actor/entrop", "train/bandit/other", "agents/reader/other", "reward/length/mean/x", ""} {
		require.NotRegexp(t, described, name)
	}
}
