package code

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
)

// written writes a file of a test and gives its path.
func writtenFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

const twoProblems = `{"prompt":"Write a function twice(n).","tests":["assert twice(3) == 6","twice(0) == 0","twice(-1) == -2"],"solution":"def twice(n): return n + n","split":"train"}
{"prompt":"Write first(l, d).","tests":["first([], d=1) == 1"],"split":"test"}
`

func TestFile(t *testing.T) {
	path := writtenFile(t, "problems.jsonl", twoProblems)
	c := newCode(t, fmt.Sprintf(`{"problems":%q}`, path))
	e := c.Reset(instance(1), draw.Address{}).(*episode)
	require.Equal(t, "Write a function twice(n).\ntwice(3) == 6\ntwice(0) == 0", e.Observation())
	require.Len(t, e.problem.hidden, 1, "one is always hidden")
	require.Equal(t, "def twice(*args): return 0", e.Choices()[0])
	require.True(t, try(t, e, e.Advice(1)[0]).Success)

	test := newCode(t, string(c.HeldOut()))
	e = test.Reset(instance(1), draw.Address{}).(*episode)
	require.Equal(t, "Write first(l, d).", e.Observation())
	require.Empty(t, e.Advice(1))
	require.True(t, try(t, e, "def first(l, d): return l[0] if l else d").Success)

	pinned, err := c.Pin()
	require.NoError(t, err)
	require.Contains(t, string(pinned), `"problems_sha256":"`)
	newCode(t, string(pinned))
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(twoProblems, "3", "4")), 0o644))
	_, err = envs.New(Name, pinned)
	require.ErrorContains(t, err, "problems_sha256")

	type row struct {
		Text     string   `parquet:"text"`
		TestList []string `parquet:"test_list,list"`
	}
	table := filepath.Join(t.TempDir(), "problems.parquet")
	require.NoError(t, parquet.WriteFile(table, []row{{"Write f(x).", []string{"assert f(1) == [1]", "assert f(2) == [2]"}}}))
	c = newCode(t, fmt.Sprintf(`{"problems":%q,"prompt_field":"text","tests_field":"test_list","split":"all","instances":1}`, table))
	require.Equal(t, "Write f(x).\nf(1) == [1]", c.Reset(instance(4), draw.Address{}).Observation())
	require.Equal(t, All, newCode(t, string(c.HeldOut())).options.Split)
}

func TestProblemsOfOptions(t *testing.T) {
	good := writtenFile(t, "good.jsonl", twoProblems)
	bad := func(line string) string {
		return fmt.Sprintf(`{"problems":%q}`, writtenFile(t, "bad.jsonl", twoProblems+line))
	}
	for options, want := range map[string]string{
		`{"levels":"4"}`:            "levels: found \"4\", want one of 1, 1-2",
		`{"about":"maps"}`:          "about: found",
		`{"tests":2}`:               "tests: found 2, want from 3 to 40",
		`{"examples":4}`:            "examples: found 4",
		`{"tries":0}`:               "tries: found 0",
		`{"reward":"half"}`:         "reward: found",
		`{"memory_mb":1}`:           "memory_mb: found 1",
		`{"problems":"none.jsonl"}`: "problems: found \"none.jsonl\"",
		`{"problems_sha256":"00"}`:  "64 lower-case hexadecimal digits",
		`{"prompt_field":"tests"}`:  "another field than prompt_field's",
		`{"tests_field":"split"}`:   "another field than split and solution",
		`{"prompt_field":""}`:       "1 to 100 bytes",
		fmt.Sprintf(`{"problems":%q,"instances":9}`, good):                                 "at most 1, the problems there are",
		bad(`{"prompt":"a","tests":["f(1) == g(1)"]}`):                                     "line 3: found",
		bad(`{"prompt":"a","tests":[]}`):                                                   "1 to 256 tests",
		bad(`{"prompt":" ","tests":["f(1) == 1"]}`):                                        "a task in the field",
		bad(`{"prompt":"` + strings.Repeat("a", maxPrompt+1) + `","tests":["f(1) == 1"]}`): "at most 8192 bytes",
		bad(`{"prompt":"a","tests":["f(1) == 1"],"split":"dev"}`):                          "train or test",
		bad(`{"prompt":"a","tests":["f(1) == 1"],"solution":"a || b"}`):                    "without ||",
		bad(`{"prompt":"a"}`):                                                              "tests",
	} {
		_, err := envs.New(Name, json.RawMessage(options))
		if want == "line 3: found" { // the place is a part of what was found
			require.ErrorContains(t, err, "line 3")
			require.ErrorContains(t, err, "a test such as f(3) == 9")
			continue
		}
		require.ErrorContains(t, err, want, options)
	}
}

// The widths hold whatever is asked, and whatever a program does.
func TestWidths(t *testing.T) {
	path := writtenFile(t, "problems.jsonl", twoProblems+`{"prompt":"ééé `+strings.Repeat("wide ", 60)+`","tests":["f(1) == 1"],"split":"train"}`)
	for _, options := range []string{`{"levels":"1-3","tries":3,"examples":3}`, `{"levels":"1","about":"numbers"}`, fmt.Sprintf(`{"problems":%q,"tries":2}`, path)} {
		for _, v := range []starter.Vocabulary{starter.First, starter.Second} {
			tok, err := v.Tokenizer()
			require.NoError(t, err)
			c := newCode(t, options)
			p := envs.Protocol{}
			turns := c.options.Tries
			widths, err := envs.MaxPromptTokens(c, tok, p, turns, 16)
			require.NoError(t, err)
			most := 0
			for n := range 30 {
				e := c.Reset(instance(n), draw.Address{})
				ids, err := p.PromptIDs(tok, c, e)
				require.NoError(t, err)
				most = max(most, len(ids))
				if turns == 1 {
					continue
				}
				odd := envs.ToolAnswer{Text: strings.Repeat("~^q;", 100), Failed: true}
				o := e.Step(e.(envs.Graded).WithAnswer("def f(x): return 1", odd))
				next, err := p.ContinueIDs(tok, c, e, envs.NextTurn{Number: 2, Reward: o.Reward, ActionsLeft: turns - 1}, nil)
				require.NoError(t, err)
				require.LessOrEqual(t, len(ids)+16+len(next), widths[1], options)
			}
			require.LessOrEqual(t, most, widths[0])
			t.Logf("%s: at most %d tokens met, widths %v", options, most, widths)
		}
	}
}
