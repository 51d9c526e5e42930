package device

import (
	"math"
	"strings"
	"testing"

	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/methods/methodstest"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Every algorithm of credit learns from several turns, exactly: the first ratio is
// 1, and the same run twice has the same bits.
func TestAlgorithmsIterate(t *testing.T) {
	t.Parallel()
	for _, a := range methods.Algorithms {
		algorithm := a.Name
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			edits := []string{`environment.name="` + walkName + `"`, "rollout.turns=2", "rollout.group_size=4", "evaluation.every=0", `credit.algorithm="` + algorithm + `"`}
			if a.ReadsParts {
				edits = append(edits, `rewards=[{"name":"length"}]`)
			}
			if a.ReadsCriteria {
				edits = append(edits, `rewards=[{"name":"checklist","options":{"items":"valid 0.5, effective 0.25, success 0.25 if valid"}}]`)
			}
			if a.Search != "" {
				edits = append(edits, `rollout.search="`+a.Search+`"`, "rollout.trees=2", "rollout.branches=2", "rollout.group_size=6")
			}
			if a.BySubgoals {
				edits = append(edits, "rollout.think=true", "rollout.subgoals=true", "policy.starter.tokenizer=2")
			}
			if a.Alone != nil {
				edits = append(edits, `update.aggregation="turn_mean"`)
			}
			if a.ReadsTeacher {
				edits = append(edits, taughtBy("folder:"+teacherFolder(t, starter.First, 3)))
			}
			document := tinySpec(t, edits...)
			r := begun(t, algorithm, document)
			in := r.iterate(t)
			require.Zero(t, in.Metrics["actor/ratio_max"])
			require.False(t, in.Update.Skipped)
			again := begun(t, algorithm, document)
			again.iterate(t)
			require.Equal(t, r.head, again.head)
			if a.Alone != nil {
				require.Contains(t, in.Metrics, "critic/advantages/alone")
			}
			if a.ByRole {
				r.hasRoles(t, in)
			}
			if a.BySubgoals {
				for _, row := range r.batch(t, in) {
					turns := int(row.Turns[row.Length-1])
					require.Len(t, row.Learns(), 3*len(row.IDs))
					require.GreaterOrEqual(t, count(row.Learns()), 2*turns+1, "two values a turn, and a third where a segment begins")
					require.LessOrEqual(t, count(row.Learns()), 3*turns)
				}
			} else if a.Learns != nil {
				for _, row := range r.batch(t, in) {
					turns := row.Turns[row.Length-1]
					require.EqualValues(t, turns, count(row.Learns()), "one token a turn")
				}
			}
			if a.Learns != nil || a.ByRole {
				state := r.state
				r.forget(t)
				require.Equal(t, state, r.restore(t, activities.RestoreInput{}).State)
			}
		})
	}
}

// Score gives the sums of squares that the algorithm reads, in pieces the same, and the batch's advantages are what the algorithm
// makes of the stored table.
func TestSumsOfSquaresAreScored(t *testing.T) {
	t.Parallel()
	edits := []string{
		`environment.name="` + walkName + `"`, "rollout.turns=2", "rollout.group_size=4", "evaluation.every=0", `rewards=[{"name":"length"}]`,
		"policy.warm_start.steps=60", "policy.warm_start.rows=8", `credit.algorithm="optimal_token_baseline"`,
	}
	r := begun(t, "squares", tinySpec(t, edits...))
	in := r.iterate(t)
	scores, err := tables.Get[episode.SquaredScoreRow](t.Context(), r.store, *in.Scores)
	require.NoError(t, err)
	rows, err := run.ReadTrajectories(t.Context(), r.store, in.Trajectories, in.Tables.Ref(activities.ComponentsTable))
	require.NoError(t, err)
	l := run.NewCreditInput(rows)
	for i, row := range rows {
		s := scores[i]
		require.Equal(t, row.Row, s.Row)
		require.Len(t, s.SumSquares, row.Sampled())
		mask, old, squares, at := make([]bool, len(row.IDs)), make([]float64, len(row.IDs)), make([]float64, len(row.IDs)), 0
		for _, turn := range l.Turns[i] {
			for place := turn.From; place < turn.To; place++ {
				mask[place], old[place], squares[place] = true, float64(s.LogProbs[at]), float64(s.SumSquares[at])
				require.LessOrEqual(t, math.Exp(2*old[place]), squares[place]+1e-6, "of all ids, the one that was sampled too")
				require.LessOrEqual(t, squares[place], 1+1e-6)
				at++
			}
		}
		l.Mask, l.Old, l.SumSquares = append(l.Mask, mask), append(l.Old, old), append(l.SumSquares, squares)
	}
	l.Tokens, err = credit.TokenRewards(l.Rewards, l.Turns, l.Lengths, credit.AtTurns)
	require.NoError(t, err)
	want, _, err := methods.Compute(l.Input, credit.Options{Algorithm: "optimal_token_baseline"})
	require.NoError(t, err)
	differ := false
	for i, row := range r.batch(t, in) {
		got := row.Columns[batch.Advantages]
		for place, yes := range l.Mask[i] {
			if yes {
				require.Equal(t, float32(want[i][place]), got[place], "row %d, token %d", i, place)
				differ = differ || got[place] != got[l.Turns[i][0].From]
			}
		}
	}
	require.True(t, differ, "a baseline at each token")

	cut := begun(t, "squares", tinySpec(t, append(edits, "limits.score_rows=4")...))
	again := cut.iterate(t)
	require.Equal(t, in.Scores.Content, again.Scores.Content)
	require.Equal(t, in.Batch.Digest, again.Batch.Digest)
}

