package methods_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/methods"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/model/option"
)

// advantagesOf applies an algorithm to a rollout that may be changed before: its advantages, and
// what a second network learns.
func advantagesOf(t *testing.T, name string, o credit.Options, change func(*credit.Input)) [][]float64 {
	t.Helper()
	in := credittest.Rollout(t, o)
	a, ok := methods.Find(name)
	require.True(t, ok)
	for row, values := range in.Values {
		in.Values[row] = slices.Repeat(values, max(a.Values, 1))
	}
	for row := range in.Returns {
		in.Returns[row] += 4 // above 0, because maxrl learns from such groups alone
	}
	if a.Observe != nil {
		var err error
		in.Past, err = a.Observe(nil, in.Returns, in.Agents, o)
		require.NoError(t, err)
	}
	change(&in)
	o.Algorithm = name
	advantages, returns, err := methods.Compute(in, o)
	require.NoError(t, err)
	require.Equal(t, a.Critic || a.Preferences != nil, returns != nil, "returns are what a second network learns")
	return append(advantages, returns...)
}

// An algorithm reads exactly the fields that the table names: a change of any other field
// changes nothing.
func TestAlgorithmsReadWhatTheTableSays(t *testing.T) {
	same := func(*credit.Input) {}
	capital := regexp.MustCompile(`(.)([A-Z])`)
	for _, a := range methods.Algorithms {
		t.Run(a.Name, func(t *testing.T) {
			want := advantagesOf(t, a.Name, credittest.SomeOptions, same)
			var reads []string
			for i, some := 0, reflect.TypeFor[credit.Options](); i < some.NumField(); i++ {
				if some.Field(i).Name == "Own" {
					continue
				}
				o := credittest.SomeOptions
				reflect.ValueOf(&o).Elem().Field(i).Set(reflect.ValueOf(credittest.OtherOptions).Field(i))
				if !reflect.DeepEqual(want, advantagesOf(t, a.Name, o, same)) {
					reads = append(reads, strings.ToLower(capital.ReplaceAllString(some.Field(i).Name, "${1}_$2")))
				}
			}
			for _, own := range methods.Options() {
				o := credittest.SomeOptions
				o.Own = methods.Options().With(option.Credit, o.Own, own.Name, own.In(credittest.OtherOptions.Own))
				if !reflect.DeepEqual(want, advantagesOf(t, a.Name, o, same)) {
					reads = append(reads, own.Name)
				}
			}
			require.ElementsMatch(t, a.Fields(), reads)

			apart := advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) {
				for row := range in.Groups {
					in.Groups[row] = row
				}
			})
			require.Equal(t, a.Compares, !reflect.DeepEqual(want, apart), "groups of one")
			unseen := advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.Past = nil })
			require.Equal(t, a.ObservesStates, !reflect.DeepEqual(want, unseen), "without what states have returned")
			alone := advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) {
				for row, turns := range in.Agents {
					in.Agents[row] = slices.Repeat([]string{"one"}, len(turns))
				}
			})
			require.Equal(t, a.ByRole, !reflect.DeepEqual(want, alone), "if all turns are one role's")
			if a.Search == "" {
				require.Equal(t, want, advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.Trees, in.Branches = nil, nil }))
			}
			if !a.Critic {
				require.Equal(t, want, advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.Values = nil }))
			}
			if a.Preferences == nil {
				require.Equal(t, want, advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.PRM = nil }))
			}
			if a.Preferences == nil && !a.ReadsSumSquares && !a.ReadsTeacher {
				require.Equal(t, want, advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.Old = nil }))
			}
			require.False(t, a.ReadsTeacher && a.ReadsSumSquares, "run.PutScores writes the columns of one")
			if !a.ReadsTeacher {
				require.Equal(t, want, advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.Teacher, in.Informed = nil, nil }))
			}
			if !a.ReadsSumSquares {
				require.Equal(t, want, advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.SumSquares = nil }))
			} else {
				require.NotEqual(t, want, advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.SumSquares[0][in.Turns[0][0].From] = 1 }))
			}
			if !a.BySubgoals {
				require.Equal(t, want, advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.Subgoals, in.Invalid = nil, nil }))
			}
			if a.ReadsOpen == nil {
				require.Equal(t, want, advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.Open = nil }))
			} else {
				require.True(t, a.ReadsOpen(credittest.SomeOptions))
				require.False(t, a.ReadsOpen(credittest.OtherOptions))
				require.NotEqual(t, want, advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.Open = make([]bool, len(in.Open)) }))
			}
			if a.Preferences == nil && !a.Promises {
				require.Equal(t, want, advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.Successes, in.Actions = nil, nil }))
			}
			if !a.ReadsParts {
				require.Equal(t, want, advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.Parts, in.PartWeights = nil, nil }))
			}
			if !a.ReadsCriteria {
				require.Equal(t, want, advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.Criteria, in.CriteriaWeights, in.CriteriaAfter = nil, nil, nil }))
			}
			if !a.ReadsEntropies {
				require.Equal(t, want, advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.Entropies = nil }))
			}
		})
	}
}

