package host

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// rollouts are rollouts of each kind: with branches, searches and further rounds.
var rollouts = map[string]string{
	"plain":     `{}`,
	"luck":      `{"environment": {"name": "test-stepping", "options": {"luck": true}}}`,
	"window":    `{"rollout": {"context_turns": 1}}`,
	"rounds":    `{"rollout": {"groups": 3, "group_size": 2, "turns": 2}, "selection": {"resample": 4}}`,
	"online":    `{"freshness": {"online": 3}}`,
	"trees":     `{"rollout": {"group_size": 10, "search": "tree", "trees": 2, "branches": 2, "expansions": 2}}`,
	"luckytree": `{"environment": {"name": "test-stepping", "options": {"luck": true}}, "rollout": {"group_size": 6, "search": "tree", "trees": 2, "branches": 2, "expansions": 1}}`,
	"shared":    `{"environment": {"name": "test-stepping", "options": {"luck": true}}, "rollout": {"group_size": 6, "search": "tree", "trees": 2, "branches": 2, "expansions": 1, "outcomes": "shared"}}`,
	"treerounds": `{"rollout": {"groups": 3, "group_size": 3, "turns": 2, "search": "tree", "trees": 1, "branches": 1, "expansions": 2},
		"selection": {"resample": 3, "drop_flat": true}}`,
	"pivots":    `{"credit": {"algorithm": "deep_grpo"}, "rollout": {"groups": 3, "group_size": 6, "search": "pivots", "trees": 2, "branches": 2}}`,
	"entropy":   `{"rollout": {"group_size": 5, "search": "entropy", "trees": 3}}`,
	"beam":      `{"rollout": {"group_size": 4, "search": "beam", "beam": 2, "candidates": 2}}`,
	"greedy":    `{"rollout": {"group_size": 2, "search": "greedy", "candidates": 3}}`,
	"best":      `{"rollout": {"group_size": 2, "search": "best_of_n", "candidates": 3}}`,
	"lookahead": `{"rollout": {"group_size": 2, "search": "lookahead", "candidates": 2, "depth": 2}}`,
	"beamrounds": `{"rollout": {"groups": 3, "group_size": 2, "turns": 2, "search": "beam", "beam": 1, "candidates": 2},
		"selection": {"resample": 3}}`,
}

// counting is a document with a stop by sampled tokens.
func counting(document string) string {
	return strings.TrimSuffix(strings.TrimSpace(document), "}") + map[bool]string{true: "", false: ", "}[document == `{}`] + `"stop": {"sampled_tokens": 1000000}}`
}