// hasRoles checks the table of who acted, and that advantages are normalised by role.
func (r *testRun) hasRoles(t *testing.T, in activities.CommitInput) {
	t.Helper()
	rows, err := run.ReadTrajectories(t.Context(), r.store, in.Trajectories, nil)
	require.NoError(t, err)
	agents, err := tables.Get[run.AgentRow](t.Context(), r.store, *in.Tables.Ref(activities.AgentsTable))
	require.NoError(t, err)
	m, err := store.ReadManifest(t.Context(), r.store, *r.head)
	require.NoError(t, err)
	require.Equal(t, in.Tables, activities.Tables(m.Artifacts))
	at, turns := 0, map[string]int{}
	for _, row := range rows {
		for k := range row.Turns() {
			role := walk{}.Role(row.StateKeys[k])
			require.Equal(t, run.AgentRow{Row: row.Row, Turn: int32(k), Agent: role}, agents[at])
			turns[role]++
			at++
		}
	}
	require.Len(t, agents, at)
	for role, n := range turns {
		require.InDelta(t, float64(n)/float64(len(rows)), float64(in.Metrics["agents/"+role+"/turns"]), 1e-12)
		require.Contains(t, in.Metrics, "agents/"+role+"/advantage_mean")
		require.Contains(t, in.Metrics, "agents/"+role+"/advantage_std")
	}
}

func count(flags []bool) (n int) {
	for _, yes := range flags {
		if yes {
			n++
		}
	}
	return n
}

// handPlayed is a group of two whose members part in the second turn, and a group
// in which nothing differs.
func handPlayed(t *testing.T, edits ...string) (*walked, []episode.TrajectoryRow) {
	w := newWalked(t, append([]string{"rollout.format_penalty=0"}, edits...)...)
	first, _, _, _ := w.turn(nil, "Right</answer>", "Right</answer>", "Left</answer>", "Left</answer>")
	second, _, _, _ := w.turn([]store.TurnRefs{first}, "Right</answer>", "Left</answer>", "Left</answer>", "Left</answer>")
	selected, err := w.Host.Select(t.Context(), activities.SelectInput{Run: w.Run, Settings: w.Plan.Settings, Turns: []store.TurnRefs{first, second}})
	require.NoError(t, err)
	rows, err := recorded.Selected(t.Context(), w.store, selected.Trajectories)
	require.NoError(t, err)
	return w, rows
}

// turnValues are the advantages of each turn, which all its tokens share.
func turnValues(t *testing.T, r episode.TrajectoryRow, tokens []float64) []float64 {
	t.Helper()
	var out []float64
	for _, n := range r.SampledLengths {
		for _, a := range tokens[:n] {
			require.Equal(t, tokens[0], a)
		}
		out = append(out, tokens[0])
		tokens = tokens[n:]
	}
	require.Empty(t, tokens)
	return out
}

