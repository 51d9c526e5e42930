package rewards

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/model/golden"
	"github.com/reprise-rl/reprise/model/reward"
)

// lake is a lake with the player in the middle, a hole above left and the goal below.
var (
	lake  = State{Grid: []string{"O__", "_P_", "_G_"}}
	home  = State{Grid: []string{"O__", "___", "_√_"}, Success: true}
	right = State{Grid: []string{"O__", "__P", "_G_"}}
	room  = State{Grid: []string{"#####", "#PX_#", "#__O#", "#####"}}
)

func newModule(t *testing.T, name, options string) Module {
	t.Helper()
	m, problems, err := New(name, json.RawMessage(options))
	require.NoError(t, err)
	require.Empty(t, problems)
	return m
}

func thought(text string, before, after State) Turn {
	return Turn{
		Reply:    envs.Reply{Formatted: true, Thought: text},
		Executed: 1, Effective: 1, Tokens: 10, Thought: 4, Before: before, After: after,
	}
}

func TestTruth(t *testing.T) {
	require.Equal(t, []reward.Relation{{Object: "goal", Vertical: "below", Horizontal: "same"}, {Object: "hole", Vertical: "above", Horizontal: "left"}},
		truth(layouts["frozenlake"], lake.Grid))
	require.Equal(t, []reward.Relation{{Object: "goal", Vertical: "same", Horizontal: "same"}, {Object: "hole", Vertical: "above", Horizontal: "left"}},
		truth(layouts["frozenlake"], home.Grid))
	require.Equal(t, []reward.Relation{{Object: "box", Vertical: "same", Horizontal: "right"}, {Object: "target", Vertical: "below", Horizontal: "right"}},
		truth(layouts["sokoban"], room.Grid))
	require.Equal(t, 1., distance(layouts["frozenlake"], lake.Grid))
	require.Zero(t, distance(layouts["frozenlake"], home.Grid))
	require.Equal(t, 2., distance(layouts["sokoban"], room.Grid))
}

func TestRelations(t *testing.T) {
	require.Equal(t, []reward.Relation{{Object: "box", Vertical: "above", Horizontal: "left"}, {Object: "goal", Vertical: "below", Horizontal: "same"}},
		Relations("Box above left ; the goal is at below, same"))
	require.Empty(t, Relations("the box, it is above"))
	require.Equal(t, []Said{{observation, "goal below same"}, {prediction, "x"}},
		Tagged("<observation> goal  below same </observation><prediction>x</prediction>"))
	require.Nil(t, Tagged("<observation> goal below same <prediction>x</prediction>"))
}

func TestState(t *testing.T) {
	m := newModule(t, "state", "")
	require.Equal(t, 3, m.Frequent)
	good := "<observation>goal below same; hole above left</observation><prediction>goal same same; hole above left</prediction>"
	half := "<observation>goal below same</observation><prediction>hole above left</prediction>"
	bad := "<observation>goal above same</observation><prediction>nothing</prediction>"
	e := Episode{Environment: "frozenlake", Turns: []Turn{
		thought(good, lake, home), thought(half, lake, home), thought(bad, lake, home), thought("none", lake, home),
	}}
	require.Equal(t, [][]float64{{1.5, 1, .5, 0}}, m.Score([]Episode{e}, nil))
	// A frequent text that says nothing true costs; one that is true does not.
	past := Past{{observation, "goal above same"}: true, {prediction, "nothing"}: true, {observation, "goal below same"}: true}
	golden.Near(t, []float64{1.5, 1, .4, 0}, m.Score([]Episode{e}, past)[0], 1e-12)
	require.Zero(t, newModule(t, "state", `{"anti_template":false}`).Frequent)
}

func TestChecklist(t *testing.T) {
	e := Episode{Environment: "frozenlake", Success: true, Turns: []Turn{thought("", lake, right), thought("", right, lake), thought("", lake, home)}}
	e.Turns[0].Invalid = 1
	items := `"items":"valid 0.25, nearer 0.25, success 0.5"`
	require.Equal(t, [][]float64{{0, 0, 1}}, newModule(t, "checklist", "{"+items+"}").Score([]Episode{e}, nil))
	require.Equal(t, [][]float64{{0, .5, .5}}, newModule(t, "checklist", "{"+items+`,"level":"turn"}`).Score([]Episode{e}, nil))
	// Turn 1 is not valid, so what depends on that waits for turn 2.
	chain := `"items":"acted 0.25, valid 0.25 if acted, success 0.5 if valid"`
	require.Equal(t, [][]float64{{.25, .25, .5}}, newModule(t, "checklist", "{"+chain+`,"level":"turn"}`).Score([]Episode{e}, nil))
	never := e
	never.Turns = []Turn{e.Turns[0]}
	never.Turns[0].After.Success = true
	require.Equal(t, [][]float64{{.25}}, newModule(t, "checklist", "{"+chain+"}").Score([]Episode{never}, nil), "success without a valid turn")
	for _, items := range []string{"valid 0.5 if acted, acted 0.5", "valid 0.5, success 0.5 if", "valid 0.5, success 0.5 if success", "valid 0.5, success 0.5 of valid", "", "valid", "valid 1, valid 1", "valid 0.5", "clean 1", "valid x", "valid -1, acted 2", "valid NaN"} {
		b, err := json.Marshal(map[string]string{"items": items})
		require.NoError(t, err)
		_, problems, err := New("checklist", b)
		require.NoError(t, err)
		require.Len(t, problems, 1, items)
		require.Equal(t, "items", problems[0].Path)
	}
}

