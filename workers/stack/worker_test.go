package stack

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap/zapcore"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/infra/programcache"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
)

func TestWorkerFlags(t *testing.T) {
	parse := func(args ...string) (o workers.Options) {
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		AddWorkerFlags(f, &o, 7*time.Second)
		require.NoError(t, f.Parse(args))
		require.Equal(t, "PJRT plugin (.so), or cuda13 or cuda12: the one that make plugin has put there, or that a Python has [REPRISE_PJRT_PLUGIN] (default: the pinned CPU plugin)", f.Lookup("plugin").Usage)
		return o
	}
	cached := model.DeviceOptions{ProgramCache: programcache.Default}
	require.Equal(t, workers.Options{Device: cached, SessionHeartbeat: 7 * time.Second, Grace: 25 * time.Second, HostSlots: 8, MetricsRuns: 1, Follow: 1}, parse())
	require.Equal(t, workers.Options{
		Device: model.DeviceOptions{Plugin: "p.so", XLAFlags: "--x", ProgramCache: "none"}, SessionHeartbeat: time.Second, Grace: 2 * time.Second,
		HostSlots: 3, ContinueAfter: 4, MetricsListen: "host:5", MetricsRuns: 6, Follow: 2, FollowGB: 1.5, LeaseHeartbeat: 9 * time.Second,
	}, parse("--plugin=p.so", "--xla-flags=--x", "--program-cache=none", "--session-heartbeat=1s", "--grace=2s", "--host-slots=3",
		"--continue-as-new-after=4", "--metrics-listen=host:5", "--metrics-runs=6",
		"--follow=2", "--follow-gb=1.5", "--lease-heartbeat=9s"))
	require.ErrorContains(t, workers.Options{Roles: workers.Roles, MetricsRuns: -1}.Check(), "--metrics-runs is -1")
	require.ErrorContains(t, workers.Options{}.Check(), "needs a role")
	require.ErrorContains(t, workers.Options{Roles: workers.Roles, Follow: -1}.Check(), "--follow is -1")
	require.Equal(t, model.MemorySettings{Fraction: 0.5, Preallocate: "true", Allocator: "bfc"},
		parse("--memory-fraction=0.5", "--preallocate=true", "--allocator=bfc").Device.Memory)
	require.Equal(t, []int{2, 0}, parse("--devices=2,0").Device.Devices)
	require.Equal(t, 3, parse("--virtual-devices=3").Device.VirtualDevices)
	require.InDelta(t, 2.5, parse("--host-rate=2.5").HostRate, 0)
	require.ErrorContains(t, workers.Options{Roles: workers.Roles, HostRate: -1}.Check(), "--host-rate -1")
	require.Equal(t, "key.pem", parse("--program-cache-key=key.pem").ProgramCacheKey)
	require.ErrorContains(t, workers.Options{Roles: workers.Roles, ProgramCacheKey: "/nowhere/key.pem"}.Check(), "--program-cache-key: program cache key: open /nowhere/key.pem")
	require.NoError(t, workers.Options{Roles: []workers.Role{workers.RoleHost}, ProgramCacheKey: "/nowhere/key.pem"}.Check(), "a process without a device has no use for it")
	require.ErrorContains(t, workers.Options{Roles: workers.Roles, Notices: "oci"}.Check(), `--notices: "oci" is none of auto`)
}

// A plugin that cannot be used is reported before any server starts.
func TestPluginIsLookedAtFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, o := range map[string]workers.Options{"by flag": {Device: model.DeviceOptions{Plugin: "/nope.so"}}, "by the environment": {}} {
		if name != "by flag" {
			t.Setenv(plugin.Env, "/nope.so")
		}
		err := With(t.Context(), dev.Options{}, o, func(context.Context, Served) error { return nil })
		require.ErrorContains(t, err, "/nope.so", name)
		require.ErrorContains(t, err, "`make plugin` installs the pinned one", name)
		require.NoDirExists(t, ".reprise", "no stack was begun")
	}
}

func TestPriceFlag(t *testing.T) {
	parse := func(args ...string) error {
		o := workers.Options{Roles: workers.Roles}
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		AddWorkerFlags(f, &o, time.Second)
		require.NoError(t, f.Parse(args))
		return o.Check()
	}
	require.NoError(t, parse())
	require.NoError(t, parse("--price-hour=2.49"))
	for _, wrong := range []string{"-1", "NaN", "Inf"} {
		require.ErrorContains(t, parse("--price-hour="+wrong), "--price-hour is ", wrong)
	}
	require.ErrorContains(t, workers.Options{Roles: workers.Roles, PriceHour: math.Inf(1)}.Check(), "leave it out")
}

// The worker of a dev stack tells what it warns of, and not what it does.
func TestLevelsOfLoggers(t *testing.T) {
	for level, c := range map[zapcore.Level]Connection{zapcore.InfoLevel: {}, zapcore.WarnLevel: {Warns: true}, zapcore.ErrorLevel: {Quiet: true}} {
		require.True(t, c.Logger().Core().Enabled(level))
		require.False(t, c.Logger().Core().Enabled(level-1))
	}
}
