package chaos

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/notices"
	"github.com/reprise-rl/reprise/infra/notices/noticestest"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// handOver has TestHandOver measure.
var handOver = flag.Bool("hand-over", false, "measure how long a run stalls after a notice: TestHandOver")

// handOvers are how many notices it gives in each kind of step.
const handOvers = 4

// handOverKinds are the kinds of steps in which it gives them.
var handOverKinds = []string{"Generate", "Update", "Snapshot"}

// onDevice are the kinds of steps that need a device.
var onDevice = []string{"Generate", "Score", "Diagnose", "Update", "Snapshot"}

// TestHandOver measures what passes after a notice in a step, with another worker waiting: until the worker has ended, and until
// the device's next step begins. Nothing makes the steps longer.
func TestHandOver(t *testing.T) {
	if !*handOver {
		t.Skip("it takes minutes: -hand-over measures")
	}
	for name, s := range map[string]spec.Starter{
		"0.9m": {Layers: 4, HiddenSize: 128, IntermediateSize: 384, Heads: 8, KVHeads: 4},
		"31m":  {Layers: 4, HiddenSize: 768, IntermediateSize: 2304, Heads: 12, KVHeads: 4},
	} {
		t.Run(name, func(t *testing.T) { handsOver(t, s) })
	}
}

func handsOver(t *testing.T, s spec.Starter) {
	l := newLane(t, sharedStack(t))
	l.worker(workerOptions{heartbeat: "20s", flags: []string{"--roles", "workflow,host", "--continue-as-new-after", "100000"}})
	device := func() (*process, *noticestest.Server) {
		s := noticestest.New(t, notices.AWS)
		return l.worker(workerOptions{trace: true, heartbeat: "20s", env: s.Env(), flags: []string{"--roles", "device", "--notices", notices.AWS}}), s
	}
	p, server := device()
	p.says(t, "worker serves", patience)
	l.start(chaosRun, preset(t, "sokoban-learn", map[string]any{
		"policy.starter": map[string]any{"layers": s.Layers, "hidden_size": s.HiddenSize, "intermediate_size": s.IntermediateSize, "heads": s.Heads, "kv_heads": s.KVHeads},
		"iterations":     1_000_000, "policy.warm_start": map[string]any{"steps": 0}, "evaluation": map[string]any{"every": 0}, "rollout.groups": 2, "rollout.group_size": 8, "snapshot": map[string]any{"every": 1},
	}))
	var kinds []string // of the steps in which notices came, and when the workers got them
	var moments []time.Time
	ended, resumed := map[string][]time.Duration{}, map[string][]time.Duration{}
	for range handOvers {
		for _, kind := range handOverKinds {
			p.says(t, "Update released", 3*time.Minute)
			next, nextServer := device()
			next.says(t, "are ready, should it come here", 3*time.Minute)
			took := fmt.Sprintf("%s %s took", chaosRun, kind)
			before := strings.Count(p.text(), took)
			require.Eventually(t, func() bool { return strings.Count(p.text(), took) > before }, 3*time.Minute, 3*time.Millisecond)
			server.Notify(time.Now().Add(2 * time.Minute))
			p.stops(t, patience)
			end := time.Now()
			kinds, moments = append(kinds, kind), append(moments, loggedNotice(t, p, notices.AWS))
			ended[kind] = append(ended[kind], end.Sub(moments[len(moments)-1]))
			p, server = next, nextServer
		}
	}
	p.says(t, "Update released", 3*time.Minute)
	attempts := l.work(chaosRun).attempts
	for i, moment := range moments {
		first := slices.IndexFunc(attempts, func(a *attempt) bool { return !a.refused && a.began.After(moment) && slices.Contains(onDevice, a.kind) })
		resumed[kinds[i]] = append(resumed[kinds[i]], attempts[first].began.Sub(moment))
	}
	for _, kind := range handOverKinds {
		t.Logf("%.1f M, notice in %s: ended after %s, the device's next step began after %s", float64(s.Shape(768).Parameters())/1e6, kind,
			spread(ended[kind]), spread(resumed[kind]))
	}
	_, err := l.cli("workflow", "terminate", "--workflow-id", chaosRun)
	require.NoError(t, err)
}

// spread is the median of measured times, the shortest and the longest.
func spread(of []time.Duration) string {
	slices.Sort(of)
	return fmt.Sprintf("%.2f s (%.2f–%.2f)", of[len(of)/2].Seconds(), of[0].Seconds(), of[len(of)-1].Seconds())
}
