package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/rewards"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// ComponentRow is what a module of the spec's rewards gave to a turn of a trajectory, in the
// order of rows, turns and modules.
type ComponentRow struct {
	Row  int32 `parquet:"row"`
	Turn int32 `parquet:"turn"` // from 0
	// Component is the module's name, Weight the spec's. Where the algorithm of credit reads criteria, those of
	// a module follow it as MODULE/CRITERION, 1 or 0, with the weight 0: they are not paid.
	Component string  `parquet:"component"`
	Weight    float64 `parquet:"weight"`
	Value     float64 `parquet:"value"` // without the weight
}

// TextRow is a text that was frequent in an iteration: what the rewards of the next one read
// of this one.
type TextRow struct {
	Component string `parquet:"component"`
	Tag       string `parquet:"tag"`
	Text      string `parquet:"text"`
	Count     int64  `parquet:"count"`
}

// Rewarded are a rollout's rewards in parts.
type Rewarded struct {
	Components []ComponentRow
	// Texts are nil if no module reads them.
	Texts   []TextRow
	Metrics activities.Metrics
}

// newModules makes the modules of a spec's rewards.
func newModules(t spec.Train) ([]rewards.Module, error) {
	var out []rewards.Module
	for _, r := range t.Rewards {
		m, problems, err := rewards.New(r.Name, r.Options)
		if err == nil && len(problems) > 0 {
			err = problems
		}
		if err != nil {
			return nil, fmt.Errorf("reward %s: %w", r.Name, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// Reward scores a rollout with the modules of the spec, puts the weighted sums into the
// rows, and measures thoughts if the spec asks for that. past are the texts of the iteration
// before, verdicts those of the judge that a module reads. It returns nothing for a spec that asks
// for neither.
func Reward(rc *Context, settings spec.Settings, task *Task, branch int, rollout activities.Rollout, rows []episode.TrajectoryRow,
	past []TextRow, verdicts Verdicts) (Rewarded, error) {
	out := Rewarded{Metrics: activities.Metrics{}}
	if len(rc.Modules) == 0 && !rc.Train.Diagnostics.Thoughts {
		return out, nil
	}
	groups := played(task, rows)
	var episodes []rewards.Episode // of the rows that are not dropped
	for _, group := range groups {
		for _, r := range group {
			e, err := episodeOf(rc, task, branch, rollout, r)
			if err != nil {
				return out, fmt.Errorf("row %d: %w", r.Row, err)
			}
			if judge := rc.Judge(); judge != nil {
				if e.Judged, err = verdicts.of(r.Row, judge, r.Turns()); err != nil {
					return out, err
				}
			}
			episodes = append(episodes, e)
		}
	}
	values := make([][][]float64, len(rc.Modules)) // [modules][episodes][turns]
	for m, module := range rc.Modules {
		frequent := rewards.Past{}
		for _, t := range past {
			if t.Component == module.Name {
				frequent[rewards.Said{Tag: t.Tag, Text: t.Text}] = true
			}
		}
		from := 0
		for _, group := range groups {
			values[m] = append(values[m], module.Score(episodes[from:from+len(group)], frequent)...)
			from += len(group)
		}
		if module.Frequent > 0 {
			out.Texts = append(append([]TextRow{}, out.Texts...), frequentTexts(module, episodes)...)
		}
		if module.Figures != nil {
			for name, v := range module.Figures(episodes) {
				out.Metrics[name] = canon.Float(v)
			}
		}
		var sums []float64
		for _, row := range values[m] {
			sums = append(sums, sumOf(row))
		}
		out.Metrics["reward/"+module.Name+"/mean"] = canon.Float(Mean(sums))
	}
	for i, r := range slices.Concat(groups...) {
		held := heldBy(rc, episodes[i])
		for k := range r.Turns() {
			for m, module := range rc.Modules {
				out.Components = append(out.Components, ComponentRow{
					Row: r.Row, Turn: int32(k), Component: module.Name, Weight: settings.Weight(rc.Train.Rewards[m]), Value: values[m][i][k],
				})
				if held == nil || held[m] == nil {
					continue
				}
				for c, holds := range held[m][k] {
					row := ComponentRow{Row: r.Row, Turn: int32(k), Component: module.Name + ofModule + module.Criteria.Names[c]}
					if holds {
						row.Value = 1
					}
					out.Components = append(out.Components, row)
				}
			}
		}
	}
	if err := AddComponents(rows, out.Components); err != nil {
		return out, err
	}
	if len(rc.Modules) > 0 {
		var returns []float64
		for _, r := range episode.Live(rows) {
			returns = append(returns, r.Return())
		}
		out.Metrics["reward/weighted_mean"] = canon.Float(Mean(returns))
	}
	if rc.Train.Diagnostics.Thoughts {
		for name, v := range rewards.Measure(episodes) {
			out.Metrics[name] = canon.Float(v)
		}
	}
	return out, nil
}

// ofModule stands between a module's name and its criterion's.
const ofModule = "/"

// heldBy are the criteria that hold in an episode, [modules][turns][criteria]; nil if the credit reads none.
func heldBy(rc *Context, e rewards.Episode) [][][]bool {
	if !rc.Train.Credit.ReadsCriteria() {
		return nil
	}
	held := make([][][]bool, len(rc.Modules))
	for m, module := range rc.Modules {
		if module.Criteria != nil {
			held[m] = module.Criteria.Holds(e)
		}
	}
	return held
}

func sumOf(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum
}

// AddComponents puts the weighted sums of components, and each one's sum over the turns, into the
// rows they belong to.
func AddComponents(rows []episode.TrajectoryRow, components []ComponentRow) error {
	at := 0
	for i := range rows {
		r := &rows[i]
		r.Added, r.Parts, r.Criteria = make([]float64, r.Turns()), nil, nil
		for at < len(components) && components[at].Row == r.Row {
			c := components[at]
			if c.Turn < 0 || int(c.Turn) >= len(r.Added) {
				return fmt.Errorf("component %s of row %d is of turn %d, and the row has %d: %w", c.Component, c.Row, c.Turn+1, len(r.Added), store.ErrInvalid)
			}
			if strings.Contains(c.Component, ofModule) {
				if r.Criteria == nil {
					r.Criteria = make([][]float64, r.Turns())
				}
				r.Criteria[c.Turn] = append(r.Criteria[c.Turn], c.Value)
				at++
				continue
			}
			r.Added[c.Turn] += float64(c.Weight * c.Value) // rounded, so that no machine fuses it
			part := slices.IndexFunc(r.Parts, func(p episode.Part) bool { return p.Name == c.Component })
			if part < 0 {
				part = len(r.Parts)
				r.Parts = append(r.Parts, episode.Part{Name: c.Component, Weight: c.Weight})
			}
			r.Parts[part].Sum += c.Value
			at++
		}
	}
	if at < len(components) {
		return fmt.Errorf("component %s of row %d: no such row: %w", components[at].Component, components[at].Row, store.ErrInvalid)
	}
	return nil
}

// ReadTrajectories reads trajectories with the components that belong to them; nil is none.
func ReadTrajectories(ctx context.Context, s store.Store, trajectories store.Ref, components *store.Ref) ([]episode.TrajectoryRow, error) {
	rows, err := tables.Get[episode.TrajectoryRow](ctx, s, trajectories)
	if err != nil {
		return nil, fmt.Errorf("trajectories: %w", err)
	}
	if components == nil {
		return rows, nil
	}
	parts, err := SideTable[ComponentRow](ctx, s, components, activities.ComponentsTable.Name)
	if err != nil {
		return nil, err
	}
	return rows, AddComponents(rows, parts)
}

// episodeOf replays a trajectory for the modules.
func episodeOf(rc *Context, task *Task, branch int, rollout activities.Rollout, r episode.TrajectoryRow) (rewards.Episode, error) {
	group := int(r.Group)
	a := rc.Address(task, branch, rollout, group, int(r.Member)) // groups of later rounds have their own
	env := task.Env(group % task.Groups)
	out := rewards.Episode{Environment: env.Name(), Success: r.Success}
	actions := executed(r)
	var states []rewards.State
	_, _, err := envs.ReplayEach(env, a.Instance, a.Chance, actions, func(e envs.Episode) { states = append(states, rewards.StateOf(e)) })
	if err != nil {
		return out, fmt.Errorf("%w: %w", err, store.ErrInvalid)
	}
	for k := range actions {
		_, sampled := r.Turn(k)
		reply, _ := task.Protocol.ReadReply(rc.Tokenizer, env, sampled)
		out.Turns = append(out.Turns, rewards.Turn{
			Reply: reply, Executed: int(r.Executed[k]), Effective: int(r.Effective[k]), Invalid: int(r.Invalid[k]),
			Reward: r.Rewards[k], Tokens: len(sampled), Thought: task.Protocol.ThoughtTokens(rc.Tokenizer, sampled),
			Before: states[k], After: states[k+1],
		})
		if tooled, ok := env.(envs.Tooled); ok {
			t := &out.Turns[k]
			for _, action := range actions[k] {
				if tool, valid := tooled.Call(action); tool != "" {
					t.Calls++
					if valid {
						t.ValidCalls++
					}
				}
			}
		}
	}
	return out, nil
}

// frequentTexts are the texts that a module calls frequent: by their counts, then by the
// text, so that ties have an order.
func frequentTexts(m rewards.Module, episodes []rewards.Episode) []TextRow {
	counts := map[rewards.Said]int64{}
	for _, e := range episodes {
		for _, t := range e.Turns {
			for _, said := range rewards.Tagged(t.Reply.Thought) {
				counts[said]++
			}
		}
	}
	var all []TextRow
	for said, n := range counts {
		all = append(all, TextRow{Component: m.Name, Tag: said.Tag, Text: said.Text, Count: n})
	}
	slices.SortFunc(all, func(a, b TextRow) int {
		return cmp.Or(cmp.Compare(a.Tag, b.Tag), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text))
	})
	var out []TextRow
	kept := map[string]int{}
	for _, t := range all {
		if kept[t.Tag]++; kept[t.Tag] <= m.Frequent {
			out = append(out, t)
		}
	}
	return out
}
