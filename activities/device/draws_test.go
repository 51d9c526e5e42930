package device

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
)

// The tests of this file say which address each draw of a row comes from. Two runs of
// the same code agree also where both draw from a wrong address, so the addresses are
// written out here, once more and by hand.

// drawnRollout is a rollout of the tests, with the addresses that its rows have.
type drawnRollout struct {
	name   string
	branch int
	of     activities.Rollout
	seed   uint64
	inside draw.Purpose // empty for training
	first  int          // the group that the index begins with
	at     draw.Address // branch and iteration alone
}

// drawnRollouts are the rollouts of a run with seed 1 and groups of so many.
func drawnRollouts(k *run.Context, groups int) []drawnRollout {
	suite := &activities.EvaluationOf{Suite: "in-distribution"}
	seed := k.Suites[0].Suite.Seed
	return []drawnRollout{
		{name: "first iteration", seed: 1},
		{name: "a later iteration", of: activities.Rollout{Iteration: 2}, seed: 1, at: draw.Address{Iteration: 2}},
		{name: "a second round", of: activities.Rollout{Round: 1}, seed: 1, first: groups},
		{name: "another branch", branch: 1, of: activities.Rollout{Iteration: 2, Round: 2}, seed: 1, first: 2 * groups, at: draw.Address{Branch: 1, Iteration: 2}},
		{name: "a suite", of: activities.Rollout{Evaluation: suite}, seed: seed, inside: draw.Evaluation},
		{name: "a suite of a later version", branch: 3, of: activities.Rollout{Iteration: 7, Evaluation: suite}, seed: seed, inside: draw.Evaluation},
	}
}

// address is the stream of a row for a purpose, of turn 0 if that does not apply.
func (d drawnRollout) address(p draw.Purpose, group, member, turn int) draw.Address {
	a := d.at
	a.Seed, a.Purpose = d.seed, p
	if d.inside != "" {
		a.Purpose = d.inside + "/" + p
	}
	a.Group, a.Member, a.Turn = int64(d.first+group), int64(member), int64(turn)
	return a
}

// drifting are the edits of a run of drift, with a suite of two samples.
func drifting(edits ...string) []string {
	return append([]string{
		`environment.name="` + driftName + `"`, "rollout.turns=3", "rollout.groups=2", "rollout.group_size=3",
		"evaluation.instances=2", `evaluation.suites=[{"suite":"in-distribution","samples":2}]`,
	}, edits...)
}

// windowed are the edits after which each turn's context is built from the start: all
// turns, and the suite's, then run on programs of one width.
var windowed = []string{"rollout.context_turns=1", `evaluation.suites=[{"suite":"in-distribution","samples":2,"context_turns":1}]`}

// The first numbers of some rows' streams are pinned: a change here changes the bits
// of every run.
func TestDrawsArePinned(t *testing.T) {
	w := newWalked(t, drifting()...)
	k := w.kit
	type row struct {
		branch        int
		of            activities.Rollout
		group, member int
	}
	suite := &activities.EvaluationOf{Suite: "in-distribution"}
	for _, c := range []struct {
		row
		instance, chance int        // below 1000
		sample           [3]float32 // the first uniform of turns 1 to 3
	}{
		{row{}, 188, 77, [3]float32{0.43925458, 0.67944294, 0.023214817}},
		{row{group: 1, member: 2}, 400, 474, [3]float32{0.749795, 0.81110424, 0.9928005}},
		{row{branch: 1, of: activities.Rollout{Iteration: 2, Round: 1}, group: 1, member: 2}, 448, 95, [3]float32{0.34001768, 0.8058469, 0.80085135}},
		{row{of: activities.Rollout{Evaluation: suite}, group: 1, member: 1}, 414, 392, [3]float32{0.5160962, 0.95334244, 0.73023427}},
		{row{branch: 3, of: activities.Rollout{Iteration: 7, Evaluation: suite}, group: 1, member: 1}, 414, 392, [3]float32{0.5160962, 0.95334244, 0.73023427}},
	} {
		scene, err := k.Task(c.of)
		require.NoError(t, err)
		a := k.Address(scene, c.branch, c.of, c.group, c.member)
		require.Equal(t, c.instance, a.Instance.Below(1000), "instance of %+v", c.row)
		require.Equal(t, c.chance, a.Chance.Below(1000), "chance of %+v", c.row)
		for turn := range c.sample {
			a.Sample.Turn = int64(turn + 1)
			u := make([]float32, 1)
			a.Sample.Uniforms(u)
			require.Equal(t, c.sample[turn], u[0], "turn %d of %+v", turn+1, c.row)
		}
	}
}

