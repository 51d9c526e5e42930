package chaos

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// method is a preset that shows a method, made small.
type method struct {
	preset string
	run    string         // the name of the run if the preset is in the list already; by default the preset
	change map[string]any // beside the scale
	// kills are where workers die, one after the other, each in the preset's own run.
	kills []string
	// steps is how many optimizer steps a batch has: with more than one the policy
	// moves on before the batch is over.
	steps int
	// stale are the iterations that learn from another policy's trajectories.
	stale []int
}

// The places where workers die. Every run goes back once, from iteration 2 to iteration
// 0, and does iterations 1 and 2 again in branch 1. The first worker dies in an iteration
// for which the next applies the update before again; with a critic or a reference in the
// first iteration instead, whose policy is the reference. The second dies while the run
// goes back, or in the new branch: what it did before in the old one counts too.
var (
	inUpdate  = []string{"Update#1/inside/1", "Find/begin/1"}
	inScore   = []string{"Score#1/inside/1", "Update#1/inside/2"}
	withModel = []string{"Score#0/inside/1", "Update#2/inside/2"}
)

// everywhere is what -full kills a method's run at besides.
var everywhere = []string{
	"Restore/begin/1", "Generate/written/1", "Step/inside/1", "Select/written/1", "Score/written/1", "Credit/inside/1", "Update/begin/1",
	"Update/written/1", "Credit/written/1", "Snapshot/inside/1", "Commit/written/1",
}

// exactEntropy is the metric with which Select also computes the advantages: no Credit follows.
const exactEntropy = "exact_entropy"

// scoredBySampler says whether a run has no Score, and no Credit, because the sampler has scored.
func scoredBySampler(t *testing.T, text []byte) bool {
	t.Helper()
	s, err := spec.Decode(text, run.Known())
	require.NoError(t, err)
	return s.ScoredBySampler()
}

// everywhere are the kinds of step that the method's run has.
func (m method) everywhere(bySampler bool) []string {
	return slices.DeleteFunc(slices.Clone(everywhere), func(kill string) bool {
		return strings.HasPrefix(kill, "Score/") && bySampler ||
			strings.HasPrefix(kill, "Credit/") && (bySampler || m.change["selection.metric"] == exactEntropy)
	})
}

// killed are the places where the method's workers die: in the selection where no step scores.
func (m method) killed(bySampler bool) (out []string) {
	for _, kill := range m.kills {
		if bySampler {
			kill = strings.Replace(kill, "Score#", "Select#", 1)
		}
		out = append(out, kill)
	}
	return out
}

// family is methods on one task, in one lane each: undisturbed, and disturbed.
type family struct {
	name    string
	scale   map[string]any
	methods []method
	// full: only with -full, because tests of activities make the same runs directly.
	full bool

	sync.Mutex
	bytes  map[string]Bytes // by run
	models map[string][]byte
}

// name is the name of the method's run.
func (m method) name() string {
	if m.run != "" {
		return m.run
	}
	return m.preset
}

const methodIterations = 3

// nervous are detectors that take any third entropy for a collapse, so that every run
// rolls back once: it must be above the lowest or below the average.
func nervous(warmUp int) map[string]any {
	return map[string]any{
		"on_detection": "off", "warm_up": warmUp, "solved": 0,
		"entropy_rise": map[string]any{"on_detection": "rollback", "factor": 1.0001, "floor": 0, "iterations": 1},
		"entropy_fall": map[string]any{"on_detection": "rollback", "factor": 0.9999, "floor": 0, "iterations": 1},
		"rollback":     map[string]any{"max": 1, "then": "warn"},
	}
}

// xlaFlags shorten what a new worker compiles before it works, which is most of what these
// tests cost. With -full the programs are the same as in every other run.
func xlaFlags() string {
	if *full {
		return ""
	}
	return model.QuickCompile
}

// ofMethods is a lane whose workers compile so. They may be silent for longer than
// others': many lanes compile side by side.
func (l *lane) ofMethods() *lane {
	l.flags = []string{"--session-heartbeat", "10s"}
	if flags := xlaFlags(); flags != "" {
		l.flags = append(l.flags, "--xla-flags", flags)
	}
	return l
}

