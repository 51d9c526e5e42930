package program

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/suites"
	"github.com/reprise-rl/reprise/model/draw"
)

// runEnv runs `reprise env …` with a text on its standard input.
func runEnv(t *testing.T, in string, args ...string) (out, errOut string, err error) {
	t.Helper()
	var o, e bytes.Buffer
	cmd := root()
	cmd.SetArgs(append([]string{"env"}, args...))
	cmd.SetIn(strings.NewReader(in))
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	err = cmd.Execute()
	return o.String(), e.String(), err
}

// layoutFile writes a layout.
func layoutFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "layout.txt")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func TestEnvPlay(t *testing.T) {
	file := layoutFile(t, "######\n#P_XO#\n######\n")
	for name, c := range map[string]struct {
		in   string
		args []string
		want string
		err  string // on standard error
	}{
		"to the end": {"", []string{"--env", "sokoban", "--layout", file, "--actions", "Up, right,jump,Right,Left"}, `{"step":0,"grid":["######","#P_XO#","######"],"observation":"######\n#P_XO#\n######"}
{"step":1,"action":"Up","grid":["######","#P_XO#","######"],"reward":-0.1,"done":false,"effective":false,"valid":true,"success":false}
{"step":2,"action":"Right","grid":["######","#_PXO#","######"],"reward":-0.1,"done":false,"effective":true,"valid":true,"success":false}
{"step":3,"action":"jump","grid":["######","#_PXO#","######"],"reward":0,"done":false,"effective":false,"valid":false,"success":false}
{"step":4,"action":"Right","grid":["######","#__P√#","######"],"reward":10.9,"done":true,"effective":true,"valid":true,"success":true}
`, "the episode ended with action 4; 1 more were not taken\n"},
		"other glyphs in the observation alone": {"", []string{"--env", "sokoban", "--layout", file, "--options", ` {"preset":"new-vocabulary"} `, "--actions", ""},
			`{"step":0,"grid":["######","#P_XO#","######"],"observation":"WWWWWW\nWA.BGW\nWWWWWW"}` + "\n", ""},
		"from a program": {"\nRight\nDown\n", []string{"--env", "frozenlake", "--layout", layoutFile(t, "SFG"), "--options", `{"slippery":false}`}, `{"step":0,"grid":["P_G"],"observation":"P_G"}
{"step":1,"action":"Right","grid":["_PG"],"reward":0,"done":false,"effective":true,"valid":true,"success":false}
{"step":2,"action":"Down","grid":["_PG"],"reward":0,"done":false,"effective":false,"valid":true,"success":false}
`, ""},
		"no grid": {"", []string{"--env", "bandit", "--options", `{"low_name":"A","high_name":"B"}`, "--actions", "a"}, `{"step":0,"observation":"Arms: B, A"}
{"step":1,"action":"A","reward":0.15,"done":true,"effective":true,"valid":true,"success":false,"text":"A: 0.15 points"}
`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, err := runEnv(t, c.in, append([]string{"play"}, c.args...)...)
			require.NoError(t, err)
			require.Equal(t, c.want, out)
			if c.err == "" {
				require.Empty(t, errOut)
			}
			require.Contains(t, errOut, c.err)
		})
	}
}

// A seed is a room, and another seed another.
func TestEnvPlaySeed(t *testing.T) {
	play := func(seed string) string {
		out, _, err := runEnv(t, "", "play", "--env", "sokoban", "--seed", seed, "--actions", "")
		require.NoError(t, err)
		return out
	}
	require.Equal(t, play("3"), play("3"))
	require.NotEqual(t, play("3"), play("4"))
}

func TestEnvPlayInTerminal(t *testing.T) {
	env, err := envs.New("sokoban", json.RawMessage(`{"layout":"######\n#P_XO#\n######"}`))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, playInTerminal(strings.NewReader("u hop\nri, R\n"), &out, env.Reset(draw.Address{}, draw.Address{})))
	for _, want := range []string{"#P_XO#", "Up: -0.1, nothing changed", `"hop" is none of them`, "Right: 10.9", "solved after 3 actions, reward 10.7"} {
		require.Contains(t, out.String(), want)
	}
	out.Reset()
	require.NoError(t, playInTerminal(strings.NewReader("r\nq\n"), &out, env.Reset(draw.Address{}, draw.Address{})))
	require.NotContains(t, out.String(), "solved")
}

func TestEnvTransitions(t *testing.T) {
	out, _, err := runEnv(t, "", "transitions", "--env", "frozenlake", "--layout", layoutFile(t, "SG\n"), "--options", `{"slippery":true,"success_rate":0.8}`)
	require.NoError(t, err)
	var got struct {
		P map[string]map[string][][4]any
	}
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Len(t, got.P, 2)
	right := got.P["0"]["2"]
	require.Len(t, right, 3)
	require.Equal(t, [4]any{0.8, 1.0, 1.0, true}, right[1])
	require.Equal(t, [][4]any{{1.0, 1.0, 0.0, true}}, got.P["1"]["0"])
	_, _, err = runEnv(t, "", "transitions", "--env", "sokoban")
	require.ErrorIs(t, err, errNoTable)
}

