package command

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workers/stack"
)

func TestLeaseSilence(t *testing.T) {
	for _, c := range []struct {
		args []string
		one  bool
		want time.Duration
	}{
		{nil, false, 3 * time.Second},
		{nil, true, 0},
		{[]string{"--session-heartbeat", "20s"}, false, 0},
		{[]string{"--lease-heartbeat", "7s"}, false, 7 * time.Second},
		{[]string{"--lease-heartbeat", "7s", "--session-heartbeat", "20s"}, true, 7 * time.Second},
	} {
		var o workers.Options
		flags := pflag.NewFlagSet("worker", pflag.ContinueOnError)
		stack.AddWorkerFlags(flags, &o, 20*time.Second)
		require.NoError(t, flags.Parse(c.args))
		require.Equal(t, c.want, leaseSilence(flags, o.LeaseHeartbeat, c.one), c.args)
	}
}