func (f *family) spec(t *testing.T, m method) []byte {
	t.Helper()
	change := maps.Clone(f.scale)
	maps.Copy(change, m.change)
	if policy := change["policy"].(map[string]any); !*full && policy["starter"] != nil {
		// Of one layer, programs compile in half of the time.
		policy = maps.Clone(policy)
		starter := maps.Clone(policy["starter"].(map[string]any))
		starter["layers"] = 1
		policy["starter"], change["policy"] = starter, policy
	}
	return preset(t, m.preset, change)
}

// reference makes the undisturbed runs, once, one after the other on one worker.
func (f *family) reference(t *testing.T) {
	t.Helper()
	f.Lock()
	defer f.Unlock()
	if f.bytes != nil {
		return
	}
	l := newNamedLane(t, sharedStack(t), f.lane(), true).ofMethods()
	p := l.worker(workerOptions{})
	bytes := map[string]Bytes{}
	for _, m := range f.methods {
		l.start(m.name(), f.spec(t, m))
		l.completes(m.name())
		bytes[m.name()] = reach(t, l.store, m.name())
	}
	p.kill()
	f.models = map[string][]byte{}
	for o, err := range l.store.List(t.Context(), store.ModelPrefix) {
		require.NoError(t, err)
		b, _, err := store.ReadFixed(t.Context(), l.store, o.Key, 1<<30)
		require.NoError(t, err)
		f.models[o.Key] = b
	}
	f.bytes = bytes
}

func (f *family) lane() string { return "undisturbed-methods-" + f.name }

// undisturbed is the lane of the undisturbed runs, to look at.
func (f *family) undisturbed(t *testing.T) *lane {
	l := &lane{t: t, stack: sharedStack(t), prefix: f.lane()}
	l.store = l.open(l.prefix)
	return l
}

// disturbed is a lane for others, with the starter there already.
func (f *family) disturbed(t *testing.T) *lane {
	t.Helper()
	f.reference(t)
	l := newLane(t, sharedStack(t)).ofMethods()
	for _, key := range slices.Sorted(maps.Keys(f.models)) {
		require.NoError(t, l.store.Put(t.Context(), key, f.models[key], store.PutOptions{}))
	}
	return l
}

// TestChaosMethodsAll keeps the list: each preset of a method is disturbed.
func TestChaosMethodsAll(t *testing.T) {
	// These show no method of their own, and the paper's figures and tables are sweeps.
	others := []string{"bandit-demo", "bandit-p10", "chaos", "chaos-turns", "code-starter", "frozenlake-learn", "full-or-lora", "lookup-starter", "size-0.5b", "size-0.5b-lora", "smoke", "smol-bandit", "smol-bandit-lora", "smol-frozenlake", "smol-lookup", "sokoban-learn", "webshop-starpo-s-0.5b", "webshop-starpo-s-3b", "webshop-starter"}
	var have, want []string
	for _, f := range families {
		for _, m := range f.methods {
			if m.run == "" {
				have = append(have, m.preset)
			}
		}
	}
	for _, name := range presets.Names() {
		sweep := strings.HasPrefix(name, "fig") || strings.HasPrefix(name, "table")
		card := strings.HasPrefix(name, "methods-") // the same methods, for a card
		if !sweep && !card && !slices.Contains(others, name) {
			want = append(want, name)
		}
	}
	require.ElementsMatch(t, want, have)
}

// TestChaosMethods runs every method's preset, small, undisturbed and with workers
// being killed in and between its steps and while it goes back, which have four devices, one and
// two in turns: the objects of both branches are the same, byte for byte, and the first iteration of the new one,
// computed again, is too. With -full each method has another run that loses a worker
// in each kind of step.
func TestChaosMethods(t *testing.T) {
	t.Parallel()
	for _, f := range families {
		if f.full && !*full {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			end := beside(t)
			f.disturb(t)
			if !*full {
				return
			}
			end()
			for _, m := range f.methods {
				t.Run(m.name(), func(t *testing.T) {
					beside(t)
					f.everywhere(t, m)
				})
			}
		})
	}
}

