package credit

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// someOptions are options of which every one has an effect, and otherOptions as many
// others.
var (
	someOptions = Options{
		NormalizeByStd: true, Epsilon: 0.1, Floor: 2, Gamma: 0.9, Lambda: 0.8, TurnGamma: 0.95, TurnLambda: 0.7,
		ValueAt: LastPromptToken, RewardAt: AtTurns, Whiten: true, BaselineRate: 0.5, StepWeight: 0.6, Own: Own{
			"over_turns": true, "beta": 0.5, "segment_lambda": 0.9, "keep_reward": -0.3, "changed_reward": -0.2, "invalid_penalty": 0.1, "bootstrap": true,
			"entropy_gain": 0.5, "future_gain": 2.0, "clarity": 0.3,
		},
	}
	otherOptions = Options{
		NormalizeByStd: false, Epsilon: 0.2, Floor: 3, Gamma: 0.8, Lambda: 0.7, TurnGamma: 0.9, TurnLambda: 0.6,
		ValueAt: FinalToken, RewardAt: AtEnd, Whiten: false, BaselineRate: 1, StepWeight: 0.5, Own: Own{
			"trees_alone": true, "beta": 0.7, "code_form": true, "segment_lambda": 0.5, "keep_reward": -0.6, "keep_shared": true, "changed_reward": -0.5,
			"invalid_penalty": 0.4, "entropy_gain": 0.7, "future_gain": 3.0, "clarity": 0.2,
		},
	}
)

// inputOf is a rollout as the credit step gives it, after another of the same states.
func inputOf(t *testing.T, o Options) Input {
	t.Helper()
	e, before := randomEpisodes(t, 11, 12), randomEpisodes(t, 12, 12)
	tokens, err := TokenRewards(e.rewards, e.turns, e.lengths, o.RewardAt)
	require.NoError(t, err)
	past, err := Observe(nil, before.returns, before.initialStates, o.BaselineRate)
	require.NoError(t, err)
	parts, entropies := make([][]float64, len(e.returns)), make([][]float64, len(e.returns))
	for row, r := range e.returns {
		parts[row] = []float64{r, e.rewards[row][0]}
		for k, s := range e.turns[row] {
			entropies[row] = append(entropies[row], float64(s.To-s.From)/float64(k+2))
		}
	}
	trees, branches := make([]int, len(e.returns)), make([]bool, len(e.returns))
	for row := range trees {
		trees[row], branches[row] = row/2%2, row%3 == 2
	}
	successes, actions, prm, old := make([]bool, len(e.returns)), make([][]string, len(e.returns)), make([][]float64, len(e.returns)), make([][]float64, len(e.returns))
	for row := range successes {
		successes[row] = row%2 == 0
		for k := range e.turns[row] {
			actions[row] = append(actions[row], strconv.Itoa((row+k)%2))
		}
		for t := range e.lengths[row] {
			prm[row], old[row] = append(prm[row], -float64(1+(row+t)%3)), append(old[row], -float64(1+(row*t)%4))
		}
	}
	subgoals, invalid, cut := make([][]Subgoal, len(e.returns)), make([][]bool, len(e.returns)), make([]bool, len(e.returns))
	for row, turns := range e.turns {
		cut[row] = row%3 == 1
		for k, s := range turns {
			middle := (s.From + s.To) / 2
			subgoals[row] = append(subgoals[row], Subgoal{
				Choice: Span{From: s.From, To: min(s.From+1, middle)}, Goal: Span{From: min(s.From+1, middle), To: middle}, Action: Span{From: middle, To: s.To},
				Switches: (row+k)%3 == 0, Text: strconv.Itoa((row + k) % 2),
			})
			invalid[row] = append(invalid[row], (row+k)%4 == 0)
		}
	}
	return Input{
		Subgoals: subgoals, Invalid: invalid, Cut: cut, Successes: successes, Actions: actions, PRM: prm, Old: old,
		Trees: trees, Branches: branches, Parts: parts, PartWeights: []float64{1, 0.3}, Entropies: entropies,
		Returns: e.returns, Rewards: e.rewards, Tokens: tokens, Values: e.values, Groups: e.groups, Keys: e.keys,
		Agents: slices.Clone(e.keys), Starts: e.initialStates, Turns: e.turns, Lengths: e.lengths, Mask: e.mask, Past: past,
	}
}

// advantagesOf applies an algorithm to a rollout that may be changed before: its advantages, and
// what a second network learns.
func advantagesOf(t *testing.T, name string, o Options, change func(*Input)) [][]float64 {
	t.Helper()
	in := inputOf(t, o)
	a, ok := Find(name)
	require.True(t, ok)
	for row, values := range in.Values {
		in.Values[row] = slices.Repeat(values, max(a.Values, 1))
	}
	change(&in)
	o.Algorithm = name
	advantages, returns, err := Compute(in, o)
	require.NoError(t, err)
	require.Equal(t, a.Critic || a.Preferences != nil, returns != nil, "returns are what a second network learns")
	return append(advantages, returns...)
}