// quiet are scores of nothing but zeros, with the values given.
func quiet(rows []episode.TrajectoryRow, value float32) []episode.ScoreRow {
	var out []episode.ScoreRow
	for _, r := range rows {
		zeros := make([]float32, r.Sampled())
		values := make([]float32, len(zeros))
		for i := range values {
			values[i] = value
		}
		out = append(out, episode.ScoreRow{Row: r.Row, LogProbs: zeros, Entropies: zeros, RefLogProbs: zeros, Values: values})
	}
	return out
}

func lessonOf(s spec.Settings, rows []episode.TrajectoryRow, scores []episode.ScoreRow, past ...credit.StateValue) (run.TrainingSignal, error) {
	l := run.NewCreditInput(rows)
	if err := l.Scored(rows, scores, true, s.Credit); err != nil {
		return run.TrainingSignal{}, err
	}
	return l.TrainingSignal(s, rows, past)
}

func advantagesOf(c spec.Credit, rows []episode.TrajectoryRow) ([][]float64, error) {
	l, err := lessonOf(spec.Settings{Credit: c}, rows, quiet(rows, 0))
	return l.Advantages, err
}

func TestLessonsOfACritic(t *testing.T) {
	methodstest.Needs(t, "gae", "turn_gae")
	_, rows := handPlayed(t)
	s := spec.Settings{Credit: spec.Credit{Algorithm: "gae", Gamma: 1, Lambda: 1}}
	l, err := lessonOf(s, rows, quiet(rows, 0.5))
	require.NoError(t, err)
	// Rewards 1 and 2: the first turn's tokens see 3, the second's 2.
	require.Equal(t, []float64{2.5, 1.5}, turnValues(t, rows[0], l.Advantages[0]))
	require.Equal(t, []float64{3, 2}, turnValues(t, rows[0], l.Returns[0]))
	require.Equal(t, canon.Float(2.5), l.Metrics["critic/advantages/max"])
	require.Equal(t, canon.Float(-0.5), l.Metrics["critic/advantages/min"])
	require.Contains(t, l.Metrics, "critic/vf_explained_var")
	s.Credit.RewardAt = "end"
	l, err = lessonOf(s, rows, quiet(rows, 0.5))
	require.NoError(t, err)
	require.Equal(t, []float64{3, 3}, turnValues(t, rows[0], l.Returns[0]), "all of it comes at the end")
	// On two levels the first turn's return is discounted once.
	s.Credit = spec.Credit{Algorithm: "turn_gae", Gamma: 1, Lambda: 1, TurnGamma: 0.5, TurnLambda: 1}
	l, err = lessonOf(s, rows, quiet(rows, 0))
	require.NoError(t, err)
	require.Equal(t, []float64{2, 2}, turnValues(t, rows[0], l.Returns[0]))
	require.Equal(t, []float64{1, 0}, turnValues(t, rows[1], l.Returns[1]))

	// A value that is not finite spoils all: the update is skipped, not the run.
	l, err = lessonOf(s, rows, quiet(rows, float32(math.NaN())))
	require.NoError(t, err)
	require.True(t, math.IsNaN(l.Advantages[3][0]))
	require.True(t, math.IsNaN(l.Returns[3][0]))
}

func TestDistanceInTheRewards(t *testing.T) {
	methodstest.Needs(t, "dr_grpo", "gigpo")
	_, rows := handPlayed(t)
	scores := quiet(rows, 0)
	n := len(scores[0].LogProbs)
	apart := make([]float32, n)
	apart[0] = -1 // the reference finds the first token e times less likely
	scores[0].RefLogProbs = apart
	s := spec.Settings{Credit: spec.Credit{Algorithm: "dr_grpo"}, Update: spec.Update{KLIn: spec.KLReward, KLEstimator: "k1", KLCoefficient: 0.5}}
	l, err := lessonOf(s, rows, scores)
	require.NoError(t, err)
	// Returns 2.5 and 1 about 1.75.
	require.Equal(t, []float64{0.75, 0.75}, turnValues(t, rows[0], l.Advantages[0]))
	require.InDelta(t, 1/float64(n)/4, float64(l.Metrics["actor/reward_kl_penalty"]), 1e-12, "of four rows one is apart, in one token")
	// All rewards at the end are for algorithms over tokens: GiGPO still sees turns.
	gigpo := s
	gigpo.Credit = spec.Credit{Algorithm: "gigpo", Gamma: 1, StepWeight: 1, RewardAt: "end"}
	gigpo.Update.KLCoefficient = 0
	at, err := lessonOf(gigpo, rows, scores)
	require.NoError(t, err)
	gigpo.Update.KLIn = spec.KLNone
	want, err := lessonOf(gigpo, rows, scores)
	require.NoError(t, err)
	require.Equal(t, want.Advantages, at.Advantages)

	s.Update.KLIn = spec.KLLoss // counted elsewhere
	l, err = lessonOf(s, rows, scores)
	require.NoError(t, err)
	require.Equal(t, []float64{1, 1}, turnValues(t, rows[0], l.Advantages[0]))
	scores[1].RefLogProbs = nil
	_, err = lessonOf(s, rows, scores)
	require.ErrorIs(t, err, store.ErrInvalid)
}

