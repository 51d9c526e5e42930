// Package episode holds what a rollout leaves: the rows of its tables, the turns that they make up, where a
// search or a tree continued rows, and the stretches of a trajectory that an update reads. It knows no run, no
// spec and no policy.
package episode

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
)

// The rows of a run's tables. A table is Parquet (DuckDB and pandas read it);
// rows are in the order of their index, which a trajectory keeps for its whole
// life: row = group × group size + member.

// GenerateRow is a trajectory's part in a turn's generate table.
type GenerateRow struct {
	Row    int32 `parquet:"row"`
	Group  int32 `parquet:"group"`
	Member int32 `parquet:"member"`
	// Alive is false for an episode that had ended before: the row is padding.
	Alive bool `parquet:"alive"`
	// PromptIDs are the ids that this turn adds to the context before sampling:
	// the whole prompt at turn 1, the environment's answer afterwards.
	PromptIDs []int32 `parquet:"prompt_ids,list"`
	// Restart says that PromptIDs are the whole context: ids recorded before are in it
	// only if PromptIDs repeat them. Turn 1 restarts always, and each turn after the
	// window of rollout.context_turns.
	Restart bool `parquet:"restart"`
	// SampledIDs are the sampled ids, with the end-of-turn id, or the whole token that completes
	// a text of rollout.stop_at.
	SampledIDs []int32 `parquet:"sampled_ids,list"`
	// RolloutLogProbs are the sampler's log-probs of SampledIDs, RolloutEntropies the entropies, in
	// nats, of what they were sampled from; without policy.exact there are none of the latter.
	RolloutLogProbs  []float32 `parquet:"rollout_log_probs,list"`
	RolloutEntropies []float32 `parquet:"rollout_entropies,list"`
	// Truncated says that the length limit cut the turn.
	Truncated bool `parquet:"truncated"`
}

// StepRow is a trajectory's part in a turn's step table.
type StepRow struct {
	Row    int32 `parquet:"row"`
	Group  int32 `parquet:"group"`
	Member int32 `parquet:"member"`
	Alive  bool  `parquet:"alive"`
	// Text is the sampled text as it was parsed, for people.
	Text string `parquet:"text"`
	// Actions are the executed actions in order, in canonical form.
	Actions []string `parquet:"actions,list"`
	// Reward is the sum of the environment's rewards in the turn; Penalty the
	// protocol's, kept apart.
	Reward  float64 `parquet:"reward"`
	Penalty float64 `parquet:"penalty"`
	// Valid: the turn had an executable action and its answer was closed.
	Valid bool `parquet:"valid"`
	// Effective and Invalid count the executed actions that changed the state, and the
	// written actions that were not legal.
	Effective int32 `parquet:"effective"`
	Invalid   int32 `parquet:"invalid"`
	Success   bool  `parquet:"success"`
	Done      bool  `parquet:"done"` // the episode is over after this turn
	// StateBefore and StateKey name the states before and after the turn.
	StateBefore string `parquet:"state_before"`
	StateKey    string `parquet:"state_key"`
	// Observation is the state's text after the turn, for people.
	Observation string `parquet:"observation"`
	// NextIDs are the ids the environment adds before the next turn's sample;
	// empty if the episode is over. With NextRestart they are the whole context.
	NextIDs     []int32 `parquet:"next_ids,list"`
	NextRestart bool    `parquet:"next_restart"`
	// ContextFull says that the next context would have passed its width: the
	// episode ends here, truncated.
	ContextFull bool `parquet:"context_full"`
}

