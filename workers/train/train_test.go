package train_test

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/train"
	"github.com/reprise-rl/reprise/workflows/iteration"
)

var (
	ledger  = flag.String("ledger", "", "the presets whose ends are compared with the ledger, /N after N iterations; or all; "+someOfLedger+" if empty")
	rewrite = flag.Bool("rewrite", false, "write what was computed into the ledger")
)

const (
	someOfLedger = "smoke,starpo-s/1,starpo-ppo/1,online-k/2,replay/2,dapo/1"
	allOfLedger  = "smoke,chaos,chaos-turns,starpo-ppo,bandit-demo,starpo-s/1,starpo-ppo/1,gigpo/1,turn-gae/1,online-k/2,replay/2,dapo/1"
)

// processor is the vendor, family and model of the processor that the engine computes on.
var processor string

// engine is the one device of all tests. It has the flags that runs have, since the ledger is of their
// bits, and a process has one set of flags.
var engine = sync.OnceValues(func() (*device.Engine, error) {
	opened, err := model.OpenDevice(model.DeviceOptions{})
	if err != nil {
		return nil, fmt.Errorf("open the tests' device: %w", err)
	}
	processor = strings.ReplaceAll(opened.Fingerprint().Processor, " ", "-")
	return device.NewEngine(opened)
})

// everything is a run in which every part of an iteration is due in its only iteration.
const everything = `{
	"seed": 1, "iterations": 1,
	"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 64, "heads": 2, "kv_heads": 1},
		"warm_start": {"steps": 1, "rows": 4}},
	"environment": {"name": "bandit"},
	"rollout": {"groups": 2, "group_size": 2, "turns": 1, "max_new_tokens": 8, "think": false},
	"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 1},
	"evaluation": {"every": 1, "instances": 2}, "diagnostics": {"every": 1, "samples": 2}
}`

// An order without one of its parts cannot be completed: the driver does nothing on its
// own beside the order.
func TestTrainNeedsEveryPart(t *testing.T) {
	plugintest.Needs(t)
	e, err := engine()
	require.NoError(t, err)
	s := store.NewMemory()
	every := strings.Replace(everything, `"from": "starter",`, `"from": "starter", "exact": false,`, 1) // which needs Score too
	whole, err := train.New(e, s).Train(t.Context(), "whole", []byte(every))
	require.NoError(t, err)
	require.Len(t, whole.Iterations, 1)
	for _, part := range iteration.Parts() {
		t.Run(part, func(t *testing.T) {
			t.Cleanup(iteration.Without(part))
			_, err := train.New(e, store.NewOverlay(s)).Train(t.Context(), "without", []byte(every))
			require.ErrorContains(t, err, "no step is left that does "+part)
		})
	}
}

// A run that ends by its tokens ends as others do: its last version is evaluated.
func TestTrainEndsByTokens(t *testing.T) {
	plugintest.Needs(t)
	e, err := engine()
	require.NoError(t, err)
	s := store.NewMemory()
	text := strings.Replace(everything, `"iterations": 1,`, `"iterations": 9, "stop": {"sampled_tokens": 17},`, 1)
	for _, every := range []string{`"snapshot": {"every": 1}`, `"evaluation": {"every": 1,`} {
		text = strings.Replace(text, every, strings.Replace(every, "1", "9", 1), 1)
	}
	trained, err := train.New(e, s).Train(t.Context(), "tokens", []byte(text))
	require.NoError(t, err)
	n := len(trained.Iterations)
	require.Greater(t, 9, n)
	for i := range n {
		m, _, err := store.ReadManifestAt(t.Context(), s, "tokens", 0, i)
		require.NoError(t, err)
		require.Equal(t, i == n-1, m.Metrics["rollout/sampled_tokens_total"] >= 17)
		require.Equal(t, i == n-1, m.Snapshot != nil)
		last := m.Evaluations[max(0, len(m.Evaluations)-1):]
		require.Equal(t, i == n-1, len(last) == 1 && last[0].Version == n)
	}
}

const ledgerFile = "testdata/ledger.txt"

// The ends of presets are what they were: the state fingerprint and the manifest's digest
// after the last iteration. A change that moves them does so on purpose, and says so in
// CHANGELOG. Other devices have lines of their own, since nothing promises that they compute the same
// bits. Where the ledger has none, smoke is computed, to say whether its state is another processor's, and
// the presets that -ledger names.
//
//	go test ./workers/train -run TestLedger -v -timeout 60m -args -ledger all -rewrite
func TestLedger(t *testing.T) {
	plugintest.Needs(t)
	e, err := engine()
	require.NoError(t, err)
	lines := map[string]string{} // by the device's fingerprint and preset
	b, err := os.ReadFile(ledgerFile)
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 5 && !strings.HasPrefix(line, "#") {
			lines[f[0]+" "+f[2]] = f[3] + " " + f[4]
		}
	}
	names := strings.Split(*ledger, ",")
	switch *ledger {
	case "":
		names = strings.Split(someOfLedger, ",")
	case "all":
		names = strings.Split(allOfLedger, ",")
	}
	where := e.Info().Fingerprint
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			want, ok := lines[where+" "+name]
			if !ok && !*rewrite && *ledger == "" && name != "smoke" {
				t.Skipf("the ledger has no line for this machine (%s): to compute and print it, give -args -ledger %s", where, name)
			}
			text := preset(t, name)
			run, _, _ := strings.Cut(name, "/")
			s := store.NewMemory()
			_, err := train.New(e, s).Train(t.Context(), run, text)
			require.NoError(t, err)
			head, err := store.Head(t.Context(), s, run)
			require.NoError(t, err)
			got := head.Manifest.StateAfter + " " + head.Ref.Digest
			line := strings.Join([]string{where, processor, name, got}, " ")
			t.Log(line)
			switch {
			case *rewrite && !ok:
				f, err := os.OpenFile(ledgerFile, os.O_APPEND|os.O_WRONLY, 0o644)
				require.NoError(t, err)
				_, err = fmt.Fprintln(f, line)
				require.NoError(t, err)
				require.NoError(t, f.Close())
			case !ok:
				as := "no other's"
				if strings.Contains(string(b), " "+name+" "+head.Manifest.StateAfter+" ") {
					as = "another's"
				}
				t.Skipf("the ledger has no line for this device (%s, %s), whose state is %s: only printed", where, processor, as)
			default:
				require.Equal(t, want, got)
			}
		})
	}
}

// preset reads NAME, or NAME/N: that preset with N iterations after a warm start of two
// updates, and with small evaluations.
func preset(t *testing.T, name string) []byte {
	t.Helper()
	name, iterations, short := strings.Cut(name, "/")
	if !short {
		text, err := presets.Read(name)
		require.NoError(t, err)
		return text
	}
	n, err := strconv.Atoi(iterations)
	require.NoError(t, err)
	text, err := presets.With(name, map[string]any{
		"iterations": n, "policy": map[string]any{"warm_start": map[string]any{"steps": 2}},
		"evaluation": map[string]any{"instances": 4, "samples": 1},
	})
	require.NoError(t, err)
	return text
}