// The returns of initial states are kept from iteration to iteration, on the chain: of
// all trajectories, even if the update is skipped.
func TestStateBaselineKeepsValues(t *testing.T) {
	t.Parallel()
	r := begun(t, "baseline", tinySpec(t, `environment.name="`+walkName+`"`, "rollout.turns=2", "evaluation.every=0", "iterations=3",
		`credit={"algorithm":"state_baseline","baseline_rate":0}`, `selection={"method":"top_count","count":1}`))
	first := r.iterate(t)
	values := func(ref *store.Ref) []run.StateValueRow {
		require.NotNil(t, ref)
		rows, err := tables.Get[run.StateValueRow](t.Context(), r.store, *ref)
		require.NoError(t, err)
		return rows
	}
	count := func(rows []run.StateValueRow) (n int64) {
		for _, v := range rows {
			n += v.Count
		}
		return n
	}
	require.EqualValues(t, 6, count(values(first.Tables.Ref(activities.StatesTable))), "all six, selected or not")
	second := r.iterate(t)
	require.EqualValues(t, 12, count(values(second.Tables.Ref(activities.StatesTable))))
	m, err := store.ReadManifest(t.Context(), r.store, *r.head)
	require.NoError(t, err)
	require.Equal(t, second.Tables, activities.Tables(m.Artifacts))
	head, err := run.FindHead(t.Context(), r.Host.Store, r.Run.ID, nil)
	require.NoError(t, err)
	require.Equal(t, second.Tables, head.Tables)
	it := r.iteration()
	it.Settings.Selection = spec.Selection{Method: "all", Metric: "reward_std", Order: "largest", DropFlat: true, Floor: 100, LossScale: "none"}
	skipped, err := r.Iterate(t.Context(), it)
	require.NoError(t, err)
	require.True(t, skipped.Update.Skipped)
	require.Nil(t, skipped.Batch)
	require.EqualValues(t, 18, count(values(skipped.Tables.Ref(activities.StatesTable))), "what is not learnt from was seen all the same")
}

// Turns are compared with the group's turns of the same role: the second role has one turn, which
// keeps its return.
func TestAdvantagesByRole(t *testing.T) {
	methodstest.Needs(t, "dr_mas", "grpo")
	w, rows := handPlayed(t)
	rows = rows[:2]
	rows[1].StateKeys[1] = "at 0" // as if the step had failed
	c := spec.Credit{Algorithm: "dr_mas"}
	agents, err := run.AgentsOf(w.kit, c, rows)
	require.NoError(t, err)
	require.Equal(t, []run.AgentRow{
		{Row: 0, Turn: 0, Agent: "first"}, {Row: 0, Turn: 1, Agent: "second"},
		{Row: 1, Turn: 0, Agent: "first"}, {Row: 1, Turn: 1, Agent: "first"},
	}, agents)
	l := run.NewCreditInput(rows)
	l.ByAgents(rows, agents)
	require.NoError(t, l.Scored(rows, quiet(rows, 0), false, spec.Credit{}))
	out, err := l.TrainingSignal(spec.Settings{Credit: c}, rows, nil)
	require.NoError(t, err)
	first := (3.0 + 1 + 1) / 3
	require.InDeltaSlice(t, []float64{3 - first, 3}, turnValues(t, rows[0], out.Advantages[0]), 1e-12)
	require.InDeltaSlice(t, []float64{1 - first, 1 - first}, turnValues(t, rows[1], out.Advantages[1]), 1e-12)
	require.InDelta(t, 1.5, float64(out.Metrics["agents/first/turns"]), 0)
	require.InDelta(t, 0.5, float64(out.Metrics["agents/second/turns"]), 0)
	require.InDelta(t, 3, float64(out.Metrics["agents/second/advantage_mean"]), 0)
	// The group's mean is 2 and its variance 1; the first role's are 5/3 and 8/9, the second's 3 and 0.
	require.InDelta(t, 8.0/9+1.0/9, float64(out.Metrics["agents/first/amplification"]), 1e-12)
	require.InDelta(t, 1, float64(out.Metrics["agents/second/amplification"]), 1e-12)

	none, err := run.AgentsOf(w.kit, spec.Credit{Algorithm: "grpo"}, rows)
	require.NoError(t, err)
	require.Nil(t, none)
	rows[0].Environment = "bandit"
	_, err = run.AgentsOf(w.kit, c, rows)
	require.ErrorIs(t, err, store.ErrInvalid)
}

