package chaos

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/presets"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers"
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

// small is what all of them have: shapes are equal where they can be, so that
// programs are.
func small(more map[string]any) map[string]any {
	all := map[string]any{
		"iterations": methodIterations,
		"policy": map[string]any{
			"from":       "starter",
			"starter":    map[string]any{"layers": 2, "hidden_size": 32, "intermediate_size": 96, "heads": 2, "kv_heads": 1},
			"warm_start": map[string]any{"steps": 60, "rows": 16, "learning_rate": 3e-3},
		},
		"rollout.groups": 4, "rollout.group_size": 4, "rollout.think": false, "update.micro_batch": 4,
		"rollout.pass_rows": 4, // several passes, so that several devices share them
		"snapshot":          map[string]any{"every": 2}, "evaluation": map[string]any{"every": 0},
		"collapse": nervous(2),
	}
	maps.Copy(all, more)
	return all
}

var (
	onBandit = small(map[string]any{"rollout.max_new_tokens": 16})
	onLake   = small(map[string]any{"environment": map[string]any{"name": "frozenlake", "options": map[string]any{
		"size": 2, "slippery": false, "random_ends": false, "instances": 8, "max_actions": 4, "max_actions_per_turn": 2,
	}}})
	onTwo = small(map[string]any{"environment": map[string]any{"name": "lake_for_two", "options": map[string]any{
		"size": 2, "instances": 8, "max_actions": 8,
	}}})
	ones   = map[string]any{"rollout.groups": 16, "rollout.group_size": 1}
	halves = map[string]any{"update.minibatch": 8}
	// If two iterations share a rollout, only the first has an entropy.
	reused = map[string]any{"collapse": nervous(1)}
	twice  = map[string]any{"collapse": nervous(1), "freshness.online": 2}
	// Keys and values stay on the device between turns.
	keeping = map[string]any{"rollout.keep_values": true}
)

// adapters is the small policy with adapters of a rank.
func adapters(rank int) map[string]any {
	policy := maps.Clone(onBandit["policy"].(map[string]any))
	policy["lora"] = map[string]any{"rank": rank, "alpha": 2 * rank}
	return map[string]any{"policy": policy, "update.learning_rate": 3e-3}
}

// second is the small policy with the words of the second tokenizer, and with claims of the
// state in its transcripts or without.
func second(claims bool) map[string]any {
	policy := maps.Clone(onBandit["policy"].(map[string]any))
	policy["starter"] = maps.Clone(policy["starter"].(map[string]any))
	policy["starter"].(map[string]any)["tokenizer"] = 2
	if claims {
		policy["warm_start"] = maps.Clone(policy["warm_start"].(map[string]any))
		policy["warm_start"].(map[string]any)["claims"] = true
	}
	return policy
}

// words is a file of templates.
var words = func() string {
	path, err := filepath.Abs("../../docs/own/words.txt")
	if err != nil {
		panic(err)
	}
	return path
}()

// starting is a policy that starts from a tiny model of another family, and is taught the
// format.
func starting(model string) map[string]any {
	folder, err := filepath.Abs("../../model/testdata/" + model)
	if err != nil {
		panic(err)
	}
	return map[string]any{
		"policy": map[string]any{
			"from": "folder:" + folder, "compute_dtype": "float32",
			"warm_start": map[string]any{"steps": 40, "rows": 8, "learning_rate": 3e-3, "demonstrations": 0},
		},
		"rollout.turns": 2, "rollout.max_new_tokens": 24, "update.learning_rate": 1e-3,
	}
}

