package connect

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/reprise-rl/reprise/infra/codec"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/dev/devtest"
)

// shared is one stack for the tests that need servers.
var shared *dev.Stack

// root is the folder that the tests began in, from where the plugin is found.
var root string

func TestMain(m *testing.M) {
	var err error
	if root, err = os.Getwd(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// The settings of this machine must not decide here.
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "TEMPORAL_") || strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "REPRISE_S3_") || name == codec.EnvKeyFile || strings.HasPrefix(name, "MINIO_") || name == "REPRISE_UI_URL" {
			os.Unsetenv(name)
		}
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	stack, err := dev.Start(context.Background(), dev.Options{Ephemeral: true})
	if devtest.Missing(err) {
		fmt.Fprintln(os.Stderr, devtest.Skipped, "(all tests of this package)")
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := stack.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	shared = stack
	return m.Run()
}
