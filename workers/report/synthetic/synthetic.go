// Package synthetic writes runs that nobody trained, for the tests and measurements of
// reports: whole chains of manifests with tables of the requested shapes and sizes, much
// faster than training. The same shape gives the same bytes.
package synthetic

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Shape is what a run looks like.
type Shape struct {
	// Iterations of Groups × Members episodes of Turns turns of about Words words.
	Iterations, Groups, Members, Turns, Words int
	// States is how many initial states the groups draw from.
	States int
	// EvaluateEvery iterations a suite of Instances is played; 0 is never.
	EvaluateEvery, Instances int
	// Rollback goes back to iteration Rollback.To after iteration Rollback.From of
	// branch 0; none if From is 0.
	Rollback struct{ From, To int }
	// Rewards are the names of rewards in parts: each gives 0.5 for a turn, with the weight 2.
	Rewards []string
	// Seed draws what happens; Level moves its success up or down.
	Seed  uint64
	Level float64
	// Texts replace the sampled texts and observations; "" means words and boards.
	Texts Texts
}

// Texts are texts that a test looks for in a page.
type Texts struct {
	Said, Board, Label, Suite, Action, Event, Description, Knob string
}

// Paper is a run of 200 iterations with 25,600 trajectories.
func Paper() Shape {
	s := Shape{Iterations: 200, Groups: 8, Members: 16, Turns: 3, Words: 40, States: 64, EvaluateEvery: 20, Instances: 64, Seed: 1}
	s.Rollback.From, s.Rollback.To = 120, 100
	return s
}

// Write stores a run.
func Write(ctx context.Context, s store.Store, run string, shape Shape) error {
	w := &writer{ctx: ctx, s: s, run: run, shape: shape, random: rand.New(rand.NewPCG(shape.Seed, 7))}
	w.prepare()
	w.iterations()
	if w.err != nil {
		return fmt.Errorf("write synthetic run %q: %w", run, w.err)
	}
	return nil
}

type writer struct {
	ctx       context.Context
	s         store.Store
	run       string
	shape     Shape
	random    *rand.Rand
	tokenizer *tokenizer.Tokenizer
	spec      store.Ref
	base      store.ModelRef
	metrics   activities.Metrics // of the iteration before
	err       error              // the first one: no iteration is written after it
}

// note keeps the first error.
func (w *writer) note(err error) {
	if w.err == nil {
		w.err = err
	}
}

func (w *writer) prepare() {
	text := w.shape.Texts
	t := spec.Train{Description: cmp.Or(text.Description, "A run that nobody trained."), Seed: w.shape.Seed,
		Iterations: w.shape.Iterations, Collapse: collapse.Defaults()}
	t.Rollout = spec.Rollout{Groups: w.shape.Groups, GroupSize: w.shape.Members, Turns: w.shape.Turns, Think: true,
		MaxNewTokens: 4 * w.shape.Words, Temperature: 1}
	t.Environment.Name = "synthetic"
	for _, name := range w.shape.Rewards {
		t.Rewards = append(t.Rewards, spec.Reward{Name: name, Weight: 2})
	}
	body, err := canon.Marshal(t)
	w.note(err)
	w.spec, err = store.Commit(w.ctx, w.s, store.SpecKey(w.run), body)
	w.note(err)
	w.tokenizer, err = starter.Tokenizer()
	w.note(err)
	files := starter.Files()
	files["model.safetensors"] = []byte("weights that nobody loads")
	folder, err := store.PutFolder(w.ctx, w.s, store.ModelPrefix, run.FolderFiles(files))
	w.note(err)
	w.base = store.ModelRef{Name: "starter", Dir: folder.Dir, Digest: folder.Digest, Files: folder.Files, State: "state-b0-0"}
}

// iterations writes the branches, oldest first.
func (w *writer) iterations() {
	back := w.shape.Rollback
	last := w.shape.Iterations - 1
	if back.From > 0 {
		last = back.From
	}
	links := map[int]*store.Link{} // of the line so far
	for n := 0; n <= last && w.err == nil; n++ {
		links[n] = w.iteration(0, n, links[n-1], nil)
	}
	if back.From == 0 || w.err != nil {
		return
	}
	event := w.event(back.From, back.To+1)
	opened := &activities.Opened{Branch: 0, Iteration: back.From, Events: []collapse.Event{event},
		Changes: []string{cmp.Or(w.shape.Texts.Knob, "update.learning_rate × 0.5: 0.00015")}}
	w.metrics = links[back.To].Manifest.Metrics
	for n := back.To + 1; n < w.shape.Iterations && w.err == nil; n++ {
		links[n] = w.iteration(1, n, links[n-1], opened)
		opened = nil
	}
}