// families have every preset of a method once.
var families = []*family{
	{name: "groups", scale: onBandit, methods: []method{
		{preset: "dr-grpo", kills: inUpdate},
		{preset: "top-p", kills: inScore},
		{preset: "min-p", kills: inUpdate},
		{preset: "reweight", kills: inScore},
	}},
	{name: "batches", scale: onBandit, methods: []method{
		{preset: "state-baseline", change: ones, kills: inScore},
		{preset: "reinforce-pp", change: ones, kills: withModel},
		{preset: "reinforce-pp-baseline", kills: withModel},
	}},
	{name: "steps", scale: onBandit, methods: []method{
		{preset: "loop", change: halves, kills: inUpdate, steps: 4},
		{preset: "dapo", change: halves, kills: inScore, steps: 2},
		{preset: "dual-clip", change: halves, kills: inScore, steps: 4},
		{preset: "gspo", change: halves, kills: inUpdate, steps: 2},
	}},
	{name: "freshness", scale: onBandit, methods: []method{
		{preset: "online-k", change: twice, kills: inUpdate, stale: []int{1}},
		{preset: "reuse", change: reused, kills: inUpdate, stale: []int{1}},
		{preset: "replay", kills: inUpdate, stale: []int{1, 2}},
		// Killed while the next iteration's rollout is made, before the update, and in the update of a
		// version that another one has rolled out for.
		{preset: "lag", kills: []string{"Generate#2/inside/1", "Update#2/inside/1"}},
	}},
	{name: "models", scale: onBandit, methods: []method{
		{preset: "starpo-ppo", kills: withModel},
		{preset: "chaos-devices", change: map[string]any{"update.minibatch": 12}, kills: []string{"Update#0/inside/1", "Update#2/inside/2"}, steps: 2},
		{preset: "starpo-s", kills: withModel},
		{preset: "starpo-grpo", kills: withModel},
	}},
	{name: "adapters", scale: onBandit, methods: []method{
		{preset: "lora-grpo", change: adapters(4), kills: []string{"Update#1/inside/1", "Snapshot/inside/1"}},
		{preset: "lora-ppo", change: adapters(2), kills: withModel},
	}},
	{name: "architectures", scale: onLake, methods: []method{
		{preset: "qwen3-grpo", change: starting("qwen3-tiny"), kills: inUpdate},
		{preset: "llama-grpo", change: starting("llama-tiny"), kills: inScore},
	}},
	{name: "turns", scale: onLake, methods: []method{
		{preset: "clip-turns", change: map[string]any{"update.minibatch": 4}, kills: inUpdate, steps: 2},
		{preset: "turn-gae", kills: withModel},
		// The values that it keeps between turns are lost with a worker: the next one makes the appends
		// of all turns so far. The last dies in the new branch.
		{preset: "gigpo", change: keeping, kills: []string{"Step@1/written/1", "Score#0/inside/1", "Generate@2/inside/3"}},
		// Killed while candidates are sampled, and while they are chosen from.
		{preset: "tsr", change: map[string]any{"rollout.turns": 2, "rollout.candidates": 2, "selection.keep": 1}, kills: []string{"Generate#1/inside/2", "Choose#1/inside/1"}},
		// Killed between two passes of an update, and in the second pass in the new branch.
		{preset: "seeupo", change: map[string]any{"rollout.turns": 2, "rollout.max_new_tokens": 12},
			kills: []string{"Score#1/inside/2", "Update#1/inside/3"}},
		// Killed in the step of the process reward model, which is the update's first, and in the policy's.
		{preset: "istar", change: map[string]any{"rollout.turns": 2, "rollout.max_new_tokens": 12}, kills: []string{"Update#1/inside/1", "Update#2/inside/2"}},
		// What Select wrote of the parts is there when the next worker selects, and the texts of an
		// iteration are read in the next one by another worker than wrote them.
		{preset: "reward-state", change: map[string]any{"policy": second(true), "rollout.think": true, "rollout.max_new_tokens": 24},
			kills: []string{"Select#1/written/1", "Step#2/inside/1"}},
	}},
	{name: "surrogates", scale: onBandit, full: true, methods: []method{
		{preset: "cispo", change: halves, kills: inUpdate, steps: 2},
		{preset: "sapo", change: halves, kills: inScore, steps: 2},
		{preset: "dppo", change: halves, kills: inUpdate, steps: 2},
	}},
	{name: "parts", scale: onBandit, full: true, methods: []method{
		{preset: "gdpo", kills: inUpdate},
		{preset: "reward-length", kills: []string{"Select#1/written/1", "Find/begin/1"}},
	}},
	{name: "rewards", scale: onLake, full: true, methods: []method{
		{preset: "reward-progress", kills: inUpdate},
		{preset: "reward-checklist", kills: []string{"Select#1/written/1", "Find/begin/1"}},
		{preset: "reward-gamed", kills: inScore},
	}},
	{name: "tools", scale: small(map[string]any{"policy": second(false), "rollout.max_new_tokens": 16}), full: true, methods: []method{
		{preset: "reward-tools", kills: []string{"Select#1/written/1", "Step#2/inside/1"}},
		{preset: "reward-checklist-tools", kills: inScore},
	}},
	{name: "choices", scale: onBandit, full: true, methods: []method{
		{preset: "gfpo", change: map[string]any{"selection.members": 2}, kills: inUpdate},
		{preset: "tsr-best-of-n", change: map[string]any{"selection.members": 2}, kills: inScore},
		{preset: "pyvision", change: map[string]any{"selection.count": 2}, kills: inScore},
	}},
	// Stale rows are scored again, so the first ratio is 1.
	{name: "weights", scale: onBandit, full: true, methods: []method{
		{preset: "tis", kills: inUpdate},
		{preset: "tis-sequence", kills: inScore},
		{preset: "icepop", kills: inUpdate},
		{preset: "mis", kills: inScore},
		{preset: "mis-geometric", kills: inUpdate},
		{preset: "opsm", change: halves, kills: inScore, steps: 2},
		{preset: "bypass", change: halves, kills: inUpdate, steps: 2},
	}},
	{name: "supervised", scale: onBandit, full: true, methods: []method{
		{preset: "star", kills: inUpdate},
		{preset: "successes", change: halves, kills: inScore, steps: 2, stale: []int{1, 2}},
		{preset: "demonstrations", kills: inUpdate},
	}},
	{name: "attempts", scale: small(map[string]any{"rollout.max_new_tokens": 16}), full: true, methods: []method{
		{preset: "score", change: map[string]any{"schedule": []any{
			map[string]any{"field": "update.kl_first_turn", "from": 1, "value": 0.01}, map[string]any{"field": "rewards.improvement.weight", "from": 1, "value": 10},
		}}, kills: withModel},
	}},
	{name: "small lakes", scale: onLake, full: true, methods: []method{
		{preset: "gspo-turn", change: map[string]any{"update.minibatch": 8}, kills: inUpdate, steps: 2},
		{preset: "reinforce-pp-verl", kills: inScore},
		{preset: "tis-turn", kills: inUpdate},
		{preset: "growing-turns", change: map[string]any{"schedule": []any{
			map[string]any{"field": "rollout.turn_limit", "from": 1, "value": 3}, map[string]any{"field": "rollout.turn_limit", "from": 2, "value": 4},
		}}, kills: inScore},
		{preset: "empg", kills: inScore},
		{preset: "blockwise", kills: inUpdate},
		{preset: "turn-returns", kills: withModel},
		// Killed while branches are drawn, and while they are sampled in the middle of others' turns.
		{preset: "tree-grpo", change: map[string]any{"rollout.turns": 2, "rollout.trees": 2, "rollout.branches": 1}, kills: []string{"Choose#1/inside/1", "Generate#1/inside/3"}},
		// The fit reads what another worker wrote of the pivots before.
		{preset: "deep-grpo", change: map[string]any{"rollout.trees": 2, "rollout.branches": 1}, kills: []string{"Select#0/written/1", "Choose#1/inside/1"}},
	}},
	// Killed while candidates are sampled for a second turn ahead, while a turn is chosen, while turns are asked for
	// branches, and in the wave of those.
	{name: "searches", scale: onLake, full: true, methods: []method{
		{preset: "gigpo", run: "gigpo-lookahead", change: map[string]any{"rollout.search": "lookahead", "rollout.candidates": 2, "rollout.turns": 3}, kills: []string{"Generate#1/inside/2", "Choose#1/inside/2"}},
		{preset: "gigpo", run: "gigpo-entropy", change: map[string]any{"rollout.search": "entropy", "rollout.trees": 2, "rollout.turns": 3}, kills: []string{"Choose#1/inside/1", "Generate#1/inside/4"}},
	}},
	// A critic that learns chances, beside a reference.
	{name: "promises", scale: onLake, full: true, methods: []method{
		{preset: "agent-prm", change: map[string]any{"rollout.turns": 2, "rollout.max_new_tokens": 12, "update.reference_every": 2, "snapshot.every": 2, "schedule": []any{map[string]any{"field": "update.clip_low", "from": 1, "value": 0.1}}, "update.learning_rate": 3e-4, "update.minibatch": 0, "update.epochs": 1},
			kills: withModel},
	}},
	// A critic of three values for each token, and the spans of what a policy says of its subgoals.
	{name: "subgoals", scale: small(map[string]any{"policy": second(false), "rollout.max_new_tokens": 24}), full: true, methods: []method{
		{preset: "hiper", change: map[string]any{"rollout.turns": 2, "rollout.think": true}, kills: withModel},
	}},
	// Rows that get slots as others end, and rows of several widths.
	{name: "blocks", scale: onLake, full: true, methods: []method{
		{preset: "gigpo", run: "gigpo-blocks", change: map[string]any{"rollout.pass_rows": 2, "rollout.block_rows": 4, "update.widths": 3}, kills: []string{"Generate#2/inside/1", "Update#1/inside/1"}},
		{preset: "turn-gae", run: "turn-gae-blocks", change: map[string]any{"rollout.pass_rows": 2, "rollout.block_rows": 8, "update.widths": 2}, kills: withModel},
	}},
	// Prompts in other words than ours, and in a user's own.
	{name: "wordings", scale: onLake, full: true, methods: []method{
		{preset: "gigpo", run: "gigpo-ragen", change: map[string]any{"rollout.protocol": "ragen"}, kills: inUpdate},
		{preset: "gigpo", run: "gigpo-file", change: map[string]any{"rollout.protocol": "file:" + words}, kills: []string{"Resolve/begin/1", "Generate#2/inside/1"}},
	}},
	{name: "roles", scale: onTwo, full: true, methods: []method{
		{preset: "dr-mas", change: map[string]any{"update.minibatch": 0}, kills: inScore},
	}},
}