// TrajectoryRow is a member's whole episode.
type TrajectoryRow struct {
	Row    int32 `parquet:"row"`
	Group  int32 `parquet:"group"`
	Member int32 `parquet:"member"`
	// Environment is the label of what the group plays.
	Environment string `parquet:"environment"`
	// IDs are the recorded ids of all prompts and samples in order. They are the
	// truth (law 5): text is never encoded again.
	IDs []int32 `parquet:"ids,list"`
	// PromptLengths and SampledLengths cut IDs into turns: turn k's prompt ids,
	// then its sampled ids.
	PromptLengths  []int32 `parquet:"prompt_lengths,list"`
	SampledLengths []int32 `parquet:"sampled_lengths,list"`
	// Restarts say which turns' prompts are the whole context: there a row of the update
	// begins. The first always is.
	Restarts []bool `parquet:"restarts,list"`
	// StateKeys name the state at each turn's beginning, and after the last.
	StateKeys []string `parquet:"state_keys,list"`
	// RolloutLogProbs and RolloutEntropies are the sampler's of all sampled ids, in order.
	RolloutLogProbs  []float32 `parquet:"rollout_log_probs,list"`
	RolloutEntropies []float32 `parquet:"rollout_entropies,list"`
	// Rewards and Penalties are one a turn.
	Rewards   []float64 `parquet:"rewards,list"`
	Penalties []float64 `parquet:"penalties,list"`
	// Actions are the executed actions, one entry a turn, joined by " || "; see Executes.
	Actions []string `parquet:"actions,list"`
	// Executed, Effective and Invalid count the actions of each turn: executed,
	// of these effective, and written but not legal.
	Executed  []int32 `parquet:"executed,list"`
	Effective []int32 `parquet:"effective,list"`
	Invalid   []int32 `parquet:"invalid,list"`
	Success   bool    `parquet:"success"`
	Valid     bool    `parquet:"valid"` // every turn was
	// Truncated: a turn was cut by the length limit, or the episode by its context's.
	Truncated bool `parquet:"truncated"`
	// Selected says whether the update learns from this row. Weight is what its advantages
	// are multiplied by.
	Selected bool    `parquet:"selected"`
	Weight   float64 `parquet:"weight"`
	// Added are the weighted sums of the components of each turn, which have a table of
	// their own; nil without any. See AddComponents.
	Added []float64 `parquet:"-"`
	// Parts are the components over the whole row, in the order of the spec's rewards; nil
	// without any.
	Parts []Part `parquet:"-"`
	// Criteria are 1 where a criterion of the spec's rewards holds and 0 where not, [turns][criteria]; nil
	// unless the algorithm of credit reads them.
	Criteria [][]float64 `parquet:"-"`
	// Entropy is the mean over the sampled tokens, in nats, where Score was before the
	// selection.
	Entropy float64 `parquet:"-"`
	// Dropped says that the row is padding, because its foreign environment broke; see Drop.
	Dropped bool `parquet:"-"`
}

// Part is what a module of the spec's rewards gave to a whole trajectory.
type Part struct {
	Name   string
	Weight float64 // in the iteration
	Sum    float64 // over the turns, without the weight
}

// Executes are the actions that were executed in a turn, from 0.
func (r TrajectoryRow) Executes(k int) []string {
	if r.Actions[k] == "" {
		return nil
	}
	return strings.Split(r.Actions[k], Separator)
}

// Separator stands between the actions of a turn.
const Separator = " " + envs.Separator + " "

// TurnReward is what selection and credit read of a turn, from 0: the environment's reward,
// the penalty and the components.
func (r TrajectoryRow) TurnReward(k int) float64 {
	reward := r.Rewards[k] + r.Penalties[k]
	if r.Added != nil {
		reward += r.Added[k]
	}
	return reward
}

// Return is the undiscounted sum of what selection and credit read.
func (r TrajectoryRow) Return() float64 {
	var sum float64
	for k := range r.Rewards {
		sum += r.TurnReward(k)
	}
	return sum
}

// Penalised is the undiscounted sum of rewards and penalties, without components.
func (r TrajectoryRow) Penalised() float64 {
	r.Added = nil
	return r.Return()
}

// Reward is the undiscounted sum of the environment's rewards alone.
func (r TrajectoryRow) Reward() float64 {
	var sum float64
	for _, v := range r.Rewards {
		sum += v
	}
	return sum
}

// Turns is the number of turns that were played.
func (r TrajectoryRow) Turns() int { return len(r.PromptLengths) }

// Sampled is the number of its sampled tokens.
func (r TrajectoryRow) Sampled() int { return Total(r.SampledLengths) }

// Total is the sum of lengths.
func Total(xs []int32) int {
	sum := 0
	for _, x := range xs {
		sum += int(x)
	}
	return sum
}

