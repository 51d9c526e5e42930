package telemetry

import (
	"bufio"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scrape reads the metrics as Prometheus does: each series, labels included, and
// its value.
func scrape(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code, w.Body.String())
	out := map[string]float64{}
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[at+1:], 64)
		require.NoError(t, err, line)
		_, twice := out[line[:at]]
		require.False(t, twice, line)
		out[line[:at]] = v
	}
	return out
}

// names are the metrics' names, without labels.
func names(series map[string]float64) map[string]bool {
	out := map[string]bool{}
	for s := range series {
		name, _, _ := strings.Cut(s, "{")
		out[name] = true
	}
	return out
}