// Where DropsFlat, groups of equal returns have advantages that do not depend on the return: 0, or
// of entropies alone.
func TestFlatGroupsTeachNothing(t *testing.T) {
	for _, a := range methods.Algorithms {
		if !a.DropsFlat {
			continue
		}
		flat := func(r float64) [][]float64 {
			return advantagesOf(t, a.Name, credittest.SomeOptions, func(in *credit.Input) { in.Returns = slices.Repeat([]float64{r}, len(in.Returns)) })
		}
		require.Equal(t, flat(1), flat(-3), a.Name)
		for _, row := range flat(1) {
			require.True(t, a.ReadsEntropies || !slices.ContainsFunc(row, func(v float64) bool { return v != 0 }), a.Name)
		}
	}
}

// methodstest.List has the names in their order, each with "flat" if it leaves out groups of equal
// returns by default. In a tree without one of the rooms (make rooms), whose tests are short, some are not in
// the table; what is, is in the list. Tests of other packages leave out what the table has not, so all of the
// list must be there in the whole tree.
func TestTheTableHasTheNames(t *testing.T) {
	var want, got []string
	for line := range strings.Lines(methodstest.List) {
		line = strings.TrimSpace(line)
		name, _, _ := strings.Cut(line, " ")
		if methodstest.There(name) || !testing.Short() {
			want = append(want, line)
		}
	}
	for _, a := range methods.Algorithms {
		line := a.Name
		if a.DropsFlat {
			line += " flat"
		}
		got = append(got, line)
	}
	for _, s := range methods.Searches {
		got = append(got, s.Name+" search")
	}
	for _, o := range methods.Orders {
		got = append(got, o.Name+" passes")
	}
	for _, o := range methods.Options() {
		got = append(got, o.Name+" option")
	}
	require.Equal(t, want, got)
}

// Each room works out its algorithms, with credittest.ComputeWorked.
func TestRoomsWorkOutTheirAlgorithms(t *testing.T) {
	for _, a := range methods.Algorithms {
		room := filepath.Dir(a.File)
		worked, err := os.ReadFile(filepath.Join(room, "testdata", "compute.txt"))
		require.NoError(t, err)
		require.Contains(t, string(worked), "\nalgorithm "+a.Name+" {}\n")
		tests, err := filepath.Glob(filepath.Join(room, "*_test.go"))
		require.NoError(t, err)
		runs := slices.ContainsFunc(tests, func(path string) bool {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			return strings.Contains(string(text), "credittest.ComputeWorked(t, ")
		})
		require.True(t, runs, "no test of %s calls ComputeWorked", room)
	}
}

func TestAlgorithmsAreDescribed(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range methods.Algorithms {
		require.False(t, seen[a.Name], "%s stands twice", a.Name)
		seen[a.Name] = true
		require.NotEmpty(t, a.By, a.Name)
		require.NotEmpty(t, a.Formula, a.Name)
		require.NotEmpty(t, a.Paper, a.Name)
		require.NotContains(t, a.By+a.Formula+a.Paper, "|", "it would end a cell of the docs: %s", a.Name)
		text, err := os.ReadFile(a.File)
		require.NoError(t, err)
		require.Regexp(t, `Name:\s+"`+a.Name+`"`, string(text), a.File+" has the entry")
	}
	_, _, err := methods.Compute(credit.Input{}, credit.Options{Algorithm: "luck"})
	require.ErrorIs(t, err, credit.ErrInput)
	require.EqualError(t, err, `unusable input: algorithm "luck"`)
}
