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
	"github.com/reprise-rl/reprise/workflows/spec"
)

// A branch has the turns of its parent before it, and those that it samples itself. Every turn is learned from
// once: in the row that sampled it.
func TestTreesGrow(t *testing.T) {
	trees := spec.Trees{Trees: 1, Branches: 1, Expansions: 2}
	wave := func(member int, turns ...episode.Turn) []episode.Turn { // what one member of each of two groups of three plays
		for n := range turns {
			for i := range turns[n].Generate {
				if i%3 != member {
					turns[n].Generate[i], turns[n].Step[i] = episode.GenerateRow{Row: int32(i), Group: int32(i / 3), Member: int32(i % 3)}, episode.StepRow{Done: true}
				}
			}
		}
		return turns
	}
	end := []bool{true, true, true, true, true, true}
	turns := wave(0, episodetest.Turn(1, 3, make([]float64, 6), nil, nil), episodetest.Turn(2, 3, make([]float64, 6), nil, nil), episodetest.Turn(3, 3, make([]float64, 6), nil, end))
	address := func(group int) draw.Address { return draw.Address{Purpose: draw.Fork, Group: int64(group)} }
	forks, err := Forks(trees, 1, turns, address)
	require.NoError(t, err)
	require.Len(t, forks, 2)
	for i, f := range forks {
		a := address(i)
		a.Member, a.Turn = 1, 1
		u := a.Rand().Float64()
		require.Equal(t, episode.ForkRow{Row: int32(3*i + 1), Group: int32(i), Member: 1, Parent: int32(3 * i), Turn: int32(3 * u), Places: 3, Draw: u}, f)
	}

	// The first group branches after two turns, the second at its beginning.
	forks[0].Turn, forks[1].Turn = 2, 0
	require.Equal(t, 1, episode.FirstTurn(forks))
	require.NoError(t, episode.Inherit(turns, forks))
	for n, played := range wave(1, episodetest.Turn(11, 3, make([]float64, 6), nil, end), episodetest.Turn(12, 3, make([]float64, 6), nil, nil), episodetest.Turn(13, 3, make([]float64, 6), nil, nil), episodetest.Turn(14, 3, make([]float64, 6), nil, end)) {
		for _, i := range []int{1, 4} { // asleep before, ended after
			asleep, over := n < int(forks[i/3].Turn), i == 4 && n > 0
			played.Generate[i].Alive = !asleep && !over
		}
		turns = episode.Grow(turns, n, played)
	}
	require.Len(t, turns, 4, "a branch may have more turns than its tree has had")
	sampled := func(row int) (ids []int32) {
		for _, turn := range turns {
			if turn.Generate[row].Alive {
				require.Equal(t, int32(row), turn.Generate[row].Row)
				ids = append(ids, turn.Generate[row].SampledIDs...)
			}
		}
		return ids
	}
	require.Equal(t, []int32{100, 200, 300}, sampled(0))
	require.Equal(t, []int32{100, 200, 1301, 1401}, sampled(1))
	require.Empty(t, sampled(2))
	require.Equal(t, []int32{103, 203, 303}, sampled(3))
	require.Equal(t, []int32{1104}, sampled(4))

	// The second wave draws among the places of both leaves: the beginning, two of the chain, one that the branch sampled.
	forks, err = Forks(trees, 2, turns, address)
	require.NoError(t, err)
	require.Equal(t, []int32{4, 3}, []int32{forks[0].Places, forks[1].Places})

	branches := episode.Branches(turns, 0)
	require.Equal(t, []episode.BranchRow{{Row: 1, Inherited: true}, {Row: 1, Turn: 1, Inherited: true}, {Row: 1, Turn: 2, Slot: 1}, {Row: 1, Turn: 3, Slot: 1}}, branches[3:7])
	rows := []episode.TrajectoryRow{{Row: 0, PromptLengths: make([]int32, 3)}, {Row: 1, PromptLengths: make([]int32, 4)}}
	trained, err := episode.Trained(rows, branches)
	require.NoError(t, err)
	require.Equal(t, [][]bool{{true, true, true}, {false, false, true, true}}, trained)
}

// With fresh outcomes a turn meets the luck of the row that played it, with shared ones that of its tree's
// first leaf.
func TestChancesOfBranches(t *testing.T) {
	rc := &Context{}
	task := &Task{Groups: 1, Members: 3, Slots: 3, Trees: spec.Trees{Trees: 1, Branches: 2, Expansions: 1}}
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
	task.Trees = spec.Trees{Trees: 3}
	require.Equal(t, []int64{1, 1, 1}, members(), "without branches each row has its own")
}

