package run

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/diversity"
	"github.com/reprise-rl/reprise/model/statistics"
)

// Metrics carry the names verl and RAGEN give them, so that curves can be laid
// side by side. All are computed in row order, so that the same rows give the
// same bits.

// Mean is the mean of xs, 0 if there are none.
func Mean(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	var sum float64
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

func share(yes, all int) float64 {
	if all == 0 {
		return 0
	}
	return float64(yes) / float64(all)
}

// tally adds up what episodes did.
type tally struct {
	rows, success, valid, truncated int
	turns, acted                    int
	executed, effective, invalid    int
	rewards, returns, lengths       []float64
	solved, sizes                   []int // successes and rows of each group, in order
	counters                        []string
	counts                          []int // of the environment's own counters
	tools                           []string
	calls                           []int // of each tool
	validCalls                      int
}

func (t *tally) add(r episode.TrajectoryRow, firstOfGroup bool) {
	t.rows++
	if firstOfGroup || t.solved == nil {
		t.solved, t.sizes = append(t.solved, 0), append(t.sizes, 0)
	}
	t.sizes[len(t.sizes)-1]++
	if r.Success {
		t.success++
		t.solved[len(t.solved)-1]++
	}
	if r.Valid {
		t.valid++
	}
	if r.Truncated {
		t.truncated++
	}
	t.turns += r.Turns()
	for _, n := range r.Executed {
		if n > 0 {
			t.acted++
		}
	}
	t.executed += episode.Total(r.Executed)
	t.effective += episode.Total(r.Effective)
	t.invalid += episode.Total(r.Invalid)
	t.rewards = append(t.rewards, r.Reward())
	t.returns = append(t.returns, r.Penalised())
	t.lengths = append(t.lengths, float64(r.Sampled()))
}

// count adds an episode's own figures and its calls of tools, if its environment has any.
func (t *tally) count(env envs.Environment, r episode.TrajectoryRow) {
	var actions []string
	for k := range r.Actions {
		actions = append(actions, r.Executes(k)...)
	}
	if tooled, ok := env.(envs.Tooled); ok {
		t.countCalls(tooled, actions)
	}
	c, ok := env.(envs.Counting)
	if !ok {
		return
	}
	if t.counters == nil {
		t.counters = c.Counters()
		t.counts = make([]int, len(t.counters))
	}
	for i, n := range c.Count(actions, r.StateKeys[:r.Turns()]) {
		t.counts[i] += n
	}
}

func (t *tally) countCalls(env envs.Tooled, actions []string) {
	if t.tools == nil {
		t.tools = env.Tools()
		t.calls = make([]int, len(t.tools))
	}
	for _, action := range actions {
		tool, valid := env.Call(action)
		if i := slices.Index(t.tools, tool); i >= 0 {
			t.calls[i]++
			if valid {
				t.validCalls++
			}
		}
	}
}

// passed is the share of groups with at least one success.
func (t *tally) passed() float64 {
	n := 0
	for _, s := range t.solved {
		if s > 0 {
			n++
		}
	}
	return share(n, len(t.solved))
}

// of adds the figures that a rollout and an evaluation have in common.
func (t *tally) of(m activities.Metrics) {
	m["reward/mean"] = canon.Float(Mean(t.rewards))
	m["reward/penalised_mean"] = canon.Float(Mean(t.returns))
	m["success/mean"] = canon.Float(share(t.success, t.rows))
	m["valid/mean"] = canon.Float(share(t.valid, t.rows))
	m["truncated/mean"] = canon.Float(share(t.truncated, t.rows))
	m["response_length/mean"] = canon.Float(Mean(t.lengths))
	m["turns/mean"] = canon.Float(share(t.turns, t.rows))
}

// actions adds RAGEN's figures of one environment: actions an episode, the share of
// executed actions that changed the state, and the share of written actions that were
// legal. The environment's own figures and the calls of its tools follow, as means an episode,
// and the share of the calls that were valid, if there were any.
func (t *tally) actions(m activities.Metrics, prefix string) {
	m[prefix+"num_actions"] = canon.Float(share(t.executed, t.rows))
	m[prefix+"action_is_effective"] = canon.Float(share(t.effective, t.executed))
	m[prefix+"action_is_valid"] = canon.Float(share(t.executed, t.executed+t.invalid))
	for i, name := range t.counters {
		m[prefix+name] = canon.Float(share(t.counts[i], t.rows))
	}
	calls := 0
	for i, name := range t.tools {
		calls += t.calls[i]
		m[prefix+name+"_calls"] = canon.Float(share(t.calls[i], t.rows))
	}
	if calls > 0 {
		m[prefix+"call_is_valid"] = canon.Float(share(t.validCalls, calls))
	}
}

// tallies adds the rows of groups up, all of them and by the label of their environment.
func tallies(s *Task, groups [][]episode.TrajectoryRow) (all tally, byLabel map[string]*tally) {
	byLabel = map[string]*tally{}
	for _, group := range groups {
		for i, r := range group {
			all.add(r, i == 0)
			if byLabel[r.Environment] == nil {
				byLabel[r.Environment] = &tally{}
			}
			byLabel[r.Environment].add(r, i == 0)
			for _, part := range s.Parts {
				if part.Label == r.Environment {
					byLabel[r.Environment].count(part.Environment, r)
				}
			}
		}
	}
	if len(s.Parts) == 1 && len(byLabel) == 1 {
		only := byLabel[s.Parts[0].Label]
		all.counters, all.counts = only.counters, only.counts
		all.tools, all.calls, all.validCalls = only.tools, only.calls, only.validCalls
	}
	return all, byLabel
}

// sampled are the sampled ids of each member of each group.
func sampledLengths(of [][]episode.TrajectoryRow) [][][]int32 {
	groups := make([][][]int32, len(of))
	for g, rows := range of {
		for _, r := range rows {
			var ids []int32
			at := 0
			for k := range r.PromptLengths {
				at += int(r.PromptLengths[k])
				ids = append(ids, r.IDs[at:at+int(r.SampledLengths[k])]...)
				at += int(r.SampledLengths[k])
			}
			groups[g] = append(groups[g], ids)
		}
	}
	return groups
}

// played are the groups of rows of which a row is left.
func played(s *Task, rows []episode.TrajectoryRow) [][]episode.TrajectoryRow {
	return slices.DeleteFunc(groupsOf(rows, s.Members), func(group []episode.TrajectoryRow) bool { return len(group) == 0 })
}

// RolloutMetrics describe all trajectories of a rollout, and the selected ones.
// Those of each environment are RAGEN's train/TAG figures.
func RolloutMetrics(s *Task, rows []episode.TrajectoryRow) activities.Metrics {
	var spreads, chosen []float64
	selected, at := 0, 0
	groups := played(s, rows)
	all, byLabel := tallies(s, groups)
	for _, group := range groups {
		before := selected
		for _, r := range group {
			if r.Selected {
				selected++
			}
		}
		_, spread := credit.MeanStd(all.returns[at : at+len(group)])
		at += len(group)
		spreads = append(spreads, spread)
		if selected > before {
			chosen = append(chosen, spread)
		}
	}
	m := activities.Metrics{
		"rollout/in_group_reward_std":        canon.Float(Mean(spreads)),
		"rollout/chosen_in_group_reward_std": canon.Float(Mean(chosen)),
		"rollout/selected_rows":              canon.Float(float64(selected)),
		"rollout/trajectories":               canon.Float(float64(all.rows)),
		"rollout/executable_turns":           canon.Float(share(all.acted, all.turns)),
	}
	all.of(m)
	said := diversity.Measure(sampledLengths(groups))
	for n, distinct := range said.Distinct {
		m[fmt.Sprintf("rollout/distinct_%d", n+1)] = canon.Float(distinct)
	}
	m["rollout/in_group_similarity"] = canon.Float(said.Similarity)
	for label, t := range byLabel {
		prefix := "train/" + label + "/"
		m[prefix+"success"] = canon.Float(share(t.success, t.rows))
		m[prefix+"reward"] = canon.Float(Mean(t.rewards))
		m[fmt.Sprintf("%spass@%d", prefix, s.Members)] = canon.Float(t.passed())
		t.actions(m, prefix)
	}
	return m
}

// EntropyMetrics are the policy's entropy on the selected rows.
func EntropyMetrics(scores []episode.ScoreRow) activities.Metrics {
	var entropies []float64
	for _, s := range scores {
		for _, e := range s.Entropies {
			entropies = append(entropies, float64(e))
		}
	}
	return activities.Metrics{"actor/entropy": canon.Float(Mean(entropies))}
}

// EvaluationMetrics are an evaluation's figures: success with its 95 % Wilson interval
// (clustered by instance if there are several samples of one), pass@k, and figures of the
// episodes. The entropy of the sampling distribution is estimated by the mean of −log p
// over the sampled tokens.
func EvaluationMetrics(s *Task, rows []episode.TrajectoryRow) activities.Metrics {
	all, byLabel := tallies(s, played(s, rows))
	m := activities.Metrics{"trajectories": canon.Float(float64(all.rows))}
	all.of(m)
	all.actions(m, "")
	low, high := statistics.WilsonClustered(all.solved, all.sizes, statistics.Z95)
	m["success/low"], m["success/high"] = canon.Float(low), canon.Float(high)
	for n := 1; n <= s.Members && s.Members > 1; n *= 2 {
		m[fmt.Sprintf("pass@%d", n)] = canon.Float(all.passAt(n))
	}
	if s.Members > 1 {
		m[fmt.Sprintf("pass@%d", s.Members)] = canon.Float(all.passAt(s.Members))
	}
	var surprise []float64
	for _, r := range rows {
		for _, l := range r.RolloutLogProbs {
			surprise = append(surprise, -float64(l))
		}
	}
	m["entropy/mean"] = canon.Float(Mean(surprise))
	if len(s.Parts) > 1 {
		for label, t := range byLabel {
			m[label+"/success"] = canon.Float(share(t.success, t.rows))
			m[label+"/reward"] = canon.Float(Mean(t.rewards))
			t.actions(m, label+"/")
		}
	}
	return m
}

// passAt is the mean over the instances of the unbiased estimate of pass@n. Instances with fewer
// samples are left out.
func (t *tally) passAt(n int) float64 {
	var values []float64
	for i, solved := range t.solved {
		if t.sizes[i] >= n {
			values = append(values, statistics.PassAtK(t.sizes[i], solved, n))
		}
	}
	return Mean(values)
}

// InheritedMetrics are the turns that trajectories share with others before them, and the tokens
// of those: they were sampled once.
func InheritedMetrics(m activities.Metrics, rows []episode.TrajectoryRow, branches []episode.BranchRow) {
	turns, tokens := 0, 0
	for _, b := range branches {
		if b.Inherited {
			turns++
			tokens += int(rows[b.Row].SampledLengths[b.Turn])
		}
	}
	m["rollout/inherited_turns"], m["rollout/inherited_tokens"] = canon.Float(turns), canon.Float(tokens)
}

// SearchedMetrics are the turns and tokens that were searched and not kept.
func SearchedMetrics(m activities.Metrics, s episode.Searched) {
	m["rollout/searched_turns"], m["rollout/searched_tokens"] = canon.Float(s.Turns), canon.Float(s.Tokens)
}
