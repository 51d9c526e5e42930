package rewards

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
)

// The range of every option: just outside, at, and just inside of each end.
func TestRangesOfOptions(t *testing.T) {
	long := strings.Repeat("a", 64)
	many := func(n int) string {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("c%d 1", i))
		}
		return strings.Join(names, ", ")
	}
	for _, c := range []struct {
		module, option string
		fits, wrong    []any
	}{
		{"state", "format_reward", []any{0, 100}, []any{-1e-9, 100.5}},
		{"state", "weight", []any{0, 100}, []any{-1e-9, 100.5}},
		{"state", "frequent", []any{1, 64}, []any{0, 65}},
		{"progress", "gamma", []any{0, 1}, []any{-1e-9, 1.005}},
		{"tools", "coefficient", []any{0, 100}, []any{-1e-9, 100.5}},
		{"foreign", "episodes", []any{1, 64}, []any{0, 65}},
		{"foreign", "timeout_seconds", []any{0, 3600}, []any{-1, 3601}},
		{"foreign", "failed_share", []any{0, 1}, []any{-1e-9, 1.005}},
		{"foreign", "options", []any{map[string]int{"a": 1}}, []any{1}},
		{"judge", "temperature", []any{0, 2}, []any{-0.1, 2.1}},
		{"judge", "max_tokens", []any{1, 4096}, []any{0, 4097}},
		{"judge", "unreadable", []any{0, 1}, []any{-1e-9, 1.005}},
		{"judge", "timeout_seconds", []any{0, 3600}, []any{-1, 3601}},
		{"judge", "failed_share", []any{0, 1}, []any{-1e-9, 1.005}},
		{"judge", "judge", []any{"a", "grader-1"}, []any{"", "-a", "A", "a b", strings.Repeat("a", 65)}},
		{"judge", "prompt_tokens", []any{16, 1 << 16}, []any{15, 1<<16 + 1}},
		{"judge", "model", []any{"m", strings.Repeat("m", 200)}, []any{"", strings.Repeat("m", 201)}},
		{"judge", "scale", []any{"yes/no", "0 to 10", "-1 to 1"}, []any{"", "10 to 0", "0-10"}},
		{"judge", "level", []any{"episode", "turn"}, []any{"group"}},
		{"judge", "prompt", []any{"", "{conversation} {form}"}, []any{"{conversation}", "{form}", "{reply} {form}", "{"}},
		{"judge", "criteria", []any{map[string]any{}, map[string]any{"score": "good?"}}, []any{map[string]any{"scor": "good?"}, map[string]any{"score": ""}, map[string]any{"score": 1}, "good?"}},
		{"judge", "components", []any{"score 1", "score -2"}, []any{"", "score", "correct 1", "score 1, correct 1"}},
		{
			"foreign", "components", []any{"a 0", "a 1000000", "a -1000000", long + " 1", "a 1, b 1", many(16)},
			[]any{"a 1000000.5", "a -1000000.5", long + "a 1", "a x", "a +Inf", "é 1", "a 1, b 1, a 1", many(17)},
		},
		{
			"checklist", "items",
			[]any{
				"success 1", "formatted 1", "valid 1e-9, success 0.999999999", "valid 0.5, success 0.5000000005",
				"valid 0.5, success 0.4999999995", "valid 0.5, success 0.5 if valid",
			},
			[]any{
				"valid 0, success 1", "valid 0.5, success 0.500000002", "valid 0.5, success 0.499999998", "success 1.005",
				"valid 0.5, valid 0.5", "valid 0.5, success 0.25, valid 0.25",
			},
		},
	} {
		for _, values := range []struct {
			of   []any
			fits bool
		}{{c.fits, true}, {c.wrong, false}} {
			for _, value := range values.of {
				options := map[string]any{c.option: value}
				switch c.module {
				case "foreign":
					options["name"] = "judge"
				case "judge":
					options = map[string]any{"judge": "grader", "model": "m", c.option: value}
				}
				b, err := json.Marshal(options)
				require.NoError(t, err)
				_, problems, err := New(c.module, b)
				require.NoError(t, err)
				require.Equal(t, values.fits, len(problems) == 0, "%s: %s", c.module, b)
			}
		}
	}
}

