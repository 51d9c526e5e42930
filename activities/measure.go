package activities

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/statistics"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// EvaluationResult is what an evaluation found, as it is stored: nothing in it
// says who asked, so that the same policy on the same suite and kind of device
// gives the same bytes.
type EvaluationResult struct {
	// Format is evaluationFormat.
	Format int `json:"format"`
	// Suite is complete: who rolls it out again meets the same instances.
	Suite spec.Suite `json:"suite"`
	// State is the policy's state fingerprint, ComputeDtype what it was computed
	// with, Fingerprint the device's.
	State        string `json:"state"`
	ComputeDtype string `json:"compute_dtype"`
	Fingerprint  string `json:"fingerprint"`
	// Metrics are the figures, Trajectories the digest of the table's logical columns.
	Metrics      Metrics `json:"metrics"`
	Trajectories string  `json:"trajectories"`
}

const evaluationFormat = 1

// Measure turns an evaluation's episodes into figures and stores its
// trajectories and its result.
func (h *Host) Measure(ctx context.Context, in MeasureInput) (_ MeasureResult, err error) {
	defer edge(ctx, &err, "measure version %d of run %s", in.Version, in.Run.ID)
	defer heartbeat(ctx)()
	start := time.Now()
	rc, err := h.contexts.read(ctx, h.Store, in.Run)
	if err != nil {
		return MeasureResult{}, err
	}
	task, err := rc.task(in.Rollout)
	if err != nil {
		return MeasureResult{}, err
	}
	if task.suite == nil {
		return MeasureResult{}, fmt.Errorf("measure without a suite: %w", store.ErrInvalid)
	}
	rows, err := h.episodes(ctx, task, in.Turns)
	if err != nil {
		return MeasureResult{}, err
	}
	if len(rows) != task.rows() {
		return MeasureResult{}, fmt.Errorf("%d trajectories, suite %s has %d: %w", len(rows), task.suite.Name, task.rows(), store.ErrInvalid)
	}
	metrics := evaluationMetrics(task, rows)
	lines, err := rc.reference(task)
	if err != nil {
		return MeasureResult{}, err
	}
	lines.add(metrics)
	place := dir(in.Run, in.Branch, in.Rollout)
	table, err := store.PutTable(ctx, h.Store, place, "trajectories", rows)
	if err != nil {
		return MeasureResult{}, err
	}
	b, err := canon.Marshal(EvaluationResult{
		Format: evaluationFormat, Suite: *task.suite, State: in.State, ComputeDtype: rc.train.Policy.ComputeDtype,
		Fingerprint: in.Fingerprint, Metrics: metrics, Trajectories: table.Content,
	})
	if err != nil {
		return MeasureResult{}, fmt.Errorf("encode the result of suite %s: %w", task.suite.Name, err)
	}
	result, err := store.PutArtifact(ctx, h.Store, place, "result", "json", b)
	if err != nil {
		return MeasureResult{}, err
	}
	return MeasureResult{
		Evaluation: store.EvaluationRef{
			Version: in.Version, Suite: task.suite.Name, State: in.State,
			Turns: in.Turns, Trajectories: &table, Result: &result, Metrics: metrics,
		},
		Telemetry: Telemetry{Seconds: time.Since(start).Seconds()},
	}, nil
}

