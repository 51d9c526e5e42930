package checklist

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/credit/credittest"
	"github.com/reprise-rl/reprise/model/golden"
)

func TestComputeWorked(t *testing.T) { credittest.ComputeWorked(t, Entry) }

// The step level of the authors' code, whose lines were run on these cases.
func TestStepsOfTheAuthorsCode(t *testing.T) {
	worked := credittest.Worked[struct {
		Cases []struct {
			In struct {
				Weights []float64
				After   []int
				Groups  []int
				Steps   [][][]bool
				Least   int `json:"least_holders"`
			}
			Out struct {
				Advantages [][]float64 `json:"step_advantages"`
			}
		}
	}](t, "cm2_steps.json", "")
	require.Len(t, worked.Cases, 12)
	for _, c := range worked.Cases {
		got, err := Steps(Criteria{Held: c.In.Steps, Weights: c.In.Weights, After: c.In.After}, c.In.Groups, c.In.Least)
		require.NoError(t, err)
		credittest.Within(t, 1e-8, c.Out.Advantages, got)
	}
}

// The turn level of the authors' code: each score of a turn is given as the weight of criteria of its own.
func TestTurnsGolden(t *testing.T) {
	type in struct {
		Weights [][]float64     // [turns][items]
		Steps   json.RawMessage // the scores come from them
		Least   int             `json:"least_holders"`
	}
	type out struct {
		Scores               [][]float64     `json:"turn_scores"`
		Advantages           [][]float64     `json:"turn_advantages"`
		TrajectoryReward     json.RawMessage `json:"trajectory_reward"`
		TrajectoryAdvantages json.RawMessage `json:"trajectory_advantages"`
	}
	g := golden.ReadMethod[in, out](t, "cm2")
	for i, c := range g.Cases {
		var criteria Criteria
		for _, turns := range c.Out.Scores {
			for _, score := range turns {
				criteria.Weights, criteria.After = append(criteria.Weights, score), append(criteria.After, -1)
			}
		}
		at := 0
		for _, turns := range c.Out.Scores {
			var row [][]bool
			for range turns {
				holds := make([]bool, len(criteria.Weights))
				holds[at] = true
				row, at = append(row, holds), at+1
			}
			criteria.Held = append(criteria.Held, row)
		}
		got, err := Turns(criteria, make([]int, len(c.Out.Scores)), c.In.Least)
		require.NoError(t, err)
		for row := range got {
			golden.Near(t, c.Out.Advantages[row], got[row], g.Tolerance, "case %d, row %d", i, row)
		}
	}
}

// A group of five and criteria a (.5), b (.3, after a) and c (.2), worked by hand. Lines are members: a turn is the
// criteria that hold in it.
func TestWorked(t *testing.T) {
	c := Criteria{Weights: []float64{0.5, 0.3, 0.2}, After: []int{-1, 0, -1}, Held: [][][]bool{
		held("a", "b", ""),  // a at once, b after it
		held("b", "a", ""),  // b before a does not count
		held("ab", ""),      // both at once
		held("c", "c", "a"), // c counts once
		held("", ""),        // nothing: b was never open
	}}
	groups := []int{3, 3, 3, 3, 3}
	// a is met by four of five (mean .8): +.1 up to the turn that meets it, −.4 in the turns of the fifth.
	// b: four have it, two meet it (mean .5): +.15 where it is open up to the turn that meets it, −.15 after a
	// where it is not met.
	// c: one of five (mean .2): +.16 in the first turn of the fourth, −.04 in all turns of the others.
	want := [][]float64{
		{.1 - .04, .15 - .04, -.04},
		{.1 - .04, .1 - .04, -.15 - .04},
		{.1 + .15 - .04, -.04},
		{.1 + .16, .1, .1},
		{-.4 - .04, -.4 - .04},
	}
	got, err := Steps(c, groups, 2)
	require.NoError(t, err)
	credittest.Within(t, 1e-12, want, got)

	// With five as the least, b has too few holders.
	got, err = Steps(c, groups, 5)
	require.NoError(t, err)
	credittest.Within(t, 1e-12, [][]float64{{.06, -.04, -.04}, {.06, .06, -.04}, {.06, -.04}, {.26, .1, .1}, {-.44, -.44}}, got)
	got, err = Steps(c, groups, 6)
	require.NoError(t, err)
	credittest.Within(t, 0, [][]float64{{0, 0, 0}, {0, 0, 0}, {0, 0}, {0, 0, 0}, {0, 0}}, got)

	// By turn: u of the first turns is .5, .3, .8, .2, 0, of the second .3, .5, 0, .2, 0, of the third 0, 0, .5.
	third := .5 / 3
	got, err = Turns(c, groups, 3)
	require.NoError(t, err)
	credittest.Within(t, 1e-12, [][]float64{
		{.14, .1, -third}, {-.06, .3, -third}, {.44, -.2}, {-.16, 0, .5 - third}, {-.36, -.2},
	}, got)
	got, err = Turns(c, groups, 4)
	require.NoError(t, err)
	credittest.Within(t, 1e-12, [][]float64{{.14, .1, 0}, {-.06, .3, 0}, {.44, -.2}, {-.16, 0, 0}, {-.36, -.2}}, got)
}