// What a module does without options, and what it says of itself.
func TestDefaults(t *testing.T) {
	for name, want := range map[string]string{
		"checklist": `{"items":"valid 0.25, effective 0.25, success 0.5","level":"episode"}`, "first_attempt": `{}`, "improvement": `{}`,
		"foreign": `{"name":"","options":{},"components":"score 1","level":"episode","episodes":8,"timeout_seconds":0,"failed_share":0.05}`,
		"judge": `{"judge":"","model":"","components":"score 1","criteria":{},"scale":"yes/no","level":"episode","prompt":"","temperature":0,"max_tokens":512,"prompt_tokens":1024,
			"unreadable":0,"timeout_seconds":0,"failed_share":0.05}`,
		"length": `{"of":"reply"}`, "progress": `{"form":"potential","gamma":1}`, "tools": `{"coefficient":0.1,"valid_only":false}`,
		"state": `{"format_reward":0.5,"weight":0.5,"anti_template":true,"frequent":3}`,
	} {
		d, err := describe(name)
		require.NoError(t, err)
		got := map[string]any{}
		for _, o := range d.Options {
			got[o.Name] = o.Default
		}
		b, err := json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, want, string(b), name)
	}
	d, err := describe("checklist")
	require.NoError(t, err)
	require.Contains(t, d.Options[0].Doc, "formatted, acted, one_action, valid, effective, nearer, called, call_valid, success")
	_, _, err = New("progres", nil)
	require.ErrorContains(t, err, `did you mean "progress"?`)
	_, _, err = New("zzzzzz", nil)
	require.NotContains(t, err.Error(), "; ")
	require.Equal(t, []string{"goal", "hole"}, Objects("frozenlake"))
	require.Equal(t, []string{"box", "target"}, Objects("sokoban"))
	require.Empty(t, Objects("bandit"))
}

// Each item of a checklist by itself: counts of 0, of 1 and of 2, equal and unequal ones. Only those that read
// a grid or tools lack something in an environment without.
func TestItemsOfChecklists(t *testing.T) {
	bandit, err := envs.New("bandit", nil)
	require.NoError(t, err)
	turn := func(formatted bool, executed, effective, invalid, calls, valid int) Turn {
		return Turn{
			Reply: envs.Reply{Formatted: formatted}, Executed: executed, Effective: effective, Invalid: invalid,
			Calls: calls, ValidCalls: valid, Before: lake, After: lake,
		}
	}
	success := turn(false, 0, 0, 0, 0, 0)
	success.After = home
	near, far := turn(true, 1, 1, 0, 0, 0), turn(true, 1, 1, 0, 0, 0)
	near.Before, near.After = right, lake
	far.Before, far.After = lake, right
	for _, c := range []struct {
		turn  Turn
		holds string
	}{
		{turn(false, 0, 0, 0, 0, 0), ""},
		{turn(true, 0, 0, 0, 0, 0), "formatted"},
		{turn(false, 0, 0, 1, 0, 0), ""},
		{turn(false, 1, 0, 0, 0, 0), "acted one_action valid"},
		{turn(false, 1, 1, 0, 0, 0), "acted one_action valid effective"},
		{turn(false, 1, 1, 1, 1, 0), "acted one_action effective called"},
		{turn(false, 2, 2, 0, 1, 1), "acted valid effective called call_valid"},
		{turn(false, 2, 1, 0, 2, 1), "acted valid called"},
		{success, "nearer success"},
		{near, "formatted acted one_action valid effective nearer"},
		{far, "formatted acted one_action valid effective"},
	} {
		for _, p := range predicates {
			m := newModule(t, "checklist", `{"items":"`+p.name+` 1"}`)
			got := m.Score([]Episode{{Environment: "frozenlake", Turns: []Turn{c.turn}, Success: c.turn.After.Success}}, nil)
			want := 0.0
			if strings.Contains(" "+c.holds+" ", " "+p.name+" ") {
				want = 1
			}
			require.Equal(t, [][]float64{{want}}, got, "%s of %+v", p.name, c.turn)
			require.Equal(t, p.name == "nearer" || p.name == "called" || p.name == "call_valid", m.Lacks(bandit, true) != "", p.name)
			require.Equal(t, OfEpisode, m.Stage)
		}
	}
}