func (w *writer) event(at, onset int) collapse.Event {
	return collapse.Event{Detector: "reward_std", Iteration: at, Onset: onset, Severity: "early", Text: cmp.Or(w.shape.Texts.Event, "the in-group deviation is 0.02, below 0.2 times its early level 0.4")}
}

// iteration writes an iteration and what it names.
func (w *writer) iteration(branch, n int, parent *store.Link, opened *activities.Opened) *store.Link {
	dir := store.IterationDir(w.run, branch, n)
	m := &store.Manifest{
		Run: w.run, Branch: branch, Iteration: n, Spec: w.spec, Base: w.base, Fingerprint: "0123456789ab", Device: json.RawMessage(`{"kind":"none"}`),
		StateBefore: "state-b0-0", StateAfter: fmt.Sprintf("state-b%d-%d", branch, n+1), Update: store.UpdateCounts{Steps: int64(n + 1)},
	}
	if parent != nil {
		m.Parent, m.StateBefore = &parent.Ref, parent.Manifest.StateAfter
	}
	rate := []float64{3e-4, 1.5e-4}[branch]
	if back := w.shape.Rollback; branch == 0 && back.From > 0 && n > back.To+1 {
		rate = 1e-4 // a person's change, which the rollback abandons
	}
	settings := map[string]any{"update": map[string]any{"learning_rate": rate}}
	var err error
	m.Settings, m.SettingsDigest, err = store.NewSettings(settings)
	w.note(err)
	rows, turns, batch := w.rollout(n, w.shape.Groups, w.shape.Members, w.skill(branch, n))
	m.Turns, m.Trajectories = w.tables(dir, rows, turns)
	ref, err := store.PutArtifact(w.ctx, w.s, dir, "batch", "safetensors", batch)
	w.note(err)
	m.Batch, m.Metrics = &ref, w.figures(rows)
	w.components(dir, m, rows)
	if every := w.shape.EvaluateEvery; every > 0 && (n+1)%every == 0 {
		m.Evaluations = []store.EvaluationRef{w.evaluation(branch, n)}
	}
	if branch == 0 && w.shape.Rollback.From > 0 && n == w.shape.Rollback.From {
		onset := w.shape.Rollback.To + 1
		m.Detected, err = canon.Marshal(activities.Detected{
			Events:   []collapse.Event{w.event(n, onset)},
			Decision: collapse.Decision{Action: collapse.RollBack, By: []string{"reward_std"}, Onset: onset},
		})
		w.note(err)
	}
	if opened != nil {
		m.Opened, err = canon.Marshal(opened)
		w.note(err)
	}
	committed, err := store.CommitManifest(w.ctx, w.s, m)
	w.note(err)
	w.metrics = m.Metrics
	w.telemetry(branch, n)
	return &store.Link{Ref: committed, Manifest: m}
}

// components writes the rewards in parts, if the shape has them.
func (w *writer) components(dir string, m *store.Manifest, rows []episode.TrajectoryRow) {
	var parts []run.ComponentRow
	for _, r := range rows {
		for k := range r.Turns() {
			for _, name := range w.shape.Rewards {
				parts = append(parts, run.ComponentRow{Row: r.Row, Turn: int32(k), Component: name, Weight: 2, Value: 0.5})
			}
		}
	}
	if parts == nil {
		return
	}
	ref, err := tables.Put(w.ctx, w.s, dir, activities.ComponentsTable.Name, parts)
	w.note(err)
	m.Artifacts = map[string]store.Ref{activities.ComponentsTable.Name: ref}
	for _, name := range w.shape.Rewards {
		m.Metrics["reward/"+name+"/mean"] = canon.Float(0.5 * float64(w.shape.Turns))
	}
	m.Metrics["reward/weighted_mean"] = m.Metrics["reward/mean"] + canon.Float(float64(len(w.shape.Rewards)*w.shape.Turns))
}

// skill is the share of episodes that succeed: it grows, and falls towards a rollback.
func (w *writer) skill(branch, n int) float64 {
	x := float64(n) / float64(max(w.shape.Iterations, 1))
	v := 0.1 + 0.7*(1-math.Exp(-3*x)) + w.shape.Level
	if back := w.shape.Rollback; branch == 0 && back.From > 0 && n > back.To {
		v -= 0.6 * float64(n-back.To) / float64(back.From-back.To)
	}
	return min(max(v, 0.02), 0.98)
}

