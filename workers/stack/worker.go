package stack

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
)

// WorkerFlags are the flags of everything that runs a worker.
type WorkerFlags struct {
	Roles            []string
	Plugin, XLAFlags string
	Heartbeat, Grace time.Duration
	ContinueAfter    int
	HostSlots        int
	MetricsListen    string
	MetricsRuns      int
}

// AddFlags adds the flags to a command; heartbeat is the default of --session-heartbeat.
func (s *WorkerFlags) AddFlags(cmd *cobra.Command, heartbeat time.Duration) {
	f := cmd.Flags()
	AddDeviceFlags(cmd, &s.Plugin, &s.XLAFlags)
	f.DurationVar(&s.Heartbeat, "session-heartbeat", heartbeat, "silence after which a device worker's session is lost; a server restart must fit into it")
	f.DurationVar(&s.Grace, "grace", 25*time.Second, "how long the running step may finish after SIGTERM")
	f.IntVar(&s.HostSlots, "host-slots", 8, "host activities at once")
	f.IntVar(&s.ContinueAfter, "continue-as-new-after", 0, "iterations before a run continues as new (0: when the server suggests it)")
	f.StringVar(&s.MetricsListen, "metrics-listen", "", "host:port at which Prometheus reads this worker's metrics (default: none; without a host 127.0.0.1)")
	f.IntVar(&s.MetricsRuns, "metrics-runs", 1, "how many runs at once are named in the metrics' labels: the ones that committed last (0: none)")
}

// Options are the flags as the options of a worker.
func (s *WorkerFlags) Options() (workers.Options, error) {
	o := workers.Options{
		Device:           model.DeviceOptions{Plugin: s.Plugin, XLAFlags: s.XLAFlags},
		SessionHeartbeat: s.Heartbeat, Grace: s.Grace, ContinueAfter: s.ContinueAfter, HostSlots: s.HostSlots,
		MetricsListen: s.MetricsListen, MetricsRuns: s.MetricsRuns,
	}
	if s.MetricsRuns < 0 {
		return o, fmt.Errorf("--metrics-runs is %d: it cannot be negative", s.MetricsRuns)
	}
	if len(s.Roles) == 0 {
		o.Roles = workers.Roles
	}
	for _, name := range s.Roles {
		role, err := workers.ParseRole(name)
		if err != nil {
			return o, fmt.Errorf("--roles: %w", err)
		}
		o.Roles = append(o.Roles, role)
	}
	return o, nil
}

// AddDeviceFlags are the flags that a device's fingerprint depends on.
func AddDeviceFlags(cmd *cobra.Command, plugin, xlaFlags *string) {
	cmd.Flags().StringVar(plugin, "plugin", "", "PJRT plugin (.so) [REPRISE_PJRT_PLUGIN] (default: the pinned CPU plugin)")
	cmd.Flags().StringVar(xlaFlags, "xla-flags", "", "XLA flags besides ours; they are part of the fingerprint")
}