// The criteria of a checklist are its items, by what holds at each turn alone, at either level.
func TestCriteriaOfAChecklist(t *testing.T) {
	for _, level := range []string{"episode", "turn"} {
		m := newModule(t, "checklist", `{"items":"one_action 0.25, success 0.75 if one_action","level":"`+level+`"}`)
		require.Equal(t, []string{"one_action", "success"}, m.Criteria.Names)
		require.Equal(t, []float64{0.25, 0.75}, m.Criteria.Weights)
		require.Equal(t, []int{-1, 0}, m.Criteria.After)
		require.Equal(t, [][]bool{{true, false}, {false, true}}, m.Criteria.Holds(Episode{
			Turns: []Turn{{Executed: 1}, {Executed: 2, After: State{Success: true}}}, Success: true,
		}))
		require.Empty(t, m.Criteria.Holds(Episode{}))
	}
}

// An episode without a turn is paid nothing, by every module.
func TestNoTurns(t *testing.T) {
	for _, name := range Names() {
		m := newModule(t, name, map[string]string{"foreign": `{"name":"judge"}`, "judge": `{"judge":"grader","model":"m"}`}[name])
		one := Episode{Environment: "frozenlake", Judged: []float64{1}}
		other := Episode{Environment: "frozenlake", Judged: []float64{2}, Success: true}
		got := m.Score([]Episode{one, other}, nil)
		require.Len(t, got, 2, name)
		require.Empty(t, got[0], name)
		require.Empty(t, got[1], name)
	}
	require.Equal(t, map[string]float64{
		"attempts/first": 0, "attempts/second": 0, "attempts/gain": 0, "attempts/corrected": 0, "attempts/spoiled": 0,
	}, newModule(t, "improvement", "").Figures([]Episode{{}}))
	require.Empty(t, Measure([]Episode{{Environment: "frozenlake"}}))
}

// Grids at their edges: nobody there, several of a kind, on top of each other, equally near.
func TestGridsAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		grid string
		want float64
	}{
		{"X__O", 3}, {"O__X", 3}, {"√", 0}, {"X__O/____/O__X", 4}, {"√_X", 0}, {"X_√", 0}, {"O_O_O", 0}, {"XX", 0}, {"", 0},
		{"O/_/X", 2}, {"X/_/O", 2}, {"O_/_X", 2}, {"X_O_X", 2}, {"XO_O", 4}, {"S__X", 3},
	} {
		require.Equal(t, c.want, distance(layouts["sokoban"], strings.Split(c.grid, "/")), c.grid)
	}
	require.Nil(t, truth(layouts["frozenlake"], []string{"O_", "_G"}), "nobody is there")
	require.Nil(t, truth(layouts["frozenlake"], nil))
	for d, want := range map[int]string{-2: "less", -1: "less", 0: "same", 1: "more", 2: "more"} {
		require.Equal(t, want, side(d, "less", "more"))
	}
	for name, gridded := range map[string]bool{"frozenlake": true, "sokoban": true, "bandit": false} {
		env, err := envs.New(name, nil)
		require.NoError(t, err)
		require.Equal(t, gridded, placed(env), name)
		s := StateOf(env.Cases()[0])
		require.Equal(t, gridded, len(s.Grid) > 0, name)
		require.False(t, s.Success)
	}

	// A kind that neither the state nor the text has does not count.
	dry := State{Grid: []string{"_P_", "_G_"}}
	state := newModule(t, "state", `{"anti_template":false}`)
	pays := func(before, after string) float64 {
		text := "<observation>" + before + "</observation><prediction>" + after + "</prediction>"
		return state.Score([]Episode{{Environment: "frozenlake", Turns: []Turn{thought(text, dry, dry)}}}, nil)[0][0]
	}
	require.Equal(t, 1.5, pays("goal below same", "goal below same"))
	require.Equal(t, 1.25, pays("goal below same; hole below same", "goal below same"), "half of what is said of a hole")
	require.Equal(t, .5, pays("hole below same", ""))
}