// Every address of a row has its rollout, group and member, and no two rows share a
// chance or a sample.
func TestRowAddresses(t *testing.T) {
	w := newWalked(t, drifting()...)
	for _, d := range drawnRollouts(w.kit, 2) {
		scene, err := w.kit.Task(d.of)
		require.NoError(t, err)
		for g := range scene.Groups {
			for m := range scene.Members {
				got := w.kit.Address(scene, d.branch, d.of, g, m)
				require.Equal(t, d.address(draw.Instance, g, 0, 0), got.Instance, "%s, row %d.%d", d.name, g, m)
				require.Equal(t, d.address(draw.Chance, g, m, 0), got.Chance, "%s, row %d.%d", d.name, g, m)
				require.Equal(t, d.address(draw.Sample, g, m, 0), got.Sample, "%s, row %d.%d", d.name, g, m)
			}
		}
	}
}

// same plays a rollout in which all rows say the same in every turn, and gives the
// tables of its turns.
func (w *walked) same(d drawnRollout, text string) []episode.Turn {
	w.t.Helper()
	ctx := w.t.Context()
	scene, err := w.kit.Task(d.of)
	require.NoError(w.t, err)
	var refs []store.TurnRefs
	for n := 1; n <= scene.Turns; n++ {
		rows, _, _, err := contexts(ctx, w.kit, w.store, scene, activities.GenerateInput{Policy: activities.Version{Run: w.Run, Branch: d.branch}, Rollout: d.of, Turn: n, Turns: refs})
		require.NoError(w.t, err)
		for i := range rows {
			rows[i].SampledIDs, rows[i].Truncated = w.says(text)
			rows[i].RolloutLogProbs = make([]float32, len(rows[i].SampledIDs))
			rows[i].RolloutEntropies = make([]float32, len(rows[i].SampledIDs))
		}
		table, err := tables.Put(ctx, w.store, "runs/walk", fmt.Sprintf("generate-%d", n), rows)
		require.NoError(w.t, err)
		got, err := w.Host.Step(ctx, activities.StepInput{Run: w.Run, Branch: d.branch, Rollout: d.of, Turn: n, Turns: refs, Generate: table})
		require.NoError(w.t, err)
		refs = append(refs, store.TurnRefs{Round: d.of.Round, Generate: table, Step: got.Table})
	}
	return mustTurns(w.t, w, refs...)
}

// Each member of a group begins in the group's instance and meets its own chance, in
// every turn, also where the context is a window that is played again.
func TestStepPlaysEachMembersChance(t *testing.T) {
	for name, edits := range map[string][]string{"whole contexts": nil, "windows": windowed} {
		w := newWalked(t, drifting(edits...)...)
		for _, d := range drawnRollouts(w.kit, 2) {
			turns := w.same(d, "Right</answer>")
			require.Len(t, turns, 3)
			members := len(turns[0].Step) / 2
			keys := map[string]bool{}
			for i := range turns[0].Step {
				g, m := i/members, i%members
				where := fmt.Sprintf("%s, %s, row %d.%d", name, d.name, g, m)
				episode := drift{}.Reset(d.address(draw.Instance, g, 0, 0), d.address(draw.Chance, g, m, 0))
				require.Contains(t, w.tok.Decode(turns[0].Generate[i].PromptIDs), episode.Observation(), where)
				for n, turn := range turns {
					got := turn.Step[i]
					require.Equal(t, []int32{int32(i), int32(g), int32(m)}, []int32{got.Row, got.Group, got.Member})
					require.Equal(t, episode.StateKey(), got.StateBefore, "%s, before turn %d", where, n+1)
					require.Equal(t, []string{"Right"}, got.Actions, where)
					require.Equal(t, episode.Step("Right").Reward, got.Reward, "%s, turn %d", where, n+1)
					require.Equal(t, episode.StateKey(), got.StateKey, "%s, after turn %d", where, n+1)
					require.Equal(t, episode.Observation(), got.Observation, where)
					if n+1 < len(turns) {
						require.Contains(t, w.tok.Decode(got.NextIDs), episode.Observation(), "%s, turn %d", where, n+1)
					}
				}
				require.False(t, keys[episode.StateKey()], "%s: no two rows have the same episode", where)
				keys[episode.StateKey()] = true
			}
		}
	}
}