// The guard of CM2's code, which has four or fewer holders: all zero.
func TestTooFewHolders(t *testing.T) {
	c := Criteria{Weights: []float64{1, 0, 0}, After: []int{-1, -1, -1}, Held: [][][]bool{held("a"), held("a"), held(""), held(""), held()}}
	for _, by := range []func(Criteria, []int, int) ([][]float64, error){Steps, Turns} {
		got, err := by(c, make([]int, 5), 5)
		require.NoError(t, err)
		require.Equal(t, [][]float64{{0}, {0}, {0}, {0}, {}}, got)
		got, err = by(c, make([]int, 5), 4)
		require.NoError(t, err)
		require.Equal(t, [][]float64{{.5}, {.5}, {-.5}, {-.5}, {}}, got)
	}
}

// held are the turns of a trajectory, each the names of the criteria that hold, of a, b and c.
func held(turns ...string) [][]bool {
	out := [][]bool{}
	for _, turn := range turns {
		var criteria []bool
		for _, name := range "abc" {
			holds := false
			for _, h := range turn {
				holds = holds || h == name
			}
			criteria = append(criteria, holds)
		}
		out = append(out, criteria)
	}
	return out
}

func TestErrors(t *testing.T) {
	one := func(change func(*Criteria)) Criteria {
		c := Criteria{Weights: []float64{1, 1, 1}, After: []int{-1, 0, -1}, Held: [][][]bool{held("a", "b")}}
		change(&c)
		return c
	}
	refusals := map[string]credittest.Refusal{}
	for name, by := range map[string]func(Criteria, []int, int) ([][]float64, error){"steps ": Steps, "turns ": Turns} {
		refused := func(what, text string, c Criteria, groups []int, least int) {
			_, err := by(c, groups, least)
			refusals[name+what] = credittest.Refusal{Err: err, Kind: credit.ErrInput, Text: text}
		}
		refused("none", "criteria of 0 rows, 0 group indexes, 0 weights", Criteria{}, nil, 2)
		refused("groups", "criteria of 1 rows, 2 group indexes", one(func(*Criteria) {}), []int{0, 0}, 2)
		refused("dependences", "3 weights and 2 dependences", one(func(c *Criteria) { c.After = c.After[:2] }), []int{0}, 2)
		refused("least", "least_holders is 0", one(func(*Criteria) {}), []int{0}, 0)
		refused("weight", "criterion 1 has the weight NaN", one(func(c *Criteria) { c.Weights[1] = math.NaN() }), []int{0}, 2)
		refused("itself", "depends on criterion 1", one(func(c *Criteria) { c.After[1] = 1 }), []int{0}, 2)
		refused("later", "depends on criterion 2", one(func(c *Criteria) { c.After[1] = 2 }), []int{0}, 2)
		refused("below", "depends on criterion -2", one(func(c *Criteria) { c.After[1] = -2 }), []int{0}, 2)
		refused("turn", "row 0, turn 1 has 2 criteria, there are 3 weights", one(func(c *Criteria) { c.Held[0][1] = c.Held[0][1][:2] }), []int{0}, 2)
	}
	credittest.Refused(t, refusals)
}

func TestTheSameBitsOnMachinesThatFuse(t *testing.T) {
	e := credittest.UniformEpisodes(t)
	c := Criteria{Weights: []float64{0.3, 0.7, -0.1}, After: []int{-1, 0, -1}}
	for row, rewards := range e.Rewards {
		c.Held = append(c.Held, nil)
		for _, r := range rewards {
			c.Held[row] = append(c.Held[row], []bool{r > 0.5, r < 0.2, r*r > 0.3})
		}
	}
	credittest.SameBits(t,
		credittest.Bits{Name: "steps", Want: "d94196de94b5", Compute: func() ([][]float64, error) { return Steps(c, e.Groups, 2) }},
		credittest.Bits{Name: "turns", Want: "b69e8b1f97ad", Compute: func() ([][]float64, error) { return Turns(c, e.Groups, 2) }},
	)
}
