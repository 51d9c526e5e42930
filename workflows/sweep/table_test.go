package sweep

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/draw"
)

func TestValueAdd(t *testing.T) {
	v := NoValue()
	for i, x := range []float64{0.5, math.NaN(), 0.75, 0.75, 0.25} {
		v = v.Add(x, i, Maximize)
	}
	require.Equal(t, Value{Last: 0.25, Best: 0.75, At: 2}, v)
	v = NoValue().Add(3, 0, Minimize).Add(1, 1, Minimize).Add(2, 2, Minimize)
	require.Equal(t, Value{Last: 2, Best: 1, At: 1}, v)
}

func TestTable(t *testing.T) {
	d := Definition{Metrics: []string{"success/mean", "reward/mean"}, Goal: Maximize, Stopping: &Stopping{Method: Median}}
	row := func(label, setting string, seed uint64, state State, success float64) Row {
		return Row{Trial: label, Setting: setting, Seed: seed, State: state, Iterations: 3, Of: 3,
			Metrics: map[string]Value{"success/mean": {Last: canon.Float(success), Best: 1, At: 1}}}
	}
	rows := []Row{
		row("b,seed=1", "b", 1, Done, 0.5), row("a,seed=1", "a", 1, Done, 0.25),
		row("b,seed=2", "b", 2, Done, 0.7), row("a,seed=2", "a", 2, Failed, 0.9),
		row("b,seed=3", "b", 3, Stopped, 0), row("c,seed=1", "c", 1, Dropped, 0),
	}
	rows[0].Manifest = "abc"
	table := NewTable("s", "d", d, rows, []Decision{{Trial: 4, Iterations: 2, Value: 0, Bound: 0.5, Before: 4}})
	require.Len(t, table.Settings, 2, "what was dropped is in no setting")
	b := table.Settings[0]
	require.Equal(t, "b", b.Setting)
	require.Equal(t, 3, b.Trials)
	require.Equal(t, 2, b.Done)
	s := b.Metrics["success/mean"]
	require.Equal(t, 2, s.N)
	require.InDelta(t, 0.6, float64(s.Mean), 1e-12)
	require.InDelta(t, 0.6-12.7062*0.1, float64(s.Low), 1e-4)
	require.InDelta(t, 0.6+12.7062*0.1, float64(s.High), 1e-4)
	require.NotContains(t, b.Metrics, "reward/mean")
	require.Equal(t, 1, table.Settings[1].Metrics["success/mean"].N)

	text, err := table.JSON()
	require.NoError(t, err)
	require.Contains(t, string(text), `"settings":[{"done":2,"metrics":{"success/mean":{"deviation":`)
	require.Contains(t, string(text), `"high":"NaN"`, "one value has no interval")
	require.Contains(t, string(text), `stopped after 2 iterations: success/mean 0 did not reach 0.5, the median of the 4 trials before it`)
	again, err := NewTable("s", "d", d, rows, []Decision{{Trial: 4, Iterations: 2, Value: 0, Bound: 0.5, Before: 4}}).JSON()
	require.NoError(t, err)
	require.Equal(t, text, again)
}

func points(values ...float64) []Point {
	var out []Point
	for _, v := range values {
		out = append(out, Point{Known: true, Judged: canon.Float(v), Against: canon.Float(v)})
	}
	return out
}

func TestDecide(t *testing.T) {
	median := &Stopping{Method: Median, First: 1, Every: 1, MinTrials: 2}
	halving := &Stopping{Method: Halving, First: 1, Factor: 2, MinTrials: 1}
	open := func(values ...float64) Progress { return Progress{Points: points(values...)} }
	ended := func(values ...float64) Progress { return Progress{Points: points(values...), Ended: true} }
	nan := math.NaN()
	type stop struct{ trial, iterations int }
	for name, c := range map[string]struct {
		rule   *Stopping
		goal   string
		trials []Progress
		want   []stop
	}{
		"no rule":                              {nil, Maximize, []Progress{open(1), open(0)}, nil},
		"too few before":                       {median, Maximize, []Progress{open(1), open(0)}, nil},
		"below the median":                     {median, Maximize, []Progress{open(1), open(2), open(1)}, []stop{{2, 1}}},
		"at the median":                        {median, Maximize, []Progress{open(1), open(1), open(1)}, nil},
		"above it is worse":                    {median, Minimize, []Progress{open(1), open(2), open(2)}, []stop{{2, 1}}},
		"the one before is not there yet":      {median, Maximize, []Progress{open(1), open(2), open(), open(0)}, nil},
		"the one before has ended":             {median, Maximize, []Progress{open(1), open(2), ended(), open(0)}, []stop{{3, 1}}},
		"no number is not judged":              {median, Maximize, []Progress{open(1), open(2), open(nan), open(0)}, []stop{{3, 1}}},
		"no numbers do not count":              {median, Maximize, []Progress{open(nan), open(nan), open(1), open(0)}, nil},
		"what is stopped counts at that rung":  {median, Maximize, []Progress{open(3), open(2), open(1), open(2)}, []stop{{2, 1}}},
		"and not at the next":                  {median, Maximize, []Progress{open(3, 3), open(2, 2), open(1, 9), open(2, 2.4)}, []stop{{2, 1}, {3, 2}}},
		"the second rung":                      {median, Maximize, []Progress{open(1, 3), open(1, 3), open(2, 2)}, []stop{{2, 2}}},
		"a rung waits for the one before it":   {median, Maximize, []Progress{open(1, 3), open(1, 3), open(), ended(2, 2), open(2, 2)}, nil},
		"the end is judged too":                {median, Maximize, []Progress{ended(1, 3), ended(1, 3), ended(0, 9)}, []stop{{2, 1}}},
		"halving: the better half":             {halving, Maximize, []Progress{open(1), open(2), open(3), open(1.5), open(2.5)}, []stop{{3, 1}}},
		"halving: the first":                   {halving, Maximize, []Progress{open(1)}, nil},
		"halving: the second, worse":           {halving, Maximize, []Progress{open(1), open(0.5)}, []stop{{1, 1}}},
		"halving: the second, equal":           {halving, Maximize, []Progress{open(1), open(1)}, nil},
		"halving: smaller is better":           {halving, Minimize, []Progress{open(1), open(2), open(0.5)}, []stop{{1, 1}}},
		"halving: the next rung among the few": {halving, Maximize, []Progress{open(1, 5), open(0, 9), open(2, 4)}, []stop{{1, 1}, {2, 2}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []stop
			for _, d := range c.rule.Decide(c.trials, []int{1, 2}, c.goal) {
				got = append(got, stop{d.Trial, d.Iterations})
			}
			require.Equal(t, c.want, got)
		})
	}
}