// disturb has each method's run lose workers, one run after the other.
func (f *family) disturb(t *testing.T) {
	l := f.disturbed(t)
	l.devices = []int{4, 1, 2} // the undisturbed runs have one
	var kills []string
	for _, m := range f.methods {
		f.learns(t, m)
		for _, kill := range m.killed(scoredBySampler(t, f.spec(t, m))) {
			kills = append(kills, m.name()+"!"+kill)
		}
	}
	stop := l.keep(kills...)
	for _, m := range f.methods {
		l.start(m.name(), f.spec(t, m))
		l.completes(m.name())
	}
	stop()
	for _, m := range f.methods {
		l.isAs(m.name(), f.bytes[m.name()])
		recompute(t, l.store, m.name(), 1)
		if *full {
			recompute(t, l.store, m.name(), 0)
			recompute(t, l.store, m.name(), 2)
		}
	}
}

// everywhere kills a worker in each kind of step of a method's run.
func (f *family) everywhere(t *testing.T, m method) {
	l := f.disturbed(t)
	l.devices = []int{2, 4, 1}
	stop := l.keep(m.everywhere(scoredBySampler(t, f.spec(t, m)))...)
	l.start(m.name(), f.spec(t, m))
	l.completes(m.name())
	stop()
	l.isAs(m.name(), f.bytes[m.name()])
}

// learns checks that an undisturbed run is worth disturbing: it goes back once, its
// policy moves, and the first ratio is exactly 1 where a batch has one step and its rows are fresh.
func (f *family) learns(t *testing.T, m method) {
	t.Helper()
	l, moved := f.undisturbed(t), 0
	branches, err := store.Branches(t.Context(), l.store, m.name())
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, branches, "%s goes back once", m.name())
	again, err := store.Iterations(t.Context(), l.store, m.name(), 1)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, again, "%s goes back to iteration 0", m.name())
	for n := range methodIterations {
		manifest := l.manifest(m.name(), n)
		if manifest.StateBefore != manifest.StateAfter {
			moved++
		}
		if len(manifest.Updates()) == 0 {
			continue
		}
		differing, compared := manifest.Metrics[collapse.MetricDiffering]
		require.Zero(t, differing, "%s, iteration %d: a token's log-prob is not the sampler's", m.name(), n)
		if scoredBySampler(t, f.spec(t, m)) && !slices.Contains(m.stale, n) {
			require.True(t, compared, "%s, iteration %d", m.name(), n)
			require.Zero(t, manifest.Metrics[collapse.MetricRolloutDiffMax])
		}
		ratio := float64(manifest.Metrics["actor/ratio_max"])
		if m.steps > 1 || slices.Contains(m.stale, n) {
			require.Positive(t, ratio, "%s, iteration %d", m.name(), n)
		} else {
			require.Zero(t, ratio, "%s, iteration %d: the programs agree on what was sampled", m.name(), n)
		}
		require.Equal(t, len(manifest.Turns) == 0, m.shares() && slices.Contains(m.stale, n), "%s, iteration %d rolls out", m.name(), n)
	}
	require.GreaterOrEqual(t, moved, 2, m.name())
}

// shares reports whether a stale iteration rolls nothing out itself.
func (m method) shares() bool { return m.preset == "online-k" || m.preset == "reuse" }

// again is the device that iterations are computed on again: one for all, so that
// programs of equal shapes are compiled once. It does what `reprise replay` does.
var again struct {
	sync.Mutex
	device *model.Device
}

// recompute has an iteration computed again come out the same.
func recompute(t *testing.T, s store.Store, run string, iteration int) {
	t.Helper()
	again.Lock()
	defer again.Unlock()
	if again.device == nil {
		plugintest.Needs(t)
		device, err := model.OpenDevice(model.DeviceOptions{XLAFlags: xlaFlags(), ProgramCache: programs})
		require.NoError(t, err)
		again.device = device
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := workers.ReplayIteration(ctx, s, again.device, run, iteration, func(string) {})
	require.NoError(t, err)
	require.True(t, r.Same(), "iteration %d of %s: %v", iteration, run, r.Differences)
}