func TestEnvList(t *testing.T) {
	out, _, err := runEnv(t, "", "list")
	require.NoError(t, err)
	for _, want := range []string{"bandit: ", "frozenlake: ", "sokoban: ", "success_rate", `"simple"`} {
		require.Contains(t, out, want)
	}
	out, _, err = runEnv(t, "", "list", "--json")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, len(envs.Names()))
	for i, line := range lines {
		var d envs.Description
		require.NoError(t, json.Unmarshal([]byte(line), &d))
		require.Equal(t, envs.Names()[i], d.Name)
	}
}

// The printed suite is a suite again, written out.
func TestEnvSuites(t *testing.T) {
	out, _, err := runEnv(t, "", "suites")
	require.NoError(t, err)
	require.Contains(t, out, "in-distribution         the run's own")
	out, _, err = runEnv(t, "", "suites", "--json")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.Len(t, lines, len(suites.Names()))
	for i, line := range lines {
		var s suiteJSON
		require.NoError(t, json.Unmarshal([]byte(line), &s))
		require.Equal(t, suites.Names()[i], s.Name)
		require.NotEmpty(t, s.Doc)
		_, err := envs.New(s.Environment, s.Options)
		require.NoError(t, err)
	}
}

func TestEnvErrors(t *testing.T) {
	bad := layoutFile(t, "#####\n#PXQ#\n#####\n")
	empty := layoutFile(t, "\n\n")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"unknown environment": {[]string{"--env", "sokobann"}, `did you mean "sokoban"?`},
		"no environment":      {nil, `"env" not set`},
		"unknown option":      {[]string{"--env", "sokoban", "--options", `{"boxs":1}`}, `did you mean "boxes"?`},
		"options of no form":  {[]string{"--env", "sokoban", "--layout", bad, "--options", `[]`}, `want a JSON object`},
		"options cut short":   {[]string{"--env", "sokoban", "--layout", bad, "--options", `{`}, `valid JSON`},
		"layout twice":        {[]string{"--env", "sokoban", "--layout", bad, "--options", `{"layout":"x"}`}, `each option once`},
		"bad glyph":           {[]string{"--env", "sokoban", "--layout", bad}, bad + `: options of environment "sokoban": layout: found 'Q' in line 2, column 4, want one of the glyphs #_O√XPS`},
		"bytes of no glyph":   {[]string{"--env", "frozenlake", "--layout", layoutFile(t, "SF\n\xffG")}, `in line 2, column 1`},
		"empty layout":        {[]string{"--env", "sokoban", "--layout", empty}, empty + ": found no cells"},
		"huge layout":         {[]string{"--env", "sokoban", "--layout", layoutFile(t, strings.Repeat("#", maxLayout+1))}, "at most 50 rows"},
		"no such file":        {[]string{"--env", "sokoban", "--layout", bad + "x"}, "read layout"},
		"no layouts":          {[]string{"--env", "bandit", "--layout", bad}, "want one of the options names"},
	} {
		t.Run(name, func(t *testing.T) {
			out, _, err := runEnv(t, "", append([]string{"play"}, c.args...)...)
			require.ErrorContains(t, err, c.want)
			require.Empty(t, out)
		})
	}
}

// riddle is an episode of texts: each answer changes the question.
type riddle struct{ asked int }

func (r *riddle) Observation() string           { return []string{"What?", "Warm. What else?", ""}[r.asked] }
func (r *riddle) Legal(a string) (string, bool) { return a, true }
func (r *riddle) Choices() []string             { return []string{"x"} }
func (r *riddle) StateKey() string              { return r.Observation() }
func (r *riddle) Done() bool                    { return r.asked == 2 }
func (r *riddle) Success() bool                 { return false }
func (r *riddle) Step(string) envs.Outcome      { r.asked++; return envs.Outcome{Done: r.Done()} }

// Where the state is a text, each line has it, not the first alone.
func TestEnvPlayOfTexts(t *testing.T) {
	var out, errOut bytes.Buffer
	require.NoError(t, playActions(&out, &errOut, &riddle{}, []string{"a", "b"}))
	require.Equal(t, `{"step":0,"observation":"What?"}
{"step":1,"action":"a","reward":0,"done":false,"effective":false,"valid":true,"success":false,"observation":"Warm. What else?"}
{"step":2,"action":"b","reward":0,"done":true,"effective":false,"valid":true,"success":false}
`, out.String())
}

// Programs are run, in a process of their own.
func TestPlayGraded(t *testing.T) {
	env, err := envs.New("code", json.RawMessage(`{"levels":"1","about":"numbers","tries":2,"seconds":30}`))
	require.NoError(t, err)
	begin := func() envs.Episode { return env.Reset(draw.Address{Purpose: draw.Instance}, draw.Address{}) }
	right := begin().(envs.Advised).Advice(1)[0]
	var out bytes.Buffer
	require.NoError(t, playGraded(t.Context(), strings.NewReader("def f(x): return 'x'\n"+right+"\n"), &out, begin()))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	require.Contains(t, lines[0], "Define f(x)")
	require.Contains(t, lines[1], `"text":"Example 1 fails. It gives \"x\"."`)
	require.Contains(t, lines[2], `"success":true`)
	require.Contains(t, lines[2], `# answered `)
}
