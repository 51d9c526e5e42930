// Package devtest is what tests ask that need servers: whether temporal and versitygw are built. A fresh clone has
// neither, and `go test ./...` then skips these tests; `make test` demands them, so that it skips none of them.
package devtest

import (
	"errors"
	"os"
	"testing"

	"github.com/reprise-rl/reprise/infra/dev"
)

// Env is the environment variable with which tests that need servers fail where these are not built, in place of
// being skipped. Any text but the empty one sets it; `make test` does.
const Env = "REPRISE_REQUIRE_SERVERS"

// Skipped is the sentence of a test that is skipped.
const Skipped = "SKIPPED: this test needs temporal and versitygw, which are not built: run `make servers`"

// Missing reports whether an error of dev.Start or dev.StartS3 says that a server is not built, where none is
// demanded. A server that REPRISE_TEMPORAL or REPRISE_VERSITYGW names is demanded by that.
func Missing(err error) bool {
	return errors.Is(err, dev.ErrNoTool) && os.Getenv(Env) == "" && os.Getenv(dev.EnvTemporal) == "" && os.Getenv(dev.EnvVersity) == ""
}

// Needs skips a test if an error says that a server is not built; see Missing.
func Needs(t testing.TB, err error) {
	t.Helper()
	if Missing(err) {
		t.Skip(Skipped)
	}
}