// Whatever branches, searches and rounds a rollout has: each sampled token is counted once, the rows of all rounds are
// there in their order, and the figures are those of the stored rows.
func TestSelectKeepsTheBooks(t *testing.T) {
	for name, edits := range rollouts {
		t.Run(name, func(t *testing.T) {
			p := begin(t, counting(edits))
			if strings.HasSuffix(name, "rounds") { // one group of the first round varies
				p.say = func(what activities.Rollout, turn int, row episode.GenerateRow) string {
					if what.Round == 0 && row.Group > 0 {
						return "Left</answer>"
					}
					return wander(what, turn, row)
				}
			}
			in, out := p.selected(1, activities.SelectInput{})
			rows := p.rows(out)
			task := p.task(in.Rollout)
			rounds := in.Rollout.Round + 1
			require.Len(t, rows, rounds*task.Rows())
			if strings.HasSuffix(name, "rounds") {
				require.Greater(t, rounds, 1, "the test is of several rounds")
			}
			require.EqualValues(t, p.sampled, out.Metrics[activities.SampledTokens])
			var branches []episode.BranchRow
			if out.Tables.Ref(activities.BranchesTable) != nil {
				branches = read[episode.BranchRow](p, *out.Tables.Ref(activities.BranchesTable))
			}
			tokens, inherited, turns, selected, played, reward := 0, 0, 0, 0, 0, 0.0
			for i, r := range rows {
				require.EqualValues(t, []int{i, i / task.Members, i % task.Members}, []int{int(r.Row), int(r.Group), int(r.Member)})
				tokens += r.Sampled()
				if r.Selected {
					selected++
				}
				if r.Turns() == 0 {
					require.Equal(t, "pivots", name, "branches that nobody needed")
					continue
				}
				played++
				reward += r.Reward()
			}
			for _, b := range branches {
				if b.Inherited {
					inherited += int(rows[b.Row].SampledLengths[b.Turn])
					turns++
				}
			}
			require.Equal(t, out.Rows, selected)
			searched, ok := out.Metrics["rollout/searched_tokens"]
			require.Equal(t, p.Plan.Search != "" && task.Trees.Branches == 0, ok)
			require.EqualValues(t, p.sampled, float64(tokens-inherited)+float64(searched))
			if task.Trees.Branches > 0 {
				require.EqualValues(t, []int{inherited, turns}, []int{int(out.Metrics["rollout/inherited_tokens"]), int(out.Metrics["rollout/inherited_turns"])})
				require.Positive(t, inherited, "the test is of branches")
			}
			if name != "pivots" { // whose figures are those of the trajectories from the root
				require.EqualValues(t, played, out.Metrics["rollout/trajectories"])
				require.InDelta(t, reward/float64(played), float64(out.Metrics["reward/mean"]), 1e-12)
			}
			if rounds > 1 {
				require.EqualValues(t, rounds, out.Metrics["rollout/rounds"])
			}
			// Each row's rewards are those of its own group's instance, in its round: they name the group.
			for _, r := range rows {
				for k := range r.Turns() {
					if luck := strings.Contains(edits, "luck"); !luck && r.Effective[k] == 1 && r.Executed[k] == 1 {
						require.Equal(t, float64(r.Group)/16, r.Rewards[k]-math.Floor(r.Rewards[k]), "row %d of group %d", r.Row, r.Group)
					}
				}
			}
			for range 3 {
				again, err := p.h.Select(t.Context(), in)
				require.NoError(t, err)
				again.Telemetry, out.Telemetry = activities.Telemetry{}, activities.Telemetry{}
				require.Equal(t, out, again)
			}
		})
	}
}

// With fresh outcomes a branch meets its own luck from where it begins, and before it its parent's; with shared ones
// that of its tree's first leaf, all along.
func TestLuckOfBranches(t *testing.T) {
	for _, name := range []string{"luck", "luckytree", "shared"} {
		p := begin(t, rollouts[name])
		p.say = func(activities.Rollout, int, episode.GenerateRow) string { return "Left</answer>" } // one action without effect
		in, out := p.selected(0, activities.SelectInput{})
		slots := map[[2]int32]int32{}
		if out.Tables.Ref(activities.BranchesTable) != nil {
			for _, b := range read[episode.BranchRow](p, *out.Tables.Ref(activities.BranchesTable)) {
				slots[[2]int32{b.Row, b.Turn}] = b.Slot
			}
		}
		task := p.task(in.Rollout)
		shared := 0
		for _, r := range p.rows(out) {
			require.Equal(t, 3, r.Turns())
			for k := range r.Turns() {
				member := int(r.Member)
				switch name {
				case "luckytree":
					member = int(slots[[2]int32{r.Row, int32(k)}]) % task.Members
				case "shared":
					member = task.Trees.Tree(member)
				}
				require.Equal(t, float64(member)/256, r.Rewards[k], "%s: row %d, turn %d", name, r.Row, k+1)
				if member != int(r.Member) {
					shared++
				}
			}
		}
		require.Equal(t, name != "luck", shared > 0)
	}
}