// An algorithm reads exactly the fields that the table names: a change of any other field
// changes nothing.
func TestAlgorithmsReadWhatTheTableSays(t *testing.T) {
	same := func(*Input) {}
	capital := regexp.MustCompile(`(.)([A-Z])`)
	for _, a := range Algorithms {
		t.Run(a.Name, func(t *testing.T) {
			want := advantagesOf(t, a.Name, someOptions, same)
			var reads []string
			for i, some := 0, reflect.TypeOf(someOptions); i < some.NumField(); i++ {
				if some.Field(i).Name == "Own" {
					continue
				}
				o := someOptions
				reflect.ValueOf(&o).Elem().Field(i).Set(reflect.ValueOf(otherOptions).Field(i))
				if !reflect.DeepEqual(want, advantagesOf(t, a.Name, o, same)) {
					reads = append(reads, strings.ToLower(capital.ReplaceAllString(some.Field(i).Name, "${1}_$2")))
				}
			}
			for _, own := range OwnOptions() {
				o := someOptions
				o.Own = o.Own.With(own.Name, own.Value(otherOptions.Own))
				if !reflect.DeepEqual(want, advantagesOf(t, a.Name, o, same)) {
					reads = append(reads, own.Name)
				}
			}
			require.ElementsMatch(t, a.Fields(), reads)

			apart := advantagesOf(t, a.Name, someOptions, func(in *Input) {
				for row := range in.Groups {
					in.Groups[row] = row
				}
			})
			require.Equal(t, a.Compares, !reflect.DeepEqual(want, apart), "groups of one")
			unseen := advantagesOf(t, a.Name, someOptions, func(in *Input) { in.Past = nil })
			require.Equal(t, a.ObservesStates, !reflect.DeepEqual(want, unseen), "without what states have returned")
			alone := advantagesOf(t, a.Name, someOptions, func(in *Input) {
				for row, turns := range in.Agents {
					in.Agents[row] = slices.Repeat([]string{"one"}, len(turns))
				}
			})
			require.Equal(t, a.ByRole, !reflect.DeepEqual(want, alone), "if all turns are one role's")
			if a.Search == "" {
				require.Equal(t, want, advantagesOf(t, a.Name, someOptions, func(in *Input) { in.Trees, in.Branches = nil, nil }))
			}
			if !a.Critic {
				require.Equal(t, want, advantagesOf(t, a.Name, someOptions, func(in *Input) { in.Values = nil }))
			}
			if a.Preferences == nil {
				require.Equal(t, want, advantagesOf(t, a.Name, someOptions, func(in *Input) { in.PRM, in.Old = nil, nil }))
			}
			if !a.BySubgoals {
				require.Equal(t, want, advantagesOf(t, a.Name, someOptions, func(in *Input) { in.Subgoals, in.Invalid, in.Cut = nil, nil, nil }))
			}
			if a.Preferences == nil && !a.Promises {
				require.Equal(t, want, advantagesOf(t, a.Name, someOptions, func(in *Input) { in.Successes, in.Actions = nil, nil }))
			}
			if !a.ReadsParts {
				require.Equal(t, want, advantagesOf(t, a.Name, someOptions, func(in *Input) { in.Parts, in.PartWeights = nil, nil }))
			}
			if !a.ReadsEntropies {
				require.Equal(t, want, advantagesOf(t, a.Name, someOptions, func(in *Input) { in.Entropies = nil }))
			}
		})
	}
}

// Where DropsFlat, groups of equal returns have advantages that do not depend on the return: 0, or
// of entropies alone.
func TestFlatGroupsTeachNothing(t *testing.T) {
	var names []string
	for _, a := range Algorithms {
		if !a.DropsFlat {
			continue
		}
		names = append(names, a.Name)
		flat := func(r float64) [][]float64 {
			return advantagesOf(t, a.Name, someOptions, func(in *Input) { in.Returns = slices.Repeat([]float64{r}, len(in.Returns)) })
		}
		require.Equal(t, flat(1), flat(-3), a.Name)
		for _, row := range flat(1) {
			require.True(t, a.ReadsEntropies || !slices.ContainsFunc(row, func(v float64) bool { return v != 0 }), a.Name)
		}
	}
	require.Equal(t, []string{"grpo", "dr_grpo", "leave_one_out", "empg"}, names)
}

// The critic of turn_returns learns where TurnReturns says, and blockwise counts the turns that
// have no other to be compared with.
func TestWhatTurnsTeach(t *testing.T) {
	in := inputOf(t, someOptions)
	_, _, want, err := TurnReturns(in.Rewards, in.Values, in.Turns, someOptions)
	require.NoError(t, err)
	require.Equal(t, want, turnReturns.Learns(in, someOptions))

	one := Input{Groups: []int{0, 0, 0}, Rewards: [][]float64{{1, 5}, {-1, 2}, {2, -1}}}
	require.Equal(t, [][]int{{0, 1}, {0, 0}, {0, 1}}, Achieved(one.Rewards))
	require.Equal(t, 1, blockwise.Alone(one), "the second turn after a first one that earned nothing")
}

func TestAlgorithmsAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range Algorithms {
		require.False(t, seen[a.Name], "%s stands twice", a.Name)
		seen[a.Name] = true
		require.NotEmpty(t, a.By, a.Name)
		require.NotEmpty(t, a.Formula, a.Name)
		require.NotEmpty(t, a.Paper, a.Name)
		require.NotContains(t, a.By+a.Formula+a.Paper, "|", "it would end a cell of the docs: %s", a.Name)
		text, err := os.ReadFile(a.File)
		require.NoError(t, err)
		require.Contains(t, string(text), `Name: "`+a.Name+`"`, "%s has the entry", a.File)
	}
	_, _, err := Compute(Input{}, Options{Algorithm: "luck"})
	require.ErrorIs(t, err, ErrInput)
	require.EqualError(t, err, `unusable input: algorithm "luck"`)
}