func TestAdvantagesOfTurns(t *testing.T) {
	methodstest.Needs(t, "dr_grpo", "gigpo", "leave_one_out")
	_, rows := handPlayed(t)
	require.Equal(t, []float64{1, 2}, rows[0].Rewards)
	require.Equal(t, []float64{1, 0}, rows[1].Rewards)
	require.Equal(t, []string{"at 0", "at 1", "at 2"}, rows[0].StateKeys)
	got, err := advantagesOf(spec.Credit{Algorithm: "dr_grpo"}, rows)
	require.NoError(t, err)
	require.Equal(t, []float64{1, 1}, turnValues(t, rows[0], got[0]))
	require.Equal(t, []float64{0, 0}, turnValues(t, rows[2], got[2]))

	// Both began in the same states: at 0 with returns 3 and 1 (γ = 1), at 1 with 2
	// and 0; each turn's anchor has both.
	got, err = advantagesOf(spec.Credit{Algorithm: "gigpo", Gamma: 1, StepWeight: 2}, rows)
	require.NoError(t, err)
	require.Equal(t, []float64{1 + 2*1, 1 + 2*1}, turnValues(t, rows[0], got[0]))
	require.Equal(t, []float64{-3, -3}, turnValues(t, rows[1], got[1]))

	rows[0].Weight, rows[1].Weight = 0.5, 0.5
	got, err = advantagesOf(spec.Credit{Algorithm: "leave_one_out"}, rows)
	require.NoError(t, err)
	require.Equal(t, []float64{1, 1}, turnValues(t, rows[0], got[0]), "twice what the mean gives, half of it by the weight")
	_, err = advantagesOf(spec.Credit{Algorithm: "none"}, rows)
	require.ErrorIs(t, err, store.ErrInvalid)
}

func TestSelections(t *testing.T) {
	for _, c := range []struct {
		edits []string
		rows  []int32
		first float64 // weight of the first row
	}{
		{nil, []int32{0, 1, 2, 3}, 1},
		{[]string{`selection={"method":"top_fraction","keep":0.5}`}, []int32{0, 1}, 1},
		{[]string{`selection={"method":"top_count","count":1,"order":"smallest"}`}, []int32{2, 3}, 1},
		{[]string{`selection={"method":"top_p","p":0.9}`}, []int32{0, 1}, 1},
		{[]string{`selection={"method":"all","drop_flat":true}`}, []int32{0, 1}, 1},
		{[]string{`selection={"method":"all","drop_flat":true,"floor":100}`}, nil, 0},
		{[]string{`selection={"method":"top_count","count":1,"loss_scale":"linear"}`}, []int32{0, 1}, 0.5},
		{[]string{`selection={"method":"all","reweight":true}`}, []int32{0, 1, 2, 3}, 1},
		{[]string{`selection={"method":"all","members":1,"member_metric":"reward_per_token"}`, `credit.algorithm="reinforce_pp"`}, []int32{0, 2}, 1},
	} {
		_, rows := handPlayed(t, c.edits...)
		var got []int32
		for _, r := range rows {
			got = append(got, r.Row)
		}
		require.Equal(t, c.rows, got, c.edits)
		if len(rows) > 0 {
			require.Equal(t, c.first, rows[0].Weight, c.edits)
		}
	}
	_, rows := handPlayed(t, `selection={"method":"all","reweight":true}`)
	require.Zero(t, rows[2].Weight, "a flat group counts nothing")
}

