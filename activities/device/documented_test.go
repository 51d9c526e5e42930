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

// documented checks that docs/metrics.md has the metrics of an iteration. Every test that commits an
// iteration calls it, so that it sees the metrics of all methods.
func documented(t *testing.T, metrics activities.Metrics) {
	t.Helper()
	described, err := metricsTable()
	require.NoError(t, err)
	for name := range metrics {
		if raw, averaged := strings.CutSuffix(name, collapse.SmoothedSuffix); averaged && slices.Contains(collapse.Curves(), raw) {
			name = raw
		}
		require.Regexp(t, described, name, "docs/metrics.md has no row for it")
	}
}

// metricNames are the names in the first columns of docs/metrics.md. Words in capitals in them stand
// for names without a slash.
func metricNames() ([]string, error) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		return nil, err
	}
	_, section, _ := strings.Cut(string(page), "## The metrics of an iteration")
	section, _, _ = strings.Cut(section, "\n## ")
	var names []string
	for line := range strings.SplitSeq(section, "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for i, name := range strings.Split(cells[1], "`") {
				if i%2 == 1 {
					names = append(names, name)
				}
			}
		}
	}
	return names, nil
}

var placeholder = regexp.MustCompile(`[A-Z]+`)

// metricsTable matches the names of docs/metrics.md.
var metricsTable = sync.OnceValues(func() (*regexp.Regexp, error) {
	names, err := metricNames()
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		names[i] = placeholder.ReplaceAllString(regexp.QuoteMeta(name), `[^/]+`)
	}
	return regexp.Compile("^(?:" + strings.Join(names, "|") + ")$")
})

// The page has no metric that is gone: the last part of each name is in the code.
func TestDocumentedMetricsExist(t *testing.T) {
	methodstest.NeedsAll(t)
	var code strings.Builder
	for _, root := range []string{"../../activities", "../../envs", "../../model/loss/terms", "../../model/methods", "../../workflows/collapse"} {
		require.NoError(t, filepath.WalkDir(root, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			b, err := os.ReadFile(file)
			code.Write(b)
			return err
		}))
	}
	names, err := metricNames()
	require.NoError(t, err)
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
