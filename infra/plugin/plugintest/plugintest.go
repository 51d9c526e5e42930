// Package plugintest is what tests ask that compute: whether there is a PJRT plugin. A fresh clone has none,
// and `go test ./...` then skips these tests; `make test` demands it, so that it skips none of them.
package plugintest

import (
	"errors"
	"os"
	"testing"

	"github.com/reprise-rl/reprise/infra/plugin"
)

// Env is the environment variable with which tests that compute fail where there is no plugin, in place of
// being skipped. Any text but the empty one sets it; `make test` does.
const Env = "REPRISE_REQUIRE_PLUGIN"

// Needs returns the path of the plugin that plugin.Path finds. Where there is none, the test is skipped with a
// sentence that says how to get one; it fails instead if REPRISE_REQUIRE_PLUGIN is set, or if the plugin is not
// merely missing.
func Needs(t testing.TB) string {
	t.Helper()
	path, err := plugin.Path("")
	switch {
	case err == nil:
	case Missing(err):
		t.Skipf("SKIPPED: this test computes, and there is no PJRT plugin: run `make plugin`, or set %s", plugin.Env)
	default:
		t.Fatalf("this test computes: run `make plugin`, or set %s: %v", plugin.Env, err)
	}
	return path
}

// Missing reports whether an error says that there is no plugin, where none is demanded. A plugin that
// REPRISE_PJRT_PLUGIN names is demanded by that.
func Missing(err error) bool {
	return errors.Is(err, plugin.ErrMissing) && os.Getenv(Env) == "" && os.Getenv(plugin.Env) == ""
}
