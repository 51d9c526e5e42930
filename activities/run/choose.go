package run

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/selection"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Choice is the result of a selection.
type Choice struct {
	More    bool      // another round is wanted
	Kept    []bool    // [groups]
	Weights []float64 // [groups], the factor of each one's advantages
}

// Choose applies the selection to each part of the rollout that an iteration learns
// from.
func Choose(rc *Context, s spec.Selection, rows []episode.TrajectoryRow, task *Task) (Choice, error) {
	groups, members := len(rows)/task.Members, task.Members
	if s.Resample > 1 {
		return resampled(s, rows, task)
	}
	var out Choice
	for from := 0; from < groups; from += task.Groups {
		kept, weights, err := SelectedGroups(s, rows[from*members:(from+task.Groups)*members], task.Groups, members)
		if err != nil {
			return out, err
		}
		out.Kept, out.Weights = append(out.Kept, kept...), append(out.Weights, weights...)
	}
	return out, nil
}

// resampled requests rounds until as many groups vary as a rollout has, or the largest
// number of rounds is made. It then applies the selection to the first groups that vary
// (DAPO, arXiv 2503.14476, §3.2; there the batch is filled with prompts whose accuracy is
// neither 0 nor 1).
func resampled(s spec.Selection, rows []episode.TrajectoryRow, task *Task) (Choice, error) {
	groups, members := len(rows)/task.Members, task.Members
	var returns [][]float64
	var of []int // the groups that have rows
	for g, group := range groupsOf(rows, members) {
		if len(group) == 0 {
			continue
		}
		var own []float64
		for _, r := range group {
			own = append(own, r.Return())
		}
		of, returns = append(of, g), append(returns, own)
	}
	spreads, err := selection.RewardStd(returns)
	if err != nil {
		return Choice{}, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	varied := selection.Varied(spreads, s.Floor)
	for i, at := range varied {
		varied[i] = of[at]
	}
	if len(varied) < task.Groups && groups/task.Groups < s.Resample {
		return Choice{More: true}, nil
	}
	varied = varied[:min(len(varied), task.Groups)]
	out := Choice{Kept: make([]bool, groups), Weights: make([]float64, groups)}
	if len(varied) == 0 {
		return out, nil
	}
	var taken []episode.TrajectoryRow
	for _, g := range varied {
		taken = append(taken, rows[g*members:(g+1)*members]...)
	}
	kept, weights, err := SelectedGroups(s, taken, len(varied), members)
	if err != nil {
		return Choice{}, err
	}
	for i, g := range varied {
		out.Kept[g], out.Weights[g] = kept[i], weights[i]
	}
	return out, nil
}

// KeptMembers marks the rows of the members of each group that the update learns from, [rows]; nil
// is all of them.
func KeptMembers(s spec.Selection, rows []episode.TrajectoryRow, members int) ([]bool, error) {
	if s.Members == 0 {
		return nil, nil
	}
	var g selection.Groups
	all := groupsOf(rows, members)
	for _, group := range all {
		var returns, lengths []float64
		for _, r := range group {
			returns, lengths = append(returns, r.Return()), append(lengths, float64(r.Sampled()))
		}
		g.Rewards, g.Lengths = append(g.Rewards, returns), append(g.Lengths, lengths)
	}
	picked, err := selection.Members(g, s.MembersBy(), s.Members)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	kept := make([]bool, len(rows))
	for group, of := range picked {
		at := make([]int, 0, members) // the places of the group's rows
		for i := range members {
			if !rows[group*members+i].Dropped {
				at = append(at, group*members+i)
			}
		}
		for _, member := range of {
			kept[at[member]] = true
		}
	}
	return kept, nil
}

// PartSizes counts the selected rows for each iteration that learns from the rollout;
// nil if there is one.
func PartSizes(rc *Context, rows []episode.TrajectoryRow, count int, task *Task) []int {
	f := rc.Train.Freshness
	if f.Updates() == 1 {
		return nil
	}
	out := make([]int, f.Updates())
	for i := range out {
		if f.Online == 1 { // the same for all
			out[i] = count
		}
	}
	for _, r := range rows {
		if r.Selected && f.Online > 1 {
			out[int(r.Group)/task.Groups]++
		}
	}
	return out
}

// SelectedGroups applies the selection to the penalised, never normalised,
// returns: which groups are kept, and the factor of each one's advantages. Groups without a row
// are as if they had never been.
func SelectedGroups(s spec.Selection, rows []episode.TrajectoryRow, groups, members int) (kept []bool, weights []float64, err error) {
	g := selection.Groups{}
	var of []int // the groups that have rows
	for at, group := range groupsOf(rows[:groups*members], members) {
		if len(group) == 0 {
			continue
		}
		of = append(of, at)
		var returns, entropies, exact, lengths []float64
		var broken []bool
		for _, r := range group {
			broken = append(broken, r.Truncated)
			returns = append(returns, r.Return())
			surprise := 0.0
			for _, l := range r.RolloutLogProbs {
				surprise -= float64(l)
			}
			entropies = append(entropies, surprise/float64(max(len(r.RolloutLogProbs), 1)))
			lengths = append(lengths, float64(r.Sampled()))
			exact = append(exact, r.Entropy)
		}
		g.Rewards, g.Entropies, g.Lengths = append(g.Rewards, returns), append(g.Entropies, entropies), append(g.Lengths, lengths)
		g.Exact = append(g.Exact, exact)
		g.Broken = append(g.Broken, broken)
	}
	o := selection.Options{
		Method: s.Method, Metric: s.Metric, Order: selection.Order(s.Order),
		Value: s.Value(), Slack: s.Slack, DropFlat: s.DropFlat, DropBroken: s.DropTruncated, Floor: s.Floor,
	}
	result, err := selection.Select(g, o)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	kept = make([]bool, groups)
	for _, at := range result.Kept {
		kept[of[at]] = true
	}
	factors := slices.Repeat([]float64{1}, len(of))
	if s.Reweight {
		factors = selection.Reweight(result.Spreads)
	}
	scale, err := selection.LossScale(selection.Scaling(s.LossScale), len(result.Kept), len(of))
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	weights = make([]float64, groups)
	for i, factor := range factors {
		weights[of[i]] = factor * scale
	}
	return kept, weights, nil
}

// AddEntropies puts the exact entropies of scores into the rows, which are all scored.
func AddEntropies(rows []episode.TrajectoryRow, scores []episode.ScoreRow) error {
	if len(scores) != len(rows) {
		return fmt.Errorf("%d scores for %d rows: %w", len(scores), len(rows), store.ErrInvalid)
	}
	for i, s := range scores {
		if s.Row != rows[i].Row || len(s.Entropies) != rows[i].Sampled() {
			return fmt.Errorf("scores of row %d do not fit its trajectory: %w", rows[i].Row, store.ErrInvalid)
		}
		sum := 0.0
		for _, e := range s.Entropies {
			sum += float64(e)
		}
		rows[i].Entropy = sum / float64(max(len(s.Entropies), 1))
	}
	return nil
}

// ScoresOf are the scores of the rows, of a table that may have more.
func ScoresOf(rows []episode.TrajectoryRow, scores []episode.ScoreRow) []episode.ScoreRow {
	if len(scores) <= len(rows) {
		return scores
	}
	at := map[int32]int{}
	for i, s := range scores {
		at[s.Row] = i
	}
	var out []episode.ScoreRow
	for _, r := range rows {
		if i, ok := at[r.Row]; ok {
			out = append(out, scores[i])
		}
	}
	return out
}
