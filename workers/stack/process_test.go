package stack

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers"
)

// The worker process gets the flags that this one was given.
func TestWorkerArguments(t *testing.T) {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	var o workers.Options
	AddWorkerFlags(f, &o, 5*time.Second)
	f.String("dir", "elsewhere", "")
	given := []string{"--xla-flags=--a=1 --b", "--grace=3s", "--metrics-listen=host:5", "--devices=1", "--devices=0", "--virtual-devices=2", "--program-cache-key=key.pem"}
	require.NoError(t, f.Parse(given))
	arguments := workerArguments(f)
	require.Subset(t, arguments, append(given, "--session-heartbeat=5s", "--plugin=", "--program-cache=default", "--host-slots=8"))
	var again workers.Options
	g := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddWorkerFlags(g, &again, time.Hour)
	require.NoError(t, g.Parse(arguments))
	require.Equal(t, o, again)

	require.NotContains(t, strings.Join(arguments, " "), "codec")
	f.String("codec-key-file", "", "")
	require.NoError(t, f.Parse([]string{"--codec-key-file", "keys"}))
	require.Contains(t, workerArguments(f), "--codec-key-file=keys")
}

// The process that computes has the worker's arguments, and metrics at a port of its own.
func TestChildsArguments(t *testing.T) {
	given := []string{"worker", "--metrics-listen=:9464", "--roles", "device"}
	for metrics, want := range map[bool][]string{
		true:  {"--supervised", "--metrics-listen=", "--metrics-listen=127.0.0.1:0"},
		false: {"--supervised", "--metrics-listen="},
	} {
		child, err := Child(given, metrics, io.Discard)
		require.NoError(t, err)
		require.Equal(t, append(slices.Clone(given), want...), child.Command().Args[1:])
	}
}
