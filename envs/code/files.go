package code

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"go.starlark.net/syntax"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/envs/rows"
	"github.com/reprise-rl/reprise/envs/tools/starlark"
)

// Limits of a file, beside those of package rows.
const (
	maxRows       = 1 << 20
	maxPrompt     = 8192 // bytes
	fileTestShare = 8    // one problem of a file of so many is for tests
	splitField    = "split"
	solutionField = "solution"
	problemFile   = "a file of problems"
)

// load reads the file and keeps the problems that the options ask for.
func (c *Code) load(table *envs.Options) {
	o := &c.options
	content, ok := rows.OpenPinned(table, "problems", o.File, &o.SHA256, problemFile)
	if !ok {
		return
	}
	all, splits, err := readProblems(content, o.PromptField, o.TestsField, o.Examples)
	if err != nil {
		table.WrongFile("problems", o.File, err, problemFile)
		return
	}
	for i, p := range all {
		c.hasTests = c.hasTests || splits[i] == Test
		if o.Split == All || o.Split == splits[i] {
			c.problems = append(c.problems, p)
		}
	}
	switch n := len(c.problems); {
	case n == 0:
		table.Wrong("split", fmt.Sprintf("another one: none of the %d problems is in it", len(all)))
	case o.Instances > n:
		table.Wrong("instances", fmt.Sprintf("at most %d, the problems there are", n))
	case o.Instances > 0:
		c.problems = board.Some(c.problems, o.Instances, o.Pool)
	}
}

// readProblems reads problems and what each is for. Errors are a *rows.Error.
func readProblems(content []byte, promptField, testsField string, examples int) (all []problem, splits []string, err error) {
	form := rows.Form{
		Columns: []rows.Column{
			{Name: promptField}, {Name: testsField, List: true}, {Name: splitField, Optional: true}, {Name: solutionField, Optional: true},
		},
		Noun: "problem", Example: `{"prompt":"…","tests":["f(3) == 9"]}`, Most: maxRows,
	}
	err = rows.Read(content, form, func(values [][]string) (column, want string) {
		prompt := strings.TrimSpace(values[0][0])
		switch {
		case prompt == "":
			return promptField, fmt.Sprintf("a task in the field %q", promptField)
		case len(prompt) > maxPrompt:
			return promptField, fmt.Sprintf("a task of at most %d bytes", maxPrompt)
		case len(values[1]) == 0 || len(values[1]) > starlark.MaxExpressions:
			return testsField, fmt.Sprintf("1 to %d tests in the field %q", starlark.MaxExpressions, testsField)
		}
		var tests []test
		bytes := 0
		for _, line := range values[1] {
			t, err := readTest(line)
			if err != nil {
				return testsField, errTest.Error()
			}
			tests = append(tests, t)
			bytes += len(t.call)
		}
		if bytes > starlark.MaxProgram {
			return testsField, fmt.Sprintf("calls of at most %d bytes together", starlark.MaxProgram)
		}
		shown := min(examples, len(tests)-1)
		p := problem{examples: tests[:shown:shown], hidden: tests[shown:]}
		p.text = withExamples(prompt, p.examples)
		if len(values[3]) > 0 {
			p.reference = unfenced(strings.TrimSpace(values[3][0]))
			if _, ok := legalProgram(p.reference); !ok {
				return solutionField, fmt.Sprintf("a program of at most %d bytes without %s", starlark.MaxProgram, envs.Separator)
			}
		}
		split := hashSplit(prompt)
		if len(values[2]) > 0 {
			if split = values[2][0]; split != Train && split != Test {
				return splitField, fmt.Sprintf("%s or %s in the field %q", Train, Test, splitField)
			}
		}
		all, splits = append(all, p), append(splits, split)
		return "", ""
	})
	return all, splits, err
}

// hashSplit says what a problem without a mark is for, by its prompt alone.
func hashSplit(prompt string) string {
	digest := sha256.Sum256([]byte("reprise/code/1 " + prompt))
	if binary.BigEndian.Uint64(digest[:8])%fileTestShare == 0 {
		return Test
	}
	return Train
}

// stubs are programs of the right form that define what a problem of a file calls, and solve it only by chance.
func (p *problem) stubs() []string {
	name := "f"
	if tree, err := (&syntax.FileOptions{}).ParseExpr("test", p.hidden[0].call, 0); err == nil {
		syntax.Walk(tree, func(n syntax.Node) bool {
			if call, ok := n.(*syntax.CallExpr); ok { // the innermost on the left: sorted(f(x)) calls f
				if of, ok := call.Fn.(*syntax.Ident); ok {
					name = of.Name
				}
			}
			return true
		})
	}
	var out []string
	for _, value := range []string{"0", "1", "[]", `""`, "None", "True", "False", "args[0]"} {
		out = append(out, fmt.Sprintf("def %s(*args): return %s", name, value))
	}
	return out
}
