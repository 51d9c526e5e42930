package methods

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/activities/sweeps"
	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/dev/devtest"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workers/stack"
	"github.com/reprise-rl/reprise/workers/train"
	"github.com/reprise-rl/reprise/workflows"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// The Sweep's trials are the runs of the study, whatever is asked for and in which parts.
func TestSweepIsTheStudy(t *testing.T) {
	methodstest.NeedsAll(t)
	o := Options{Seeds: 3, Tokens: 5000}
	var tried []Record
	for _, m := range Methods {
		for i, rate := range tasks[Lakes].Rates {
			for seed := range uint64(triedSeeds) {
				r := record(m.Name, seed+1, 40, 0, float64(i))
				r.Rate, r.Until = rate, o.tried()
				tried = append(tried, r)
			}
		}
	}
	runs, err := o.chosen(tried)
	require.NoError(t, err)
	s, err := o.newSweep("cpu")
	require.NoError(t, err)
	require.Contains(t, s.base, "environment")
	require.Contains(t, s.settings["tsr-0.001-5000"], "rollout")

	tries := 9 * 2 * triedSeeds
	require.Len(t, runs, tries+9*3)
	require.Len(t, groups(runs[:tries]), 1)
	todo := runs[tries+4:] // four runs of the first seed have records
	parts := groups(todo)
	require.Equal(t, [][]uint64{{1}, {2, 3}}, [][]uint64{parts[0].seeds, parts[1].seeds})
	first, err := s.start(parts[0])
	require.NoError(t, err)
	d, trials, err := sweep.Decode(first, sweeps.KnownSweep())
	require.NoError(t, err)
	added, err := json.Marshal(s.trials(parts[1]))
	require.NoError(t, err)
	every, err := sweep.More(d, trials, added, run.Known())
	require.NoError(t, err)
	every = append(trials, every...)
	require.Len(t, every, len(todo))
	for i, w := range todo {
		got, err := digest(every[i].Spec)
		require.NoError(t, err)
		require.Equal(t, w.spec, got, every[i].Label)
		require.True(t, w.is(workflows.TrialLine{Row: sweep.Row{Setting: every[i].Setting, Seed: every[i].Seed}}))
		require.False(t, w.is(workflows.TrialLine{Row: sweep.Row{Setting: every[i].Setting, Seed: every[i].Seed + 1}}))
	}
	require.Empty(t, groups(nil))

	// Another device, or other tokens, is another Sweep.
	elsewhere, err := o.newSweep("gpu")
	require.NoError(t, err)
	o.Tokens++
	longer, err := o.newSweep("cpu")
	require.NoError(t, err)
	require.NotEqual(t, s.id, elsewhere.id)
	require.NotEqual(t, s.id, longer.id)
}

// A device makes whole seeds.
func TestDeviceMakesWholeSeeds(t *testing.T) {
	methodstest.NeedsAll(t)
	o := Options{Seeds: 2, Tokens: 300, Only: []string{"grpo", "gigpo"}}
	runs, err := o.chosen(nil)
	require.NoError(t, err)
	runs = []wanted{runs[0], runs[2], runs[4], runs[6]} // one rate of each method
	done := record("grpo", 1, 40, 0, 1)
	done.Fingerprint = "cpu"
	var said bytes.Buffer
	can, err := possible(runs[1:], []Record{done}, "cpu", &said)
	require.NoError(t, err)
	require.Len(t, can, 3)
	require.Empty(t, said.String())
	can, err = possible(runs[1:], []Record{done}, "gpu", &said)
	require.NoError(t, err)
	require.Len(t, can, 2)
	require.Contains(t, said.String(), "1 run left out: this device's fingerprint is gpu")
	_, err = possible(runs[1:2], []Record{done}, "gpu", &said)
	require.ErrorContains(t, err, "use another --out, or more --seeds")

	other := record("gigpo", 1, 40, 0, 1)
	other.Fingerprint = "gpu"
	folder := t.TempDir()
	require.NoError(t, save(folder, []Record{done, other}))
	_, err = Read(folder)
	require.ErrorContains(t, err, "gigpo-0.001-100-s1 is of another device than grpo-0.001-100-s1")
	other.Seed = 2
	require.NoError(t, save(folder, []Record{done, other}))
	_, err = Read(folder)
	require.NoError(t, err)
}

// smallStudy makes runs of some seconds.
var smallStudy = map[string]any{
	"policy":     map[string]any{"warm_start": map[string]any{"steps": 2, "rows": 4}},
	"rollout":    map[string]any{"groups": 1, "group_size": 4, "turns": 4},
	"update":     map[string]any{"micro_batch": 4},
	"evaluation": map[string]any{"every": 10, "instances": 2},
}

// stopped ends a study when it has printed so many lines that contain text.
type stopped struct {
	bytes.Buffer
	text  string
	after int
	stop  context.CancelFunc
}

func (s *stopped) Write(b []byte) (int, error) {
	n, err := s.Buffer.Write(b)
	if strings.Count(s.String(), s.text) >= s.after {
		s.stop()
	}
	return n, err
}

// A study that is stopped continues with the runs that have no record, and its records are what the same specs
// give without a workflow.
func TestStudyRunsAsASweep(t *testing.T) {
	methodstest.NeedsAll(t)
	plugintest.Needs(t)
	_, err := dev.TemporalCLI()
	devtest.Needs(t, err)
	o := Options{Seeds: 1, Tokens: 150, Only: []string{"gigpo"}, Out: t.TempDir(), small: smallStudy}
	stack.AddWorkerFlags(pflag.NewFlagSet("", pflag.ContinueOnError), &o.Worker, 5*time.Second)
	o.Worker.Device.XLAFlags = model.QuickCompile
	ctx, cancel := context.WithCancel(t.Context())
	progress := &stopped{text: "iterations, success", after: 1, stop: cancel}
	require.ErrorContains(t, Run(ctx, o, io.Discard, progress), "the same command continues")
	some, err := Read(o.Out)
	require.NoError(t, err, progress.String())
	require.NotEmpty(t, some)
	require.Less(t, len(some), 5)

	var out, again bytes.Buffer
	require.NoError(t, Run(t.Context(), o, &out, &again), again.String())
	records, err := Read(o.Out)
	require.NoError(t, err)
	require.Len(t, records, 5)
	require.Regexp(t, `\| GiGPO \| 0\.\d+ \| 1 \|`, out.String())
	require.Contains(t, again.String(), "5 runs until 150 sampled tokens each, or 50 to try learning rates: 5 of them done already")

	opened, err := model.OpenDevice(o.Worker.Device)
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	runs, err := o.chosen(nil)
	require.NoError(t, err)
	memory := store.NewMemory()
	w := runs[0]
	trained, err := train.New(engine, memory).Train(t.Context(), "alone", w.text)
	require.NoError(t, err)
	alone := Record{Method: w.method.Name, Rate: w.rate, Seed: w.seed, Until: w.tokens, Spec: w.spec, Fingerprint: engine.Info().Fingerprint}
	for i := range trained.Iterations {
		m, _, err := store.ReadManifestAt(t.Context(), memory, "alone", 0, i)
		require.NoError(t, err)
		alone.add(m)
	}
	require.Contains(t, records, alone)
}
