package study

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model"
)

func TestRunsAreRecorded(t *testing.T) {
	plugintest.Needs(t)
	opened, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	size := Size{Iterations: 2, Layers: 1, Width: 16, Groups: 2, GroupSize: 4}
	s, ok := settingNamed("grpo-p25-shared")
	require.True(t, ok)
	fields := s.Fields(size, 7)
	fields["policy"].(map[string]any)["warm_start"] = map[string]any{"seed": 7, "steps": 2, "rows": 4}
	fields["policy"].(map[string]any)["from"] = "starter"
	fields["environment"].(map[string]any)["name"] = "bandit"
	rollout := fields["rollout"].(map[string]any)
	rollout["turns"], rollout["max_new_tokens"] = 1, 12
	fields["evaluation"] = map[string]any{"every": 2, "instances": 4}
	fields["selection"] = map[string]any{"method": "all", "keep": 1.0}
	fields["update"] = map[string]any{"micro_batch": 4}
	text, err := json.Marshal(fields)
	require.NoError(t, err)

	runner := NewRunner(engine)
	r, err := runner.Run(t.Context(), s, size, 7, text)
	require.NoError(t, err)
	require.Len(t, r.Metrics[Reward], 2)
	require.Len(t, r.Evaluations, 2)
	require.Equal(t, 2, r.Evaluations[1].Version)
	models := len(runner.models.Own())
	require.Positive(t, models)

	again, err := runner.Run(t.Context(), s, size, 7, text)
	require.NoError(t, err)
	require.Len(t, runner.models.Own(), models, "the starter is shared")
	first, err := r.Encode()
	require.NoError(t, err)
	second, err := again.Encode()
	require.NoError(t, err)
	require.Equal(t, string(first), string(second))
	_, err = DecodeRecord(first)
	require.NoError(t, err)

	_, err = runner.Run(t.Context(), s, size, 7, []byte(`{"seed": -1}`))
	require.ErrorContains(t, err, "run grpo-p25-shared-s7")
}

func TestPlanted(t *testing.T) {
	evaluation := func(version int, success canon.Float) store.EvaluationRef {
		return store.EvaluationRef{Version: version, Metrics: map[string]canon.Float{"success/mean": success, "success/low": success - 0.04, "success/high": success + 0.04}}
	}
	manifest := func(branch, n int, rate string, success canon.Float, of ...store.EvaluationRef) *store.Manifest {
		return &store.Manifest{
			Branch: branch, Iteration: n, Settings: json.RawMessage(`{"update":{"learning_rate":` + rate + `}}`),
			Metrics: map[string]canon.Float{Success: success}, Evaluations: of,
		}
	}
	p := &Planted{Run: "planted", Rate: 0.1, Turned: -1}
	back := manifest(1, 2, "0.0005", 0.6)
	back.Opened = json.RawMessage(`{"branch":0,"iteration":4,"events":[{"detector":"executable","text":"the format is lost"}],"changes":["update.learning_rate: 0.001 to 0.0005"]}`)
	for _, m := range []*store.Manifest{
		manifest(0, 0, "0.001", 0.4, evaluation(0, 0.4)), manifest(0, 1, "0.001", 0.5, evaluation(2, 0.6)),
		manifest(0, 2, "0.1", 0.6), manifest(0, 3, "0.1", 0.2, evaluation(4, 0.1)), manifest(0, 4, "0.1", 0.01),
		back, manifest(1, 3, "0.0005", 0.8, evaluation(4, 0.9)),
	} {
		require.NoError(t, p.add(m))
	}
	require.Equal(t, 2, p.Turned)
	require.Equal(t, 2, p.Before.Version)
	require.Equal(t, canon.Float(0.9), p.After.Success)
	require.Equal(t, []Rollback{{Branch: 0, Iteration: 4, To: 1, Events: []string{"executable: the format is lost"}, Changes: []string{"update.learning_rate: 0.001 to 0.0005"}}}, p.Rollbacks)
	mean, low, high := p.Difference()
	require.InDelta(t, 0.3, mean, 1e-9)
	require.InDelta(t, 0.3-0.04*math.Sqrt2, low, 1e-9)
	require.InDelta(t, 0.3+0.04*math.Sqrt2, high, 1e-9)
	require.True(t, p.Recovered())
	require.Contains(t, p.String(), "In iteration 4 of branch 0: back to iteration 1, branch 1.")
	require.Contains(t, p.String(), "lowest of the collapsed rollouts: 1.0 %")
	text, err := PlantedJSON([]*Planted{p})
	require.NoError(t, err)
	require.Contains(t, string(text), `"grad_norm": "NaN"`)
	require.Contains(t, PlantedTable([]*Planted{p, p}), "| planted | 2 | 4, executable | 1 | 1.0 % | 60.0 % (56.0 to 64.0) | 90.0 % (86.0 to 94.0) | +30.0 (+24.3 to +35.7) |")
	require.Contains(t, PlantedTable([]*Planted{p, p}), "over 2 runs that went on to their end: 30.0 ± 0.0 %")

	p.After.Success = 0.56
	require.True(t, p.Recovered(), "that may be chance")
	p.After.Success = 0.54
	require.False(t, p.Recovered(), "it ends worse")
	p.After.Success, p.Ended = 0.9, 5
	require.False(t, p.Recovered(), "how it ended is not known")
	require.Contains(t, p.String(), "stopped with version 5, which was not measured")
	require.Contains(t, PlantedTable([]*Planted{p}), "| 60.0 % (56.0 to 64.0) | stopped with version 5 | – |")
	require.False(t, (&Planted{Turned: -1}).Recovered())
	require.ErrorContains(t, p.add(&store.Manifest{Settings: json.RawMessage(`7`)}), "settings")
}
