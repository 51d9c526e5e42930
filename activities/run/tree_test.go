package run

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/episodetest"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/option"
	"github.com/reprise-rl/reprise/model/search"
)

// With fresh outcomes a turn meets the luck of the row that played it, with shared ones that of its tree's
// first leaf.
func TestChancesOfBranches(t *testing.T) {
	rc := &Context{}
	task := &Task{Groups: 1, Members: 3, Slots: 3, Trees: search.Trees{Trees: 1, Branches: 2, Expansions: 1}}
	history := []episode.Turn{{Slots: []int32{0, 0, 0}}, {Slots: []int32{0, 1, 0}}}
	members := func() (out []int64) {
		for _, a := range rc.Chances(task, 0, activities.Rollout{}, episode.GenerateRow{Row: 1, Member: 1}, history) {
			require.Equal(t, draw.Chance, a.Purpose)
			out = append(out, a.Member)
		}
		return out
	}
	require.Equal(t, []int64{0, 1, 1}, members())
	task.Trees.Shared = true
	require.Equal(t, []int64{0, 0, 0}, members())
	task.Trees = search.Trees{Trees: 3}
	require.Equal(t, []int64{1, 1, 1}, members(), "without branches each row has its own")
}

// playTrees plays a round of trees at random, of rows that end in different turns, and stores it as the steps of
// a rollout do. It returns the stored turns, what was played in each of them, and the tokens that were sampled.
func playTrees(t *testing.T, s store.Store, m search.Method, trees search.Trees, groups, most, round int, seed uint64) (refs []store.TurnRefs, played []episode.Turn, tokens int) {
	t.Helper()
	numbers := rand.New(rand.NewPCG(seed, uint64(round)))
	size := trees.Leaves()
	address := func(group int) draw.Address {
		return draw.Address{Seed: seed, Purpose: draw.Fork, Group: int64(group + round*groups)}
	}
	for wave := 0; wave <= trees.Expansions; wave++ {
		turn := 1
		if wave > 0 {
			before, err := recorded.Turns(t.Context(), s, refs)
			require.NoError(t, err)
			forks, err := m.Fork(search.Forking{Trees: trees, Wave: wave, Vocabulary: 100, Turns: before, Address: address})
			require.NoError(t, err)
			ref := episodetest.Put(t, s, forks)
			refs[len(refs)-1].Forks = &ref
			if len(forks) == 0 {
				break
			}
			turn = episode.FirstTurn(forks)
		}
		for over := false; !over && turn <= most; turn++ {
			w, err := recorded.Wave(t.Context(), s, wave, turn, refs)
			require.NoError(t, err)
			var now episode.Turn
			over = w.Asleep == 0
			for i := range groups * size {
				g := episode.GenerateRow{Row: int32(i), Group: int32(i / size), Member: int32(i % size)}
				g.Alive = trees.Wave(i%size) == wave && (w.Playing == nil || w.Playing[i])
				if turn > 1 {
					before := w.Turns[turn-2]
					g.Alive = before.Generate[i].Alive && !before.Step[i].Done
				}
				st := episode.StepRow{Row: g.Row, Group: g.Group, Member: g.Member, Alive: g.Alive, Done: true}
				if g.Alive {
					for range 1 + numbers.IntN(3) {
						tokens++
						g.SampledIDs, g.RolloutLogProbs = append(g.SampledIDs, int32(tokens)), append(g.RolloutLogProbs, -float32(numbers.IntN(9)))
					}
					g.PromptIDs = []int32{0}
					st.Done, st.Reward = turn == most || numbers.IntN(4) == 0, float64(numbers.IntN(3)/2)
					over = over && st.Done
				}
				now.Generate, now.Step = append(now.Generate, g), append(now.Step, st)
			}
			played = append(played, now)
			refs = append(refs, episodetest.PutTurn(t, s, round, now))
		}
	}
	return refs, played, tokens
}

// kindsOfTrees are the searches that grow trees, and none.
func kindsOfTrees() map[string]search.Method {
	kinds := map[string]search.Method{"chains": {Trees: func(_ option.Values, n int) search.Trees { return search.Trees{Trees: n} }}}
	for _, m := range methods.Searches {
		if m.Trees != nil {
			kinds[m.Name] = m
		}
	}
	return kinds
}

// sizesOfTrees are the options of small trees.
func sizesOfTrees(m search.Method) (v option.Values) {
	for _, o := range []option.Option{search.TreesOption, search.BranchesOption, search.ExpansionsOption} {
		if m.Has(o) {
			v = option.Set{search.TreesOption, search.BranchesOption, search.ExpansionsOption}.With(option.Rollout, v, o.Name, 2)
		}
	}
	return v
}

// Whatever the trees and the round, each sampled token is in the trajectories once beside those that are
// inherited, and each trajectory that was played continues where its parent was left.
func TestTokensOfTreesAreKept(t *testing.T) {
	for name, m := range kindsOfTrees() {
		trees := m.Trees(sizesOfTrees(m), 6)
		for seed := range uint64(4) {
			s := store.NewMemory()
			const groups, most = 2, 5
			var all []episode.TrajectoryRow
			var branches []episode.BranchRow
			sampled := 0
			for round := range 2 {
				refs, played, tokens := playTrees(t, s, m, trees, groups, most, round, seed)
				sampled += tokens
				count := 0
				for _, turn := range played {
					for _, g := range turn.Generate {
						count += len(g.SampledIDs)
					}
				}
				require.Equal(t, tokens, count)
				turns, err := recorded.Turns(t.Context(), s, refs)
				require.NoError(t, err)
				branches = append(branches, episode.Branches(turns, int32(len(all)))...)
				task := &Task{Groups: groups, Members: trees.Leaves(), Trees: trees, Parts: envs.Mixture{{Label: "game"}}, order: make([]int, groups)}
				for i, r := range episode.Trajectories(turns, task.Label) {
					require.EqualValues(t, i, r.Row)
					r.Row, r.Group = r.Row+int32(round*groups*trees.Leaves()), r.Group+int32(round*groups)
					all = append(all, r)
				}
				for k, turn := range turns {
					for i, g := range turn.Generate {
						if g.Alive {
							require.EqualValues(t, []int{i, i / trees.Leaves(), i % trees.Leaves()}, []int{int(g.Row), int(g.Group), int(g.Member)})
						}
						if g.Alive && k > 0 {
							require.True(t, turns[k-1].Generate[i].Alive && !turns[k-1].Step[i].Done, "%s: row %d has no hole before turn %d", name, i, k+1)
						}
					}
				}
			}
			total := 0
			for _, r := range all {
				total += r.Sampled()
			}
			m := activities.Metrics{}
			InheritedMetrics(m, all, branches)
			require.Equal(t, sampled, episode.SampledTokens(all, branches), "%s, seed %d", name, seed)
			require.EqualValues(t, total-sampled, m["rollout/inherited_tokens"], "%s, seed %d", name, seed)
			if name == "chains" {
				require.Nil(t, branches)
				continue
			}
			// The update learns from each sampled turn once, whatever rows share it.
			trained, err := episode.Trained(all, branches)
			require.NoError(t, err)
			learned, shared := 0, 0
			for i, turns := range trained {
				require.Len(t, turns, all[i].Turns())
				for k, yes := range turns {
					if yes {
						learned += int(all[i].SampledLengths[k])
					} else {
						shared++
					}
				}
			}
			require.Equal(t, sampled, learned, "%s, seed %d", name, seed)
			require.EqualValues(t, shared, m["rollout/inherited_turns"])
		}
	}
}