// Generate samples each turn of each row by the uniforms of its own address.
func TestGenerateDrawsByTurn(t *testing.T) {
	t.Parallel()
	r := begun(t, "drawn", tinySpec(t, drifting(append([]string{"rollout.turns=2", "rollout.group_size=2", "rollout.max_new_tokens=6", "iterations=1"}, windowed...)...)...))
	ctx := t.Context()
	k, err := r.Device.contexts.Read(ctx, r.store, r.Run)
	require.NoError(t, err)
	for _, d := range drawnRollouts(k, 2) {
		scene, err := k.Task(d.of)
		require.NoError(t, err)
		temperature := r.Settings.Rollout.Temperature
		if scene.Suite != nil {
			temperature = scene.Suite.Temperature
		}
		policy := r.version()
		policy.Branch = d.branch
		var refs []store.TurnRefs
		said := map[string]bool{}
		for n := 1; n <= scene.Turns; n++ {
			in := activities.GenerateInput{Policy: policy, Rollout: d.of, Settings: r.Settings, Turn: n, Turns: refs}
			rows, contexts, _, err := contexts(ctx, k, r.store, scene, in)
			require.NoError(t, err)
			want := model.GenerateInput{Prompts: contexts, Temperature: float32(temperature), Stop: k.Tokenizer.EndOfTurn()}
			for _, row := range rows {
				u := make([]float32, scene.MaxNewTokens)
				d.address(draw.Sample, int(row.Group), int(row.Member), n).Uniforms(u)
				want.Uniforms, want.Alive = append(want.Uniforms, u), append(want.Alive, row.Alive)
			}
			got, err := r.Device.Generate(ctx, in)
			require.NoError(t, err)
			table, err := tables.Get[episode.GenerateRow](ctx, r.store, got.Table)
			require.NoError(t, err)
			p, err := r.Device.Engine.programsFor(k, r.Run, k.Shapes(scene, n))
			require.NoError(t, err)
			sampled, err := p.Sampler.Generate(ctx, r.Device.Engine.state, want)
			require.NoError(t, err)
			for i, row := range table {
				where := fmt.Sprintf("%s, turn %d, row %d.%d", d.name, n, row.Group, row.Member)
				require.True(t, row.Alive, where)
				require.Equal(t, sampled.Tokens[i], row.SampledIDs, where)
				require.Equal(t, sampled.LogProbs[i], row.RolloutLogProbs, where)
				require.False(t, said[fmt.Sprint(row.SampledIDs)], "%s: other uniforms give other samples", where)
				said[fmt.Sprint(row.SampledIDs)] = true
			}
			stepped, err := r.Host.Step(ctx, activities.StepInput{Run: r.Run, Branch: d.branch, Rollout: d.of, Turn: n, Turns: refs, Generate: got.Table})
			require.NoError(t, err)
			refs = append(refs, store.TurnRefs{Round: d.of.Round, Generate: got.Table, Step: stepped.Table})
		}
	}
}

// The lines that a suite's figures are compared with are played on the suite's own
// instances, each sample with its own chance.
func TestReferenceLinesDrawByAddress(t *testing.T) {
	w := newWalked(t, drifting()...)
	suite := w.kit.Suites[0]
	d := drawnRollout{seed: suite.Suite.Seed, inside: draw.Evaluation}
	instances := []draw.Address{d.address(draw.Instance, 0, 0, 0), d.address(draw.Instance, 1, 0, 0)}
	want := envs.Refer(drift{}, instances, func(n, sample int) draw.Address { return d.address(draw.Chance, n, sample, 0) }, run.RandomSamples, suite.Turns)
	require.NotZero(t, want.RandomReward)
	require.Equal(t, want.RandomReward, run.Refer(w.kit, suite).RandomReward)
}