// A selection has the same tables and figures every time, where returns are equal and texts are equally frequent.
func TestSelectIsTheSame(t *testing.T) {
	p := begin(t, `{"environment": {"name": "frozenlake", "options": {"size": 2, "slippery": false}}, "rollout": {"group_size": 4, "turns": 2, "max_new_tokens": 40, "think": true},
		"rewards": [{"name": "state"}, {"name": "length"}, {"name": "progress"}], "diagnostics": {"thoughts": true}, "selection": {"method": "top_fraction", "keep": 0.5}}`)
	p.say = func(_ activities.Rollout, turn int, row episode.GenerateRow) string {
		texts := []string{"goal below right", "goal above left", "hole same right", "goal same left", "hole below left"}
		said := texts[(int(row.Row)+turn)%5]
		return "<observation>" + said + "</observation><prediction>" + texts[(int(row.Row)+2*turn)%5] + "</prediction></think><answer>Right</answer>"
	}
	in, out := p.selected(0, activities.SelectInput{})
	texts := out.Tables.Ref(activities.TextsTable)
	require.NotNil(t, texts)
	require.Len(t, read[run.TextRow](p, *texts), 6)
	out.Telemetry = activities.Telemetry{}
	want, err := canon.Marshal(out)
	require.NoError(t, err)
	for range repeats {
		again, err := p.h.Select(t.Context(), in)
		require.NoError(t, err)
		again.Telemetry = activities.Telemetry{}
		b, err := canon.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(want), string(b))
	}
	// The next iteration reads them, and another table gives other rewards.
	in.Tables = out.Tables.OfNext()
	next, err := p.h.Select(t.Context(), in)
	require.NoError(t, err)
	require.NotEqual(t, out.Tables.Ref(activities.ComponentsTable), next.Tables.Ref(activities.ComponentsTable))
	require.Less(t, float64(next.Metrics["reward/state/mean"]), float64(out.Metrics["reward/state/mean"]))
}

// A rollout that several iterations learn from is selected part by part, and says how many rows each has.
func TestSelectByParts(t *testing.T) {
	p := begin(t, `{"freshness": {"online": 2}, "rollout": {"groups": 4, "group_size": 2, "turns": 2}, "selection": {"method": "top_count", "count": 2, "metric": "length"}}`)
	p.say = func(what activities.Rollout, _ int, row episode.GenerateRow) string {
		if what.Round == 1 { // longer than all of the first round
			return "Left || Right</answer>" + strings.Repeat(" and", 2+int(row.Group))
		}
		return "Left</answer>" + strings.Repeat(" and", 3-int(row.Group))
	}
	_, out := p.selected(0, activities.SelectInput{})
	groups := map[int32]int{}
	for _, r := range p.rows(out) {
		if r.Selected {
			groups[r.Group]++
			require.Equal(t, 1.0, r.Weight)
		}
	}
	require.Equal(t, map[int32]int{0: 2, 1: 2, 6: 2, 7: 2}, groups, "two of each round")
	require.Equal(t, []int{4, 4}, out.Parts)
	require.Equal(t, 8, out.Rows)
	shared := out.Shared(0, 0)
	require.Equal(t, &store.RolloutRef{Updates: 2, Rows: []int{4, 4}}, shared)
}