// Long turns cost: DAPO's soft punishment is part of the penalty, never of the reward.
func TestOverlongTurns(t *testing.T) {
	w := newWalked(t, "rollout.format_penalty=0", "rollout.overlong_cache=16")
	first, _, s1, _ := w.turn(nil, "Right</answer>", "Right</answer>", "Left</answer>", "Left</answer> and so on and on")
	require.NotEmpty(t, first.Step.Key)
	n := float64(len(w.tok.Encode("Right</answer>")) + 1)
	require.InDelta(t, -n/16, s1[0].Penalty, 1e-12)
	require.Equal(t, 1.0, s1[0].Reward)
	require.Less(t, s1[3].Penalty, s1[2].Penalty)
	require.Equal(t, canon.Float(0), canon.Float(s1[3].Reward))
}

// The first version of each stage is its reference, whichever worker continues the stage.
func TestStagesHaveReferences(t *testing.T) {
	t.Parallel()
	r := begun(t, "stages", tinySpec(t, `environment.name="`+walkName+`"`, "rollout.turns=2", "rollout.group_size=4", "evaluation.every=0",
		`update.kl_in="loss"`, "update.kl_coefficient=0.1", "snapshot.every=1", "update.reference_every=2"))
	var manifests []store.Ref
	for n := range 5 {
		in := r.iterate(t)
		m, err := store.ReadManifest(t.Context(), r.store, *r.head)
		require.NoError(t, err)
		used := activities.Tables(m.Artifacts).Ref(activities.ReferenceTable)
		switch n {
		case 0, 1:
			require.Nil(t, used, "version 0")
		case 2, 3:
			require.Equal(t, manifests[1], *used, "version 2")
		case 4:
			require.Equal(t, manifests[3], *used, "version 4")
		}
		require.Equal(t, n%2 == 0, in.Metrics["actor/kl_loss"] == 0, "iteration %d", n)
		manifests = append(manifests, *r.head)
		found, err := run.FindHead(t.Context(), r.store, r.Run.ID, nil)
		require.NoError(t, err)
		switch n {
		case 0:
			require.Nil(t, found.Tables.Ref(activities.ReferenceTable))
		case 1, 2:
			require.Equal(t, manifests[1], *found.Tables.Ref(activities.ReferenceTable))
		}
		r.forget(t) // the next iteration reads its reference from the store
		require.Equal(t, in.StateAfter, r.restore(t, activities.RestoreInput{}).State)
	}
}

