package chaos

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/dev/devtest"
	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/programcache"
)

var (
	full  = flag.Bool("full", os.Getenv("REPRISE_CHAOS") == "full", "run the whole matrix")
	kills = flag.Int("kills", 20, "kills at random moments, with -full")
	seed  = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the random moments")
)

// program is the path of the reprise that is tested, and programs the folder in which the
// workers of all tests keep what they compile.
var program, programs string

func TestMain(m *testing.M) {
	if servesEnvironment() {
		return
	}
	flag.Parse()
	if err := onlyPart(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	f := flag.Lookup("test.parallel")
	if n, err := strconv.Atoi(f.Value.String()); err == nil && f.Value.String() != f.DefValue {
		places.free = n
	}
	_ = f.Value.Set("1000") // beside gives the places
	if *full {
		patience = 40 * time.Minute
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "reprise-chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program, programs = filepath.Join(dir, "reprise"), filepath.Join(dir, "programs")
	environment = append(environment, programcache.Env+"="+programs)
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, "github.com/reprise-rl/reprise/workers/reprise")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build reprise: %v\n%s", err, out)
		return 1
	}
	defer func() {
		if shared.stack != nil {
			_ = shared.stack.Stop()
		}
	}()
	code := m.Run()
	some := slices.ContainsFunc([]string{"run", "skip", "list"}, func(name string) bool { return flag.Lookup("test."+name).Value.String() != "" })
	if _, err := plugin.Path(""); plugintest.Missing(err) {
		return code // most tests are skipped
	}
	if missing := missingTests(); code == 0 && !some && len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "longest names tests that did not run: %q\n", missing)
		return 1
	}
	return code
}

// shared is the stack of the tests that kill no server.
var shared struct {
	sync.Mutex
	stack *dev.Stack
}

func sharedStack(t *testing.T) *dev.Stack {
	t.Helper()
	plugintest.Needs(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.stack == nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		stack, err := dev.Start(ctx, dev.Options{Ephemeral: true})
		devtest.Needs(t, err)
		require.NoError(t, err)
		shared.stack = stack
	}
	return shared.stack
}

// ownStack is a stack for one test.
func ownStack(t *testing.T, options dev.Options) *dev.Stack {
	t.Helper()
	plugintest.Needs(t)
	stack, err := dev.Start(t.Context(), options)
	devtest.Needs(t, err)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stack.Stop()) })
	return stack
}