// evaluationMetrics are an evaluation's figures: success with its 95 % Wilson
// interval (clustered by instance where one has several samples), pass@k, and
// what the episodes were like. The entropy is that of the sampling distribution,
// estimated by the mean of −log p over the sampled tokens.
func evaluationMetrics(s *task, rows []TrajectoryRow) Metrics {
	m := Metrics{"trajectories": canon.Float(float64(len(rows)))}
	all, byLabel := s.tallies(rows)
	all.of(m)
	all.actions(m, "")
	samples := slices.Repeat([]int{s.members}, len(all.solved))
	low, high := statistics.WilsonClustered(all.solved, samples, statistics.Z95)
	m["success/low"], m["success/high"] = canon.Float(low), canon.Float(high)
	for n := 1; n <= s.members && s.members > 1; n *= 2 {
		m[fmt.Sprintf("pass@%d", n)] = canon.Float(all.passAt(n, s.members))
	}
	if s.members > 1 {
		m[fmt.Sprintf("pass@%d", s.members)] = canon.Float(all.passAt(s.members, s.members))
	}
	var surprise []float64
	for _, r := range rows {
		for _, l := range r.RolloutLogProbs {
			surprise = append(surprise, -float64(l))
		}
	}
	m["entropy/mean"] = canon.Float(mean(surprise))
	if len(s.parts) > 1 {
		for label, t := range byLabel {
			m[label+"/success"] = canon.Float(share(t.success, t.rows))
			m[label+"/reward"] = canon.Float(mean(t.rewards))
			t.actions(m, label+"/")
		}
	}
	return m
}

// passAt is the mean over the instances of the unbiased estimate of pass@n.
func (t *tally) passAt(n, members int) float64 {
	values := make([]float64, len(t.solved))
	for i, solved := range t.solved {
		values[i] = statistics.PassAtK(members, solved, n)
	}
	return mean(values)
}

// references are the lines to compare suites' figures with, by the suites' digests:
// they depend on the suite alone, and runs share them.
type references struct {
	mu   sync.Mutex
	made recent[reference]
}

// maxReferences is how many are remembered: six numbers each.
const maxReferences = 1024

// reference is the mean over a suite's instances of what a random player and the
// best play reach; the best are only there where all environments know it.
type reference struct {
	randomSuccess, randomReward float64
	bestSuccess, bestReward     float64
	hasBest, hasBestReward      bool
}

// randomSamples are the episodes of the random player on each instance.
const randomSamples = 16

// reference gives a suite's lines.
func (rc *runContext) reference(s *task) (reference, error) {
	digest, err := digestOf(s.suite)
	if err != nil {
		return reference{}, err
	}
	rc.references.mu.Lock()
	rc.references.made.most = maxReferences
	out, ok := rc.references.made.get(digest)
	rc.references.mu.Unlock()
	if ok {
		return out, nil
	}
	out = rc.refer(s) // two at once compute the same
	rc.references.mu.Lock()
	rc.references.made.put(digest, out)
	rc.references.mu.Unlock()
	return out, nil
}

// refer computes a suite's lines.
func (rc *runContext) refer(s *task) reference {
	groups := make([][]int, len(s.parts)) // by part
	for g, of := range s.order {
		groups[of] = append(groups[of], g)
	}
	out := reference{hasBest: true, hasBestReward: true}
	for i, p := range s.parts {
		if len(groups[i]) == 0 {
			continue
		}
		instances := make([]draw.Address, len(groups[i]))
		for n, g := range groups[i] {
			instances[n] = rc.address(s, 0, Rollout{}, g, 0).instance
		}
		chance := func(n, sample int) draw.Address { return rc.address(s, 0, Rollout{}, groups[i][n], sample).chance }
		r := envs.Refer(p.Environment, instances, chance, randomSamples, s.turns)
		// Products are converted, so that no processor fuses them with the sums.
		weight := float64(len(groups[i])) / float64(s.groups)
		out.randomSuccess += float64(weight * r.RandomSuccess)
		out.randomReward += float64(weight * r.RandomReward)
		out.bestSuccess += float64(weight * r.BestSuccess)
		out.bestReward += float64(weight * r.BestReward)
		out.hasBest = out.hasBest && r.HasBest
		out.hasBestReward = out.hasBestReward && r.HasBestReward
	}
	return out
}

// add puts the lines beside the figures.
func (r reference) add(m Metrics) {
	m["reference/random_success"] = canon.Float(r.randomSuccess)
	m["reference/random_reward"] = canon.Float(r.randomReward)
	if r.hasBest {
		m["reference/best_success"] = canon.Float(r.bestSuccess)
	}
	if r.hasBestReward {
		m["reference/best_reward"] = canon.Float(r.bestReward)
	}
}