// In whatever order the points come, what is decided is decided for good, and in
// the end it is the same.
func TestDecisionsDoNotDependOnTime(t *testing.T) {
	const trials, iterations = 30, 9
	for _, rule := range []*Stopping{{Method: Median, First: 1, Every: 2, MinTrials: 3}, {Method: Halving, First: 1, Factor: 2, MinTrials: 2}} {
		rungs := rule.Rungs(iterations)
		curve := func(trial, rung int) float64 { return math.Mod(float64(trial*37+rung*11)*0.618, 1) }
		var want []Decision
		for round := range 20 {
			state := make([]Progress, trials)
			var before []Decision
			order := draw.Address{Seed: uint64(round)}.Rand().Perm(trials * len(rungs))
			for _, n := range order {
				p := &state[n%trials] // each trial as often as there are rungs
				p.Points = append(p.Points, points(curve(n%trials, len(p.Points)))...)
				p.Ended = len(p.Points) == len(rungs)
				now := rule.Decide(state, rungs, Maximize)
				for _, d := range before {
					require.Contains(t, now, d, "what is decided stays")
				}
				before = now
			}
			if round == 0 {
				want = before
				require.NotEmpty(t, want)
			}
			require.Equal(t, want, before)
		}
	}
}

func TestRungs(t *testing.T) {
	require.Equal(t, []int{10, 15, 20}, (&Stopping{Method: Median, First: 10, Every: 5}).Rungs(25))
	require.Equal(t, []int{3, 9, 27}, (&Stopping{Method: Halving, First: 3, Factor: 3}).Rungs(81))
	require.Empty(t, (&Stopping{Method: Halving, First: 3, Factor: 3}).Rungs(3))
	require.Len(t, (&Stopping{Method: Median, First: 1, Every: 1}).Rungs(1_000_000), maxRungs)
	var none *Stopping
	require.Empty(t, none.Rungs(100))
}

func TestCurve(t *testing.T) {
	var c Curve
	for _, v := range []float64{0.5, 1, math.NaN(), 0.75} {
		c = c.Add(v, Maximize)
	}
	require.Equal(t, Point{Known: true, Judged: 1, Against: 0.75}, (&Stopping{Method: Median}).At(c))
	require.Equal(t, Point{Known: true, Judged: 0.75, Against: 0.75}, (&Stopping{Method: Halving}).At(c))
	require.True(t, math.IsNaN(float64((&Stopping{Method: Halving}).At(Curve{}).Judged)))
	require.Equal(t, canon.Float(0.5), Curve{}.Add(1, Minimize).Add(0.5, Minimize).Best)
}

// An interval of shares ends at 0 and 1, whatever Student's distribution says.
func TestPossible(t *testing.T) {
	for metric, want := range map[string][2]float64{
		"success/mean": {0, 1}, "evaluation/success/mean": {0, 1}, "evaluation/pass@4": {0, 1}, "valid/mean": {0, 1},
		"reward/mean": {-0.2, 1.3}, "evaluation/reward/mean": {-0.2, 1.3}, "actor/entropy": {-0.2, 1.3},
	} {
		low, high := Possible(metric, -0.2, 1.3)
		require.Equal(t, want, [2]float64{low, high}, metric)
	}
	low, high := Possible("success/mean", 0.25, 0.75)
	require.Equal(t, [2]float64{0.25, 0.75}, [2]float64{low, high})
	low, high = Possible("success/mean", math.NaN(), math.NaN())
	require.True(t, math.IsNaN(low) && math.IsNaN(high), "no interval is none")
}