// For a selection by exact entropies, all rows are trajectories first, and are ranked by their scores then.
func TestSelectByExactEntropies(t *testing.T) {
	p := begin(t, `{"selection": {"method": "top_count", "count": 1, "metric": "exact_entropy", "loss_scale": "linear"}, "rollout": {"groups": 3, "group_size": 2, "turns": 2}}`)
	in := activities.SelectInput{Run: p.Run, Settings: p.Plan.Settings, Turns: p.round(activities.Rollout{}), Everything: true}
	all, err := p.h.Select(t.Context(), in)
	require.NoError(t, err)
	rows := p.rows(all)
	require.Equal(t, 6, all.Rows)
	require.Empty(t, all.Metrics)
	var scores []episode.ScoreRow
	for _, r := range rows {
		require.True(t, r.Selected)
		require.Equal(t, 1.0, r.Weight)
		s := episode.ScoreRow{Row: r.Row}
		for range r.Sampled() {
			s.LogProbs, s.Entropies = append(s.LogProbs, -1), append(s.Entropies, []float32{1, 3, 2}[r.Group])
		}
		scores = append(scores, s)
	}
	ref := putTable(p, scores)
	in.Everything, in.Scores = false, &ref
	out, err := p.h.Select(t.Context(), in)
	require.NoError(t, err)
	for _, r := range p.rows(out) {
		require.Equal(t, r.Group == 1, r.Selected)
		require.InDelta(t, 1.0/3, r.Weight, 1e-15)
	}
	short := putTable(p, scores[:5])
	in.Scores = &short
	_, err = p.h.Select(t.Context(), in)
	require.ErrorIs(t, err, store.ErrInvalid)
}

// Members that the update does not learn from are left out of kept groups.
func TestSelectMembers(t *testing.T) {
	p := begin(t, `{"selection": {"members": 2}, "rollout": {"groups": 4, "group_size": 3, "turns": 1}}`)
	p.say = func(_ activities.Rollout, _ int, row episode.GenerateRow) string {
		return "Left</answer>" + strings.Repeat(" and", (int(row.Member)+int(row.Group))%3) // the longest is another one in each group
	}
	_, out := p.selected(0, activities.SelectInput{})
	require.Equal(t, 8, out.Rows)
	for _, r := range p.rows(out) {
		require.Equal(t, (r.Member+r.Group)%3 < 2, r.Selected, "row %d", r.Row)
	}
}

// Select computes the advantages too, if it is asked to: those that Credit gives.
func TestSelectCredits(t *testing.T) {
	for name, edits := range map[string]string{"plain": `{}`, "parts": `{"freshness": {"online": 2}}`, "nothing": `{"selection": {"drop_flat": true}}`} {
		p := begin(t, edits)
		if name == "nothing" {
			p.say = func(activities.Rollout, int, episode.GenerateRow) string { return "Left</answer>" }
		}
		in, out := p.selected(0, activities.SelectInput{})
		require.Nil(t, out.Credited)
		ref := putTable(p, p.scores(p.rows(out), 0))
		in.Credit = &activities.CreditInput{Run: p.Run, Settings: in.Settings, Scores: &ref}
		got, err := p.h.Select(t.Context(), in)
		require.NoError(t, err)
		if name == "nothing" {
			require.Zero(t, out.Rows)
			require.Nil(t, got.Credited)
			continue
		}
		want, err := p.h.Credit(t.Context(), in.Credit.Of(out, out.Shared(0, 0)))
		require.NoError(t, err)
		require.Equal(t, want.Batch, got.Credited.Batch)
		require.Equal(t, want.Metrics, got.Credited.Metrics)
	}
}

// A rollout without a turn, or with other rows than it has, is refused.
func TestSelectRefuses(t *testing.T) {
	p := begin(t, `{}`)
	in := activities.SelectInput{Run: p.Run, Settings: p.Plan.Settings}
	_, err := p.h.Select(t.Context(), in)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "at least a turn")
	in.Turns = p.round(activities.Rollout{})
	generate, step := read[episode.GenerateRow](p, in.Turns[0].Generate), read[episode.StepRow](p, in.Turns[0].Step)
	in.Turns = []store.TurnRefs{{Generate: putTable(p, generate[:4]), Step: putTable(p, step[:4])}}
	_, err = p.h.Select(t.Context(), in)
	require.ErrorContains(t, err, "4 trajectories, want 2 groups of 4")
	in.Rollout.Evaluation = &activities.EvaluationOf{Suite: "nothing"}
	_, err = p.h.Select(t.Context(), in)
	require.ErrorContains(t, err, `suite "nothing" is not in the spec`)
}