// Every form of the loss and of the steps learns exactly, too.
func TestUpdatesIterate(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]string{
		"gspo":              {`update.ratio="sequence"`, `update.aggregation="seq_mean_token_mean"`},
		"dual clip":         {"update.dual_clip=3"},
		"dr grpo":           {`credit.algorithm="dr_grpo"`, `update.aggregation="constant"`},
		"clip turns":        {`update.clip_turns=[{"low":0.1,"high":0.2},{"low":0.2,"high":0.28}]`},
		"kl in the loss":    {`update.kl_in="loss"`, "update.kl_coefficient=0.1"},
		"kl in the reward":  {`update.kl_in="reward"`, `update.kl_estimator="k1"`, `credit={"algorithm":"gae"}`},
		"critic":            {`credit={"algorithm":"turn_gae"}`, "update.epochs=2", "update.minibatch=4", "rollout.context_turns=1"},
		"prm":               {`credit={"algorithm":"istar"}`, "update.epochs=2", "update.minibatch=4", "rollout.context_turns=1", "limits.update_rows=4"},
		"prm of adapters":   {`credit={"algorithm":"istar","code_form":true}`, "policy.lora={}"},
		"hiper":             {`credit={"algorithm":"hiper"}`, "rollout.think=true", "rollout.subgoals=true", "policy.starter.tokenizer=2", "update.minibatch=4", "rollout.context_turns=1", "update.widths=2", "update.shards=2"},
		"hiper of adapters": {`credit={"algorithm":"hiper"}`, "rollout.think=true", "rollout.subgoals=true", "policy.starter.tokenizer=2", "policy.lora={}"},
		"promises":          {`credit={"algorithm":"agent_prm","gamma":0.9}`, `update.kl_in="loss"`},
		"minibatches":       {"update.epochs=2", "update.minibatch=4", `update.decay="cosine"`, "update.warmup_iterations=2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			environment := walkName
			if strings.HasPrefix(name, "pr") {
				environment = luckName
			}
			document := tinySpec(t, append([]string{`environment.name="` + environment + `"`, "rollout.turns=2", "rollout.group_size=4", "evaluation.every=0", "snapshot.every=3"}, edits...)...)
			r := begun(t, "form", document)
			first := r.iterate(t)
			second := r.iterate(t)
			switch name {
			case "prm", "prm of adapters":
				require.Zero(t, first.Metrics["prm/reward_size"], "it begins as the policy")
				require.Positive(t, second.Metrics["prm/reward_size"])
				require.Positive(t, first.Metrics["prm/pairs"])
				require.InDelta(t, math.Ln2, float64(first.Metrics["prm/loss"]), 1e-9)
				require.Positive(t, first.Metrics["prm/grad_norm"])
				require.Zero(t, first.Metrics["prm/skipped"])
			case "promises":
				require.InDelta(t, 0.5, float64(first.Metrics["critic/vpred_mean"]), 1e-6, "its head is 0 at first")
				require.InDelta(t, math.Ln2, float64(first.Metrics["critic/vf_loss"]), 1e-6)
				require.NotEqual(t, first.Metrics["critic/vpred_mean"], second.Metrics["critic/vpred_mean"])
			}
			if name == "critic" || name == "prm" || name == "hiper" {
				require.EqualValues(t, 16, first.Update.Rows, "each turn is a row behind the window")
				require.EqualValues(t, map[bool]int{true: 4, false: 8}[name == "hiper"], first.Update.Steps)
			}
			if name == "critic" || strings.HasPrefix(name, "hiper") {
				require.NotEqual(t, first.Metrics["critic/vf_loss"], second.Metrics["critic/vf_loss"])
				require.NotZero(t, second.Metrics["critic/vpred_mean"])
				require.Positive(t, first.Metrics["critic/grad_norm"])
				require.Zero(t, first.Metrics["critic/skipped"])
			} else if name != "prm" {
				require.EqualValues(t, 8, first.Update.Rows)
			}
			switch name {
			case "kl in the loss":
				require.Zero(t, first.Metrics["actor/kl_loss"], "version 0 is the reference")
				require.Positive(t, second.Metrics["actor/kl_loss"])
			case "kl in the reward":
				require.Zero(t, first.Metrics["actor/reward_kl_penalty"])
				require.NotZero(t, second.Metrics["actor/reward_kl_penalty"])
			}
			if name == "minibatches" {
				require.EqualValues(t, 4, first.Update.Steps, "two epochs of two")
				require.InDelta(t, 1.5e-4, float64(first.Metrics["actor/lr"]), 1e-9, "half of the warm-up")
				require.InDelta(t, 3e-4, float64(second.Metrics["actor/lr"]), 1e-9)
				m, err := store.ReadManifest(t.Context(), r.store, *r.head)
				require.NoError(t, err)
				require.EqualValues(t, 8, m.Update.Steps)
			} else if name != "critic" && name != "prm" && name != "hiper" {
				require.Zero(t, first.Metrics["actor/ratio_max"])
			}
			// Rebuilt from the batches it is the same, and so it is from a snapshot.
			state := r.state
			r.forget(t)
			require.Equal(t, state, r.restore(t, activities.RestoreInput{}).State)
			third := r.iterate(t)
			r.forget(t)
			got := r.restore(t, activities.RestoreInput{})
			require.Equal(t, third.StateAfter, got.State)
			require.Equal(t, 3, got.From)
			require.Zero(t, got.Telemetry.Recomputed)
			if name == "critic" || strings.HasPrefix(name, "hiper") {
				require.Contains(t, third.Snapshot.Files, model.CriticFile)
				require.Contains(t, third.Snapshot.Files, model.CriticOptimizerFile)
			}
			if strings.HasPrefix(name, "prm") {
				require.Contains(t, third.Snapshot.Files, model.PRMFile)
				require.Contains(t, third.Snapshot.Files, model.PRMOptimizerFile)
			}
		})
	}
}
