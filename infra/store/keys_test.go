package store_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

func TestEscapeSegment(t *testing.T) {
	cases := []struct{ id, want string }{
		{"bandit-1", "bandit-1"},
		{"sweep/trial 3", "sweep%2Ftrial%203"},
		{"v1.2", "v1.2"},
		{"..", "%2E%2E"},
		{"a..b", "a.%2Eb"},
		{".hidden", "%2Ehidden"},
		{"100%", "100%25"},
		{"~", "%7E"},
		{"é", "%C3%A9"},
		{"", "%"},
		{"a\x00b\n", "a%00b%0A"},
		{strings.Repeat("a", 80), strings.Repeat("a", 80)},
		{strings.Repeat("a", 81), strings.Repeat("a", 63) + "~" + "f45fb4afbd6f6c51"},
		{strings.Repeat("é", 40), strings.Repeat("%C3%A9", 10) + "%C3" + "~" + "f45fb4afbd6f6c51"},
	}
	for _, c := range cases {
		got := store.EscapeSegment(c.id)
		if i := strings.IndexByte(c.want, '~'); i >= 0 {
			require.Equal(t, c.want[:i+1], got[:i+1])
			require.LessOrEqual(t, len(got), 80)
			_, ok := store.UnescapeSegment(got)
			require.False(t, ok)
			continue
		}
		require.Equal(t, c.want, got)
		back, ok := store.UnescapeSegment(got)
		require.True(t, ok)
		require.Equal(t, c.id, back)
	}
}

func TestKeys(t *testing.T) {
	require.Equal(t, "runs/a%2Fb/spec.json", store.SpecKey("a/b"))
	require.Equal(t, "runs/r/b0/iterations/000012", store.IterationDir("r", 0, 12))
	require.Equal(t, "runs/r/b2/iterations/1000000/manifest.json", store.ManifestKey("r", 2, 1_000_000))
	require.Equal(t, "runs/r/b0/snapshots/000010.0123456789ab", store.SnapshotDir("r", 0, 10, "0123456789abcdef"))
	require.Equal(t, "runs/r/b0/evaluations/000010", store.EvaluationDir("r", 0, 10))
	require.Equal(t, "runs/r/telemetry", store.TelemetryDir("r"))
	require.Equal(t, "runs/r/report", store.ReportDir("r"))
	require.Equal(t, "models/0123456789ab", store.ModelDir("0123456789abcdef"))
	require.Equal(t, "sweeps/s%2F1", store.SweepDir("s/1"))
	require.Equal(t, "sweeps/s%2F1/report", store.SweepReportDir("s/1"))
}

func FuzzEscapeSegment(f *testing.F) {
	for _, id := range []string{"bandit-1", "../../etc/passwd", "", ".", "%2F", "~", strings.Repeat("/", 200), "a\x00\xff", strings.Repeat("é", 50)} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		key := store.EscapeSegment(id)
		require.NotEmpty(t, key)
		require.LessOrEqual(t, len(key), 80)
		require.NotContains(t, key, "..")
		require.NotContains(t, key, "/")
		require.False(t, strings.HasPrefix(key, "."))
		for i := range len(key) {
			c := key[i]
			require.True(t, c > 0x20 && c < 0x7f && c != '\\', "%q", key)
		}
		if !strings.Contains(key, "~") {
			back, ok := store.UnescapeSegment(key)
			require.True(t, ok)
			require.Equal(t, id, back)
		}
		// A segment's own text as an id is another id.
		if key != id {
			require.NotEqual(t, key, store.EscapeSegment(key))
		}
		require.NotContains(t, store.ManifestKey(id, 0, 0), "//")
	})
}