// ScoreRow is a selected trajectory's part in the scores table.
type ScoreRow struct {
	Row int32 `parquet:"row"`
	// LogProbs and Entropies belong to the sampled ids, in order, at the rollout's
	// temperature; entropies in nats.
	LogProbs  []float32 `parquet:"log_probs,list"`
	Entropies []float32 `parquet:"entropies,list"`
	// RefLogProbs are the reference's log-probs of the same ids, Values the critic's
	// before each of them; none in a run without.
	RefLogProbs []float32 `parquet:"ref_log_probs,list"`
	Values      []float32 `parquet:"values,list"`
	// SumSquares are Σπ² of the distributions that the ids were sampled from, and TeacherLogProbs the teacher's log-probs of the
	// same ids; nil unless credit reads them. A table has them as SquaredScoreRow and TeacherScoreRow.
	SumSquares      []float32 `parquet:"-"`
	TeacherLogProbs []float32 `parquet:"-"`
	// Shown is the row whose play a teacher that is the policy was shown: another one of its group, or the row itself for a solver's
	// play of its task; −1 if there was nothing to show, and then TeacherLogProbs are LogProbs. It is the row itself where the
	// teacher is another model.
	Shown int32 `parquet:"-"`
}

// SquaredScoreRow is a ScoreRow in the scores table of a run whose credit reads sums of squares. The tables of other
// runs have no such column.
type SquaredScoreRow struct {
	ScoreRow
	SumSquares []float32 `parquet:"sum_squares,list"`
}

// TeacherScoreRow is the same for a run whose credit reads a teacher's log-probs.
type TeacherScoreRow struct {
	ScoreRow
	TeacherLogProbs []float32 `parquet:"teacher_log_probs,list"`
	Shown           int32     `parquet:"shown"`
}

// BySampler are the scores of rows as the sampler has given them.
func BySampler(rows []TrajectoryRow) ([]ScoreRow, error) {
	out := make([]ScoreRow, len(rows))
	for i, r := range rows {
		if n := r.Sampled(); len(r.RolloutLogProbs) != n || len(r.RolloutEntropies) != n {
			return nil, fmt.Errorf("row %d has %d log-probs and %d entropies of %d sampled tokens: %w",
				r.Row, len(r.RolloutLogProbs), len(r.RolloutEntropies), n, store.ErrInvalid)
		}
		out[i] = ScoreRow{Row: r.Row, LogProbs: r.RolloutLogProbs, Entropies: r.RolloutEntropies}
	}
	return out, nil
}

// PairRow is a reasoning under a prompt, in the table of a piece of Diagnose.
type PairRow struct {
	// Estimate, Reasoning and Prompt are places among the diagnosis's estimates, and
	// among the reasonings and prompts of the estimate.
	Estimate  int32 `parquet:"estimate"`
	Reasoning int32 `parquet:"reasoning"`
	Prompt    int32 `parquet:"prompt"`
	// LogProb is the sum of the log-probs of the reasoning's ids.
	LogProb float64 `parquet:"log_prob"`
}

// Turn gives the context of a turn, from 0, and what was sampled in it.
func (r TrajectoryRow) Turn(k int) (context, sampled []int32) {
	at, begin := 0, 0
	for i := range r.PromptLengths {
		if r.Restarts[i] {
			begin = at
		}
		prompt := at + int(r.PromptLengths[i])
		at = prompt + int(r.SampledLengths[i])
		if i == k {
			return r.IDs[begin:prompt], r.IDs[prompt:at]
		}
	}
	return nil, nil
}

// SelectedOf are the rows that were selected, in their order.
func SelectedOf(all []TrajectoryRow) []TrajectoryRow {
	var rows []TrajectoryRow
	for _, r := range all {
		if r.Selected {
			rows = append(rows, r)
		}
	}
	return rows
}

// Live are the rows that are not dropped.
func Live(rows []TrajectoryRow) []TrajectoryRow {
	var out []TrajectoryRow
	for _, r := range rows {
		if !r.Dropped {
			out = append(out, r)
		}
	}
	return out
}