// playTrees plays a round of trees at random, of rows that end in different turns, and stores it as the steps of
// a rollout do. It returns the stored turns, what was played in each of them, and the tokens that were sampled.
func playTrees(t *testing.T, s store.Store, trees spec.Trees, groups, most, round int, seed uint64) (refs []store.TurnRefs, played []episode.Turn, tokens int) {
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
			var forks []episode.ForkRow
			switch {
			case trees.Pivots:
				forks, err = PivotForks(trees, before, nil, address)
			case trees.Uncertain:
				forks, err = UncertainForks(trees, 100, before, address)
			default:
				forks, err = Forks(trees, wave, before, address)
			}
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

// kindsOfTrees are the ways in which trajectories branch.
func kindsOfTrees() map[string]spec.Trees {
	return map[string]spec.Trees{
		"trees":   {Trees: 2, Branches: 2, Expansions: 2},
		"pivots":  {Trees: 2, Branches: 2, Expansions: 1, Pivots: true, Gamma: 2},
		"entropy": spec.Rollout{Search: spec.EntropySearch, GroupSize: 6, Trees: 3, Branches: 2}.TreesOf(),
		"chains":  {Trees: 3},
	}
}

// Whatever the trees and the round, each sampled token is in the trajectories once beside those that are
// inherited, and each trajectory that was played continues where its parent was left.
func TestTokensOfTreesAreKept(t *testing.T) {
	for name, trees := range kindsOfTrees() {
		for seed := range uint64(4) {
			s := store.NewMemory()
			const groups, most = 2, 5
			var all []episode.TrajectoryRow
			var branches []episode.BranchRow
			sampled := 0
			for round := range 2 {
				refs, played, tokens := playTrees(t, s, trees, groups, most, round, seed)
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

// Rows of a wave draw by their group, member and wave, among the places of their own tree.
func TestForksOfSeveralTrees(t *testing.T) {
	trees := spec.Trees{Trees: 2, Branches: 1, Expansions: 2}
	chains := func() []episode.Turn { // of two groups of six, in which the first tree has three turns, the second one
		alive, short := make([]bool, 12), make([]bool, 12)
		for _, row := range []int{0, 1, 6, 7} {
			alive[row], short[row] = true, row == 0 || row == 6
		}
		return []episode.Turn{episodetest.Turn(1, 6, make([]float64, 12), alive, nil), episodetest.Turn(2, 6, make([]float64, 12), short, nil), episodetest.Turn(3, 6, make([]float64, 12), short, nil)}
	}
	address := func(group int) draw.Address { return draw.Address{Purpose: draw.Fork, Group: int64(10 + group)} }
	u := func(group, member, wave int) float64 {
		a := address(group)
		a.Member, a.Turn = int64(member), int64(wave)
		return a.Rand().Float64()
	}
	turns := chains()
	forks, err := Forks(trees, 1, turns, address)
	require.NoError(t, err)
	want := func(group, member, parent, places, wave int) episode.ForkRow {
		draws := u(group, member, wave)
		return episode.ForkRow{Row: int32(6*group + member), Group: int32(group), Member: int32(member), Parent: int32(6*group + parent), Turn: int32(float64(places) * draws), Places: int32(places), Draw: draws}
	}
	require.Equal(t, []episode.ForkRow{want(0, 2, 0, 3, 1), want(0, 3, 1, 1, 1), want(1, 2, 0, 3, 1), want(1, 3, 1, 1, 1)}, forks)

	// In the second wave the branches of the first are leaves too; their inherited turns are no places of
	// their own.
	require.NoError(t, episode.Inherit(turns, []episode.ForkRow{{Row: 2, Member: 2, Turn: 1}, {Row: 3, Member: 3, Parent: 1}, {Row: 8, Group: 1, Member: 2, Parent: 6, Turn: 2}, {Row: 9, Group: 1, Member: 3, Parent: 7}}))
	for n := range 4 {
		alive := make([]bool, 12)
		for row, from := range map[int]int{2: 1, 8: 2, 3: 0, 9: 0} {
			alive[row] = n >= from && n < 3 || row == 9 && n == 3
		}
		turns = episode.Grow(turns, n, episodetest.Turn(11+n, 6, make([]float64, 12), alive, nil))
	}
	forks, err = Forks(trees, 2, turns, address)
	require.NoError(t, err)
	require.Equal(t, []int32{3 + 1, 1 + 2, 3 + 0, 1 + 3}, func() (out []int32) {
		for _, f := range forks {
			out = append(out, f.Places)
		}
		return out
	}())
}

// There is no wave after the last.
func TestForksOfNoWave(t *testing.T) {
	_, err := Forks(spec.Trees{Trees: 1, Branches: 1, Expansions: 1}, 2, []episode.Turn{episodetest.Turn(1, 2, make([]float64, 4), nil, nil)}, nil)
	require.ErrorIs(t, err, store.ErrInvalid)
}