// figures are an iteration's metrics.
func (w *writer) figures(rows []episode.TrajectoryRow) activities.Metrics {
	var success, tokens float64
	for _, r := range rows {
		if r.Success {
			success++
		}
		tokens += float64(len(r.RolloutLogProbs))
	}
	n := float64(len(rows))
	success /= n
	noise := func(v, by float64) canon.Float { return canon.Float(v + by*(w.random.Float64()-0.5)) }
	m := activities.Metrics{
		"reward/mean": canon.Float(success), "success/mean": canon.Float(success), "valid/mean": noise(0.95, 0.05),
		"response_length/mean": canon.Float(tokens / n), "rollout/trajectories": canon.Float(n),
		collapse.MetricRewardStd: canon.Float(math.Sqrt(success * (1 - success))), collapse.MetricEntropy: noise(0.3+0.8*(1-success), 0.1),
		collapse.MetricGradNorm: noise(0.5, 0.4), "actor/pg_loss": noise(0, 0.02), "actor/ppo_kl": noise(0.01, 0.01),
		"actor/pg_clipfrac": noise(0.05, 0.05), "rollout/distinct_2": noise(0.6, 0.1), "rollout/in_group_similarity": noise(0.4, 0.1),
	}
	maps.Copy(m, collapse.Smooth(w.metrics, m, collapse.Curves(), collapse.DefaultDecay))
	return m
}

func (w *writer) evaluation(branch, n int) store.EvaluationRef {
	suite := cmp.Or(w.shape.Texts.Suite, "in-distribution")
	dir := store.EvaluationDir(w.run, branch, n+1) + "/" + store.EscapeSegment(suite)
	skill := w.skill(branch, n)
	rows, turns, _ := w.rollout(-1, w.shape.Instances, 1, skill)
	e := store.EvaluationRef{Version: n + 1, Suite: suite, State: fmt.Sprintf("state-b%d-%d", branch, n+1)}
	e.Turns, e.Trajectories = w.tables(dir, rows, turns)
	solved := 0.0
	for _, r := range rows {
		if r.Success {
			solved++
		}
	}
	p, half := solved/float64(len(rows)), 1.96*math.Sqrt(0.25/float64(len(rows)))
	e.Metrics = activities.Metrics{
		"success/mean": canon.Float(p), "success/low": canon.Float(max(p-half, 0)), "success/high": canon.Float(min(p+half, 1)), "reward/mean": canon.Float(p),
		"trajectories": canon.Float(float64(len(rows))), "reference/random_success": 0.15, "reference/best_success": 1,
		"reference/random_reward": 0.15, "reference/best_reward": 1, "valid/mean": 1, "turns/mean": 2,
		"response_length/mean": 20, "entropy/mean": 0.5,
	}
	return e
}

func (w *writer) tables(dir string, rows []episode.TrajectoryRow,
	turns [][]episode.StepRow) (refs []store.TurnRefs, trajectories *store.Ref) {
	for k, rows := range turns {
		step, err := tables.Put(w.ctx, w.s, dir, fmt.Sprintf("turn-%d.step", k+1), rows)
		w.note(err)
		// Reports read no generate tables: the trajectories have all of them.
		generate, err := tables.Put(w.ctx, w.s, dir, fmt.Sprintf("turn-%d.generate", k+1), []episode.GenerateRow{})
		w.note(err)
		refs = append(refs, store.TurnRefs{Generate: generate, Step: step})
	}
	ref, err := tables.Put(w.ctx, w.s, dir, "trajectories", rows)
	w.note(err)
	return refs, &ref
}

func (w *writer) telemetry(branch, n int) {
	t := run.IterationTelemetry{
		Branch: branch, Iteration: n, Committed: time.Date(2026, 1, 2, 3, 0, 10*n+1000*branch, 0, time.UTC),
		Steps: map[string]activities.Telemetry{"generate": {Seconds: 4, Tokens: 4000}, "update": {Seconds: 3, Tokens: 9000}, "commit": {Seconds: 0.02}},
	}
	cost := activities.Cost{Kind: "synthetic", Held: 9, Useful: 7, Money: 0.01}
	if n == w.shape.Iterations/2 {
		cost.Held, cost.Recomputed, cost.Lost = 15, 2, 4
		t.LostSessions = []activities.LostSession{{Kind: "synthetic", Lost: "2026-01-02T03:00:00Z", Step: "Update: the step that was lost", Seconds: 4, Reason: "SessionLost"}}
		t.LostDevices = 1
		t.Steps["restore"] = activities.Telemetry{Seconds: 2, Recomputed: 3}
	}
	t.Costs = []activities.Cost{cost}
	body, err := json.Marshal(t)
	w.note(err)
	w.note(w.s.Put(w.ctx, run.TelemetryKey(w.run, branch, n), body, store.PutOptions{}))
}

// words are the sampled words.
var words = strings.Fields("the way is left of a hole and then down two steps so I go right first look again wall goal up")