func TestTools(t *testing.T) {
	e := Episode{Environment: "countdown", Success: true, Turns: []Turn{
		{Executed: 1, Calls: 1, ValidCalls: 1, After: State{}}, {Executed: 1, Calls: 1}, {Executed: 1, After: State{Success: true}},
	}}
	failed := e
	failed.Success = false
	group := []Episode{e, failed, {Success: true, Turns: e.Turns[2:]}}
	require.Equal(t, [][]float64{{0, 0, .2}, {0, 0, 0}, {0}}, newModule(t, "tools", "").Score(group, nil))
	require.Equal(t, [][]float64{{0, 0, .5}, {0, 0, 0}, {0}}, newModule(t, "tools", `{"coefficient":0.5,"valid_only":true}`).Score(group, nil))
	require.Equal(t, OfEpisode, newModule(t, "tools", "").Stage)
	items := `{"items":"called 0.25, call_valid 0.25, success 0.5","level":"turn"}`
	require.Equal(t, [][]float64{{.5, 0, .5}, {.5, 0, .5}}, newModule(t, "checklist", items).Score([]Episode{e, failed}, nil))
	e.Turns = e.Turns[1:]
	require.Equal(t, [][]float64{{.25, .5}}, newModule(t, "checklist", items).Score([]Episode{e}, nil), "the call was not valid")
}

func TestShaping(t *testing.T) {
	short, long := thought("", lake, home), thought("", lake, right)
	long.Tokens, long.Thought = 20, 2
	group := []Episode{
		{Environment: "frozenlake", Turns: []Turn{short}, Success: true},
		{Environment: "frozenlake", Turns: []Turn{long, short}, Success: true},
		{Environment: "frozenlake", Turns: []Turn{short}},
	}
	require.Equal(t, [][]float64{{.5}, {0, -.5}, {0}}, newModule(t, "length", "").Score(group, nil))
	require.Equal(t, [][]float64{{.5}, {0, -.5}, {0}}, newModule(t, "length", `{"of":"thought"}`).Score(group, nil))

	round := Episode{Environment: "frozenlake", Turns: []Turn{thought("", lake, right), thought("", right, lake), thought("", lake, right), thought("", right, lake)}}
	require.Equal(t, [][]float64{{-1, 1, -1, 1}}, newModule(t, "progress", "").Score([]Episode{round}, nil))
	require.Equal(t, [][]float64{{0, 1, 0, 1}}, newModule(t, "progress", `{"form":"gains"}`).Score([]Episode{round}, nil), "back and forth pays")
}

// A turn module gives a turn the same, whatever follows: a search may score with it.
func TestTurnModulesSeeNoFuture(t *testing.T) {
	e := Episode{Environment: "frozenlake", Turns: []Turn{thought("", lake, right), thought("", right, lake), thought("", lake, home)}, Success: true}
	for _, options := range []struct{ name, options string }{
		{"progress", ""}, {"state", ""}, {"checklist", `{"level":"turn","items":"nearer 0.5, success 0.5"}`},
	} {
		m := newModule(t, options.name, options.options)
		require.Equal(t, OfTurn, m.Stage)
		whole := m.Score([]Episode{e}, nil)[0]
		for n := 1; n < len(e.Turns); n++ {
			part := e
			part.Turns, part.Success = e.Turns[:n], e.Turns[n-1].After.Success
			require.Equal(t, whole[:n], m.Score([]Episode{part}, nil)[0])
		}
	}
}

func TestMeasure(t *testing.T) {
	planted := func(texts ...string) []Episode {
		e := Episode{Environment: "frozenlake"}
		for _, text := range texts {
			e.Turns = append(e.Turns, thought(text, lake, home))
		}
		return []Episode{e}
	}
	require.Equal(t, map[string]float64{"thought/length_mean": 4, "thought/claims": 2, "thought/wrong_share": 0},
		Measure(planted("the goal is below same and player (1,1)")))
	require.Equal(t, map[string]float64{"thought/length_mean": 4, "thought/claims": 4, "thought/wrong_share": .75},
		Measure(planted("goal above same; hole at (2, 2); player (1,1); hole (0,1)")))
	require.Equal(t, map[string]float64{"thought/length_mean": 4, "thought/claims": 0}, Measure(planted("", "")))
	require.Equal(t, map[string]float64{"thought/length_mean": 4, "thought/claims": 2, "thought/wrong_share": .5},
		Measure(planted("<prediction>goal same same; goal below same</prediction>")), "a prediction is about the state after")
	few := make([]string, 6)
	few[0] = "goal above same"
	require.NotContains(t, Measure(planted(few...)), "thought/wrong_share", "too few claims")
	require.Equal(t, map[string]float64{"thought/length_mean": 4}, Measure([]Episode{{Environment: "bandit", Turns: []Turn{thought("goal above same", State{}, State{})}}}))
	require.Empty(t, Measure(nil))
}

