package run

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// A branch has the turns of its parent before it, and those that it samples itself. Every turn is learned from
// once: in the row that sampled it.
func TestTreesGrow(t *testing.T) {
	trees := spec.Trees{Trees: 1, Branches: 1, Expansions: 2}
	wave := func(member int, turns ...Turn) []Turn { // what one member of each of two groups of three plays
		for n := range turns {
			for i := range turns[n].Generate {
				if i%3 != member {
					turns[n].Generate[i], turns[n].Step[i] = GenerateRow{Row: int32(i), Group: int32(i / 3), Member: int32(i % 3)}, StepRow{Done: true}
				}
			}
		}
		return turns
	}
	end := []bool{true, true, true, true, true, true}
	turns := wave(0, searchTurn(1, 3, make([]float64, 6), nil, nil), searchTurn(2, 3, make([]float64, 6), nil, nil), searchTurn(3, 3, make([]float64, 6), nil, end))
	address := func(group int) draw.Address { return draw.Address{Purpose: draw.Fork, Group: int64(group)} }
	forks, err := Forks(trees, 1, turns, address)
	require.NoError(t, err)
	require.Len(t, forks, 2)
	for i, f := range forks {
		a := address(i)
		a.Member, a.Turn = 1, 1
		u := a.Rand().Float64()
		require.Equal(t, ForkRow{Row: int32(3*i + 1), Group: int32(i), Member: 1, Parent: int32(3 * i), Turn: int32(3 * u), Places: 3, Draw: u}, f)
	}

	// The first group branches after two turns, the second at its beginning.
	forks[0].Turn, forks[1].Turn = 2, 0
	require.Equal(t, 1, FirstTurn(forks))
	require.NoError(t, Inherit(turns, forks))
	for n, played := range wave(1, searchTurn(11, 3, make([]float64, 6), nil, end), searchTurn(12, 3, make([]float64, 6), nil, nil), searchTurn(13, 3, make([]float64, 6), nil, nil), searchTurn(14, 3, make([]float64, 6), nil, end)) {
		for _, i := range []int{1, 4} { // asleep before, ended after
			asleep, over := n < int(forks[i/3].Turn), i == 4 && n > 0
			played.Generate[i].Alive = !asleep && !over
		}
		turns = Grow(turns, n, played)
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

	branches := Branches(turns, 0)
	require.Equal(t, []BranchRow{{1, 0, 0, true}, {1, 1, 0, true}, {1, 2, 1, false}, {1, 3, 1, false}}, branches[3:7])
	rows := []TrajectoryRow{{Row: 0, PromptLengths: make([]int32, 3)}, {Row: 1, PromptLengths: make([]int32, 4)}}
	trained, err := Trained(rows, branches)
	require.NoError(t, err)
	require.Equal(t, [][]bool{{true, true, true}, {false, false, true, true}}, trained)
}

// Branches that do not fit the turns are refused.
func TestForksThatDoNotFit(t *testing.T) {
	turns := func() []Turn {
		return []Turn{searchTurn(1, 2, make([]float64, 4), nil, []bool{false, false, true, false}), searchTurn(2, 2, make([]float64, 4), []bool{true, true, false, true}, nil)}
	}
	require.NoError(t, Inherit(turns(), []ForkRow{{Row: 1, Parent: 0, Turn: 1}}))
	for _, f := range []ForkRow{
		{Row: 4, Parent: 0}, {Row: 1, Parent: 1}, {Row: 1, Parent: -1}, {Row: 1, Parent: 0, Turn: 2}, {Row: 1, Parent: 0, Turn: -1},
		{Row: 3, Group: 1, Parent: 2, Turn: 1}, {Row: 3, Group: 1, Parent: 0, Turn: 1},
	} {
		require.ErrorIs(t, Inherit(turns(), []ForkRow{f}), store.ErrInvalid, "%v", f)
	}
	require.NoError(t, Inherit(turns(), nil), "no row needs to branch")
	_, err := Forks(spec.Trees{Trees: 1, Branches: 1, Expansions: 1}, 2, turns(), nil)
	require.ErrorIs(t, err, store.ErrInvalid)
}

// With fresh outcomes a turn meets the luck of the row that played it, with shared ones that of its tree's
// first leaf.
func TestChancesOfBranches(t *testing.T) {
	rc := &Context{}
	task := &Task{Groups: 1, Members: 3, Slots: 3, Trees: spec.Trees{Trees: 1, Branches: 2, Expansions: 1}}
	history := []Turn{{Slots: []int32{0, 0, 0}}, {Slots: []int32{0, 1, 0}}}
	members := func() (out []int64) {
		for _, a := range rc.Chances(task, 0, activities.Rollout{}, GenerateRow{Row: 1, Member: 1}, history) {
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
func playTrees(t *testing.T, s store.Store, trees spec.Trees, groups, most, round int, seed uint64) (refs []store.TurnRefs, played []Turn, tokens int) {
	t.Helper()
	numbers := rand.New(rand.NewPCG(seed, uint64(round)))
	size := trees.Leaves()
	address := func(group int) draw.Address {
		return draw.Address{Seed: seed, Purpose: draw.Fork, Group: int64(group + round*groups)}
	}
	for wave := 0; wave <= trees.Expansions; wave++ {
		turn := 1
		if wave > 0 {
			before, err := ReadTurns(t.Context(), s, refs)
			require.NoError(t, err)
			var forks []ForkRow
			switch {
			case trees.Pivots:
				forks, err = PivotForks(trees, before, nil, address)
			case trees.Uncertain:
				forks, err = UncertainForks(trees, 100, before, address)
			default:
				forks, err = Forks(trees, wave, before, address)
			}
			require.NoError(t, err)
			ref := putTable(t, s, forks)
			refs[len(refs)-1].Forks = &ref
			if len(forks) == 0 {
				break
			}
			turn = FirstTurn(forks)
		}
		for over := false; !over && turn <= most; turn++ {
			w, err := ReadWave(t.Context(), s, wave, turn, refs)
			require.NoError(t, err)
			var now Turn
			over = w.Asleep == 0
			for i := range groups * size {
				g := GenerateRow{Row: int32(i), Group: int32(i / size), Member: int32(i % size)}
				g.Alive = trees.Wave(i%size) == wave && (w.Playing == nil || w.Playing[i])
				if turn > 1 {
					before := w.Turns[turn-2]
					g.Alive = before.Generate[i].Alive && !before.Step[i].Done
				}
				st := StepRow{Row: g.Row, Group: g.Group, Member: g.Member, Alive: g.Alive, Done: true}
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
			refs = append(refs, putTurn(t, s, round, now))
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
			var all []TrajectoryRow
			var branches []BranchRow
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
				turns, err := ReadTurns(t.Context(), s, refs)
				require.NoError(t, err)
				branches = append(branches, Branches(turns, int32(len(all)))...)
				task := &Task{Groups: groups, Members: trees.Leaves(), Trees: trees, Parts: envs.Mixture{{Label: "game"}}, order: make([]int, groups)}
				for i, r := range Trajectories(turns, task.Label) {
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
			require.Equal(t, sampled, SampledTokens(all, branches), "%s, seed %d", name, seed)
			require.EqualValues(t, total-sampled, m["rollout/inherited_tokens"], "%s, seed %d", name, seed)
			if name == "chains" {
				require.Nil(t, branches)
				continue
			}
			// The update learns from each sampled turn once, whatever rows share it.
			trained, err := Trained(all, branches)
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

// Tokens that several rows share are sampled once, in the rows of every round.
func TestSampledTokens(t *testing.T) {
	rows := []TrajectoryRow{{Row: 0, SampledLengths: []int32{1, 2}}, {Row: 1, SampledLengths: []int32{1, 4}}, {Row: 2, SampledLengths: []int32{8}}, {Row: 3, SampledLengths: []int32{8, 16}}}
	require.Equal(t, 40, SampledTokens(rows, nil))
	branches := []BranchRow{{0, 0, 0, false}, {0, 1, 0, false}, {1, 0, 0, true}, {1, 1, 1, false}, {2, 0, 0, false}, {3, 0, 0, true}, {3, 1, 1, false}}
	require.Equal(t, 40-1-8, SampledTokens(rows, branches))
	m := activities.Metrics{}
	InheritedMetrics(m, rows, branches)
	require.Equal(t, activities.Metrics{"rollout/inherited_turns": canon.Float(2), "rollout/inherited_tokens": canon.Float(9)}, m)
}

// A wave is read as far as its next turn: which rows play it, which begin later, and which have ended. Of two
// waves the newer one counts.
func TestReadWave(t *testing.T) {
	s := store.NewMemory()
	ctx := t.Context()
	turn := func(n int, members ...int) Turn { // two groups of four
		alive := make([]bool, 8)
		for _, m := range members {
			alive[m], alive[4+m] = true, true
		}
		out := searchTurn(n, 4, make([]float64, 8), alive, nil)
		for i := range out.Step {
			out.Step[i].NextIDs, out.Step[i].NextRestart = []int32{int32(n)}, true
		}
		return out
	}
	put := func(turn Turn, forks ...ForkRow) store.TurnRefs {
		refs := putTurn(t, s, 1, turn)
		if forks != nil {
			ref := putTable(t, s, forks)
			refs.Forks = &ref
		}
		return refs
	}
	w, err := ReadWave(ctx, s, 0, 1, nil)
	require.NoError(t, err)
	require.Equal(t, Wave{}, w)

	refs := []store.TurnRefs{put(turn(1, 0, 1)), put(turn(2, 0, 1))}
	w, err = ReadWave(ctx, s, 0, 3, refs)
	require.NoError(t, err)
	require.Len(t, w.Turns, 2)
	require.Nil(t, w.Playing)
	require.Zero(t, w.Asleep)

	// Member 2 of the first group begins anew, that of the second after a turn.
	refs = []store.TurnRefs{put(turn(1, 0, 1)), put(turn(2, 0, 1), ForkRow{Row: 2, Member: 2}, ForkRow{Row: 6, Group: 1, Member: 2, Parent: 5, Turn: 1})}
	w, err = ReadWave(ctx, s, 1, 1, refs)
	require.NoError(t, err)
	require.Empty(t, w.Turns)
	require.Equal(t, []bool{false, false, true, false, false, false, false, false}, w.Playing)
	require.Equal(t, 1, w.Asleep)

	refs = append(refs, put(turn(11, 2)))
	refs[2] = put(func() Turn { // the second group's is asleep
		out := turn(11, 2)
		out.Generate[6].Alive = false
		return out
	}())
	w, err = ReadWave(ctx, s, 1, 2, refs)
	require.NoError(t, err)
	require.Len(t, w.Turns, 1)
	require.Equal(t, []bool{false, false, true, false, false, false, true, false}, w.Playing)
	require.Zero(t, w.Asleep)
	require.Equal(t, [][]int32{{100}, {1102}, {104}, {105}, {105}}, [][]int32{
		sampledOf(w.Turns, 0), sampledOf(w.Turns, 2), sampledOf(w.Turns, 4), sampledOf(w.Turns, 5), sampledOf(w.Turns, 6),
	})
	for row, st := range w.Turns[0].Step {
		playing := row == 2 || row == 6
		require.Equal(t, !playing, st.Done, "row %d", row)
		require.Equal(t, playing, st.NextIDs != nil)
		require.Equal(t, playing, st.NextRestart)
	}

	// The third turn's rows are those of the wave, though the tables have other rows' third turns.
	refs = append(refs, put(turn(12, 2)))
	w, err = ReadWave(ctx, s, 1, 3, refs)
	require.NoError(t, err)
	require.Equal(t, [][]int32{{100, 200}, {1102, 1202}, {105, 1206}}, [][]int32{sampledOf(w.Turns, 0), sampledOf(w.Turns, 2), sampledOf(w.Turns, 6)})

	// A second wave continues rows of the first.
	refs[3] = put(turn(12, 2), ForkRow{Row: 3, Member: 3, Parent: 2, Turn: 1}, ForkRow{Row: 7, Group: 1, Member: 3, Parent: 6, Turn: 1})
	w, err = ReadWave(ctx, s, 2, 2, refs)
	require.NoError(t, err)
	require.Equal(t, []bool{false, false, false, true, false, false, false, true}, w.Playing)
	require.Equal(t, [][]int32{{1102}, {105}}, [][]int32{sampledOf(w.Turns, 3), sampledOf(w.Turns, 7)})
	require.Equal(t, []int32{2, 5}, []int32{w.Turns[0].Slots[3], w.Turns[0].Slots[7]}, "a turn's slot is that of the row that sampled it")

	for _, c := range []struct {
		wave, turn int
		refs       []store.TurnRefs
		says       string
	}{
		{1, 1, refs[:1], "turn 1 of wave 1 after 1 turns"}, // no wave has begun
		{1, 0, refs, "turn 0 of wave 1 after 4 turns"},
		{1, 4, refs, "turn 4 of wave 1 after 4 turns"},
	} {
		_, err := ReadWave(ctx, s, c.wave, c.turn, c.refs)
		require.ErrorIs(t, err, store.ErrInvalid)
		require.ErrorContains(t, err, c.says)
	}
	w, err = ReadWave(ctx, s, 1, 3, refs)
	require.NoError(t, err, "the turn after the last one of any row")
	require.Len(t, w.Turns, 2)
}

// Rows of a wave draw by their group, member and wave, among the places of their own tree.
func TestForksOfSeveralTrees(t *testing.T) {
	trees := spec.Trees{Trees: 2, Branches: 1, Expansions: 2}
	chains := func() []Turn { // of two groups of six, in which the first tree has three turns, the second one
		alive, short := make([]bool, 12), make([]bool, 12)
		for _, row := range []int{0, 1, 6, 7} {
			alive[row], short[row] = true, row == 0 || row == 6
		}
		return []Turn{searchTurn(1, 6, make([]float64, 12), alive, nil), searchTurn(2, 6, make([]float64, 12), short, nil), searchTurn(3, 6, make([]float64, 12), short, nil)}
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
	want := func(group, member, parent, places, wave int) ForkRow {
		draws := u(group, member, wave)
		return ForkRow{Row: int32(6*group + member), Group: int32(group), Member: int32(member), Parent: int32(6*group + parent), Turn: int32(float64(places) * draws), Places: int32(places), Draw: draws}
	}
	require.Equal(t, []ForkRow{want(0, 2, 0, 3, 1), want(0, 3, 1, 1, 1), want(1, 2, 0, 3, 1), want(1, 3, 1, 1, 1)}, forks)

	// In the second wave the branches of the first are leaves too; their inherited turns are no places of
	// their own.
	require.NoError(t, Inherit(turns, []ForkRow{{Row: 2, Member: 2, Turn: 1}, {Row: 3, Member: 3, Parent: 1}, {Row: 8, Group: 1, Member: 2, Parent: 6, Turn: 2}, {Row: 9, Group: 1, Member: 3, Parent: 7}}))
	for n := range 4 {
		alive := make([]bool, 12)
		for row, from := range map[int]int{2: 1, 8: 2, 3: 0, 9: 0} {
			alive[row] = n >= from && n < 3 || row == 9 && n == 3
		}
		turns = Grow(turns, n, searchTurn(11+n, 6, make([]float64, 12), alive, nil))
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