func (f *family) spec(t *testing.T, m method) []byte {
	t.Helper()
	change := maps.Clone(f.scale)
	maps.Copy(change, m.change)
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
	others := []string{"bandit-demo", "bandit-p10", "chaos", "chaos-turns", "frozenlake-learn", "full-or-lora", "methods-agent-prm", "methods-deep-grpo", "methods-hiper", "methods-istar", "methods-seeupo", "methods-tree-grpo", "methods-tsr", "size-0.5b", "size-0.5b-lora", "smoke", "sokoban-learn", "webshop-starpo-s-0.5b", "webshop-starpo-s-3b", "webshop-starter"}
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
		if !sweep && !slices.Contains(others, name) {
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
			t.Parallel()
			f.disturb(t)
			if !*full {
				return
			}
			for _, m := range f.methods {
				t.Run(m.name(), func(t *testing.T) {
					t.Parallel()
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
		for _, kill := range m.kills {
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
		l.verifies(m.name())
		same(t, f.bytes[m.name()], reach(t, l.store, m.name()))
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
	stop := l.keep(everywhere...)
	l.start(m.name(), f.spec(t, m))
	l.completes(m.name())
	stop()
	l.verifies(m.name())
	same(t, f.bytes[m.name()], reach(t, l.store, m.name()))
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
