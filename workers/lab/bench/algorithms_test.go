package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/reprise-rl/reprise/model/methods"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/selection"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func TestMeasureTakesTurns(t *testing.T) {
	order := ""
	note := func(name string) func(context.Context) error {
		return func(context.Context) error { order += name; return nil }
	}
	workloads := []workload{{"a", -1, note("a")}, {"b", 0, note("b")}, {"c", 0, note("c")}}
	got, err := measure(t.Context(), workloads, 3, 0)
	require.NoError(t, err)
	require.Equal(t, "abac"+"baca"+"abac"+"baca", order)
	require.Len(t, got, 3)
	for i, c := range got {
		require.Equal(t, workloads[i].name, c.Name)
		require.Positive(t, c.Seconds)
	}
	require.Zero(t, got[0].Ratio)
	require.Positive(t, got[1].Ratio)

	// So long that reading the clocks does not count.
	times := 0
	once, err := workload{run: func(context.Context) error { times++; time.Sleep(time.Millisecond); return nil }}.time(t.Context(), 10*time.Millisecond)
	require.NoError(t, err)
	require.Greater(t, times, 1)
	require.GreaterOrEqual(t, once.seconds, 1e-3)

	broken := errors.New("broken")
	_, err = measure(t.Context(), []workload{{"d", -1, func(context.Context) error { return broken }}}, 1, 0)
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "d: ")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = measure(cancelled, workloads, 1, 0)
	require.ErrorIs(t, err, context.Canceled)
}

// Ratios are taken repetition by repetition: a slow one slows both sides.
func TestCosts(t *testing.T) {
	workloads := []workload{{name: "base", base: -1}, {name: "other"}, {name: "third"}}
	beside := [][]timing{nil, {{1, 2}, {10, 2}, {2, 4}}, {{3, 0}, {3, 0}, {3, 0}}}
	got := costs(workloads, [][]timing{nil, {{2, 1}, {20, 1}, {4, 2}}, {{3, 1}, {6, 1}, {9, 1}}}, beside)
	require.Equal(t, []Cost{
		{Name: "base", Seconds: 3, Processor: 1},
		{Name: "other", Seconds: 4, Processor: 1, Ratio: 2, ProcessorRatio: 0.5},
		{Name: "third", Seconds: 6, Processor: 1, Ratio: 2},
	}, got)
}

func names(costs []Cost) []string {
	var all []string
	for _, c := range costs {
		all = append(all, c.Name)
	}
	return all
}

func TestHostAlgorithms(t *testing.T) {
	got, err := MeasureHostAlgorithms(t.Context(), 1, 0)
	require.NoError(t, err)
	require.Equal(t, 128, got.Rows)
	require.Equal(t, 3600, got.Tokens)
	for _, a := range methods.Algorithms {
		require.Contains(t, names(got.Credit), a.Name)
	}
	require.Contains(t, names(got.Credit), "gae, KL in the reward")
	require.Len(t, got.Selection, len(selection.Methods))
	for i, m := range selection.Methods {
		require.Equal(t, m.Name, got.Selection[i].Name)
	}
	require.Contains(t, got.Slowest.Name, " and ")
	for _, c := range got.Credit {
		require.Positive(t, c.Seconds, c.Name)
		require.LessOrEqual(t, c.Processor, got.Slowest.Processor, c.Name)
	}
}

// All that is compared can be made; of the losses, whose programs take long to
// compile, two are.
func TestUpdates(t *testing.T) {
	o := model.DeviceOptions{XLAFlags: model.QuickCompile}
	plugintest.Needs(t)
	opened, err := model.OpenDevice(o)
	require.NoError(t, err)
	defer opened.Close()
	u, err := newUpdates(opened, o, device.StarterConfig(spec.Starter{Layers: 1, HiddenSize: 16, IntermediateSize: 32, Heads: 2, KVHeads: 1}))
	require.NoError(t, err)
	defer u.free()
	for _, c := range []struct {
		workloads func() ([]workload, error)
		names     []string
		made      []int
	}{
		{u.selection, []string{"update, all groups", "update, 25 % of them"}, []int{0, 1}},
		{u.keptValues, []string{"a rollout of 5 turns, contexts prefilled whole", "with kept values"}, nil},
		{u.dealtOut, []string{"a rollout of 4 passes, on one device", "the same on 4 virtual devices",
			"an update in 4 shards, on one device", "the same update on 4 virtual devices"}, []int{1, 3}},
		{u.criticBeside, []string{"policy: Score and Update", "critic: Values and CriticUpdate"}, []int{0, 1}},
		{u.losses, []string{"clipped surrogate, token ratio", "entropy bonus", "sequence ratio", "dual clip",
			"KL k1", "KL k2", "KL k3", "KL abs", "the reference's Score, for a KL"}, []int{1, 3, 6, 8}},
	} {
		workloads, err := c.workloads()
		require.NoError(t, err)
		require.Len(t, workloads, len(c.names))
		for i, d := range workloads {
			require.Equal(t, c.names[i], d.name)
			require.Equal(t, i == 0 || strings.Contains(d.name, "on one device"), d.base < 0, d.name)
			require.Less(t, d.base, i, d.name)
		}
		for _, i := range c.made {
			require.NoError(t, workloads[i].run(t.Context()), workloads[i].name)
		}
	}
}