// Of replies and of thoughts the lengths differ.
func TestLengthsOfThoughts(t *testing.T) {
	row := func(tokens, thought int) Episode {
		return Episode{Success: true, Turns: []Turn{{Tokens: tokens, Thought: thought}, {Tokens: 1, Thought: 1}}}
	}
	group := []Episode{row(10, 0), row(20, 8), row(30, 4)}
	require.Equal(t, [][]float64{{0, .5}, {0, 0}, {0, -.5}}, newModule(t, "length", "").Score(group, nil))
	require.Equal(t, [][]float64{{0, .5}, {0, -.5}, {0, 0}}, newModule(t, "length", `{"of":"thought"}`).Score(group, nil))
}

// A share of wrong claims takes a fifth of a claim a turn; turns without a grid count for the length alone.
func TestMeasureAtTheEdges(t *testing.T) {
	episode := func(claims, turns int) Episode {
		e := Episode{Environment: "frozenlake"}
		for k := range turns {
			text := ""
			if k < claims {
				text = "goal above same"
			}
			e.Turns = append(e.Turns, thought(text, lake, lake))
		}
		return e
	}
	for turns, want := range map[int]map[string]float64{
		4: {"thought/length_mean": 4, "thought/claims": .25, "thought/wrong_share": 1},
		5: {"thought/length_mean": 4, "thought/claims": .2, "thought/wrong_share": 1},
		6: {"thought/length_mean": 4, "thought/claims": 1. / 6},
	} {
		require.Equal(t, want, Measure([]Episode{episode(1, turns)}), "%d turns", turns)
	}
	bare := episode(0, 1)
	bare.Turns[0].Before.Grid, bare.Turns[0].Thought = nil, 10
	elsewhere := episode(0, 1)
	elsewhere.Environment = "bandit"
	require.Equal(t, map[string]float64{"thought/length_mean": 5.5, "thought/claims": 1, "thought/wrong_share": 1},
		Measure([]Episode{episode(2, 2), bare, elsewhere}))
	// Places are row and column; the player, a goal and a hole each at their own.
	for text, wrong := range map[string]float64{
		"goal (2,1)": 0, "goal (1,2)": 1, "hole (0,0)": 0, "hole (0,1)": 1, "player (1,1)": 0, "player (2,1)": 1, "goal is at ( 2 , 1 )": 0,
		"box (0,0)": 1,
	} {
		e := Episode{Environment: "frozenlake", Turns: []Turn{thought(text, lake, lake)}}
		want := map[string]float64{"thought/length_mean": 4, "thought/claims": 1, "thought/wrong_share": wrong}
		require.Equal(t, want, Measure([]Episode{e}), text)
	}
}

// What comes from maps comes out the same fifty times: rewards of texts that were as frequent as each other, and
// the names in what a module lacks.
func TestFiftyTimesTheSame(t *testing.T) {
	bandit, err := envs.New("bandit", nil)
	require.NoError(t, err)
	text := "<observation>goal above same</observation><prediction>goal above same</prediction>"
	e := Episode{Environment: "frozenlake", Turns: []Turn{thought(text, lake, lake), thought(text, right, right)}}
	of := func() string {
		past := Past{}
		for i := range 20 {
			past[Said{observation, fmt.Sprint(i)}] = true
		}
		past[Said{prediction, "goal above same"}] = true
		m := newModule(t, "state", "")
		return fmt.Sprint(m.Score([]Episode{e, e}, past), m.Lacks(bandit, true), Measure([]Episode{e}), gridded())
	}
	first := of()
	for range 50 {
		require.Equal(t, first, of())
	}
}