func TestLacks(t *testing.T) {
	lake, err := envs.New("frozenlake", nil)
	require.NoError(t, err)
	bandit, err := envs.New("bandit", nil)
	require.NoError(t, err)
	require.Empty(t, newModule(t, "state", "").Lacks(lake, true))
	require.Contains(t, newModule(t, "state", "").Lacks(lake, false), "rollout.think")
	require.Contains(t, newModule(t, "state", "").Lacks(bandit, true), "frozenlake, sokoban")
	require.Contains(t, newModule(t, "progress", "").Lacks(bandit, true), "grid")
	require.Contains(t, newModule(t, "checklist", `{"items":"nearer 1"}`).Lacks(bandit, true), "grid")
	require.Empty(t, newModule(t, "checklist", "").Lacks(bandit, false))
	require.Empty(t, newModule(t, "length", "").Lacks(bandit, false))
	plain, err := envs.New("countdown", nil)
	require.NoError(t, err)
	calculator, err := envs.New("countdown", []byte(`{"calculator":1}`))
	require.NoError(t, err)
	for _, m := range []Module{newModule(t, "tools", ""), newModule(t, "checklist", `{"items":"called 1"}`), newModule(t, "checklist", `{"items":"call_valid 1"}`)} {
		require.Contains(t, m.Lacks(bandit, false), "tools")
		require.Contains(t, m.Lacks(plain, false), "calculator")
		require.Empty(t, m.Lacks(calculator, false))
	}
	require.Contains(t, newModule(t, "length", `{"of":"thought"}`).Lacks(bandit, false), "thoughts")
}

func TestRegistry(t *testing.T) {
	require.Equal(t, []string{"checklist", "first_attempt", "foreign", "improvement", "judge", "length", "progress", "state", "tools"}, Names())
	for _, name := range Names() {
		d, err := describe(name)
		require.NoError(t, err)
		require.NotEmpty(t, d.Summary)
		require.Equal(t, name == "first_attempt" || name == "improvement", len(d.Options) == 0)
		options := map[string]string{"foreign": `{"name":"judge"}`, "judge": `{"judge":"grader","model":"m"}`}[name]
		require.Equal(t, name, newModule(t, name, options).Name)
	}
	_, _, err := New("progres", nil)
	require.ErrorIs(t, err, ErrUnknown)
	require.ErrorContains(t, err, "progress")
	_, err = describe("")
	require.ErrorIs(t, err, ErrUnknown)
	_, problems, err := New("length", json.RawMessage(`{"off":1}`))
	require.NoError(t, err)
	require.Len(t, problems, 1)
}

// SCoRe's first stage takes the first attempt's reward away; its bonus pays the change.
func TestAttempts(t *testing.T) {
	rows := func(rewards ...[]float64) (out []Episode) {
		for _, turns := range rewards {
			var e Episode
			for _, r := range turns {
				e.Turns = append(e.Turns, Turn{Reward: r})
			}
			out = append(out, e)
		}
		return out
	}
	group := rows([]float64{0, 1}, []float64{1, 0}, []float64{1, 1}, []float64{0.1, 0}, []float64{1})
	require.Equal(t, [][]float64{{0, 0}, {1, 0}, {1, 0}, {0.1, 0}, {1}}, newModule(t, "first_attempt", "").Score(group, nil))
	bonus := newModule(t, "improvement", "")
	require.Equal(t, [][]float64{{0, 1}, {0, -1}, {0, 0}, {0, -0.1}, {0}}, bonus.Score(group, nil))
	require.Equal(t, map[string]float64{
		"attempts/first": 0.5, "attempts/second": 0.5, "attempts/gain": 0, "attempts/corrected": 0.25, "attempts/spoiled": 0.25,
	}, bonus.Figures(group[:4]))
	require.Equal(t, map[string]float64{
		"attempts/first": 0.6, "attempts/second": 0.6, "attempts/gain": 0, "attempts/corrected": 0.2, "attempts/spoiled": 0.2,
	}, bonus.Figures(group), "an episode that ended with its first turn has spoiled nothing")
}

// describe is what the list of modules says of one, with its options. The error is of kind ErrUnknown.
func describe(name string) (envs.Description, error) {
	e, err := find(name)
	if err != nil {
		return envs.Description{}, err
	}
	options, _ := envs.ReadOptions(nil, func(o *envs.Options) { e.declare(o) })
	return envs.Description{Name: name, Summary: e.summary, Options: options}, nil
}
