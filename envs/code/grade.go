package code

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/tools/starlark"
)

// answerMark begins the last line of a program that was run: a comment with the answer, after which a graded action is
// still a program.
const answerMark = "\n# answered "

// withAnswer is a program with the answer of the process that ran it. It has no "|", so that it is no separator of actions,
// unless the program has.
func withAnswer(program string, a envs.ToolAnswer) string {
	b, err := json.Marshal(a)
	if err != nil {
		panic(fmt.Sprintf("code: encode an answer: %v", err)) // texts and truth values
	}
	return program + answerMark + strings.ReplaceAll(string(b), "|", `\u007c`) // bars stand in strings alone
}

// readAnswer takes apart what withAnswer wrote. answer is nil for a program that was not run. It is not ok for what only
// looks like one that was.
func readAnswer(action string) (program string, answer *envs.ToolAnswer, ok bool) {
	at := strings.LastIndex(action, answerMark)
	if at < 0 || strings.Contains(action[at+1:], "\n") {
		return action, nil, true
	}
	answer = new(envs.ToolAnswer)
	if json.Unmarshal([]byte(action[at+len(answerMark):]), answer) != nil || withAnswer(action[:at], *answer) != action {
		return "", nil, false
	}
	return action[:at], answer, true
}

// unfenced is a program without the marks of Markdown around it.
func unfenced(program string) string {
	rest, ok := strings.CutPrefix(program, "```")
	if !ok {
		return program
	}
	_, rest, ok = strings.Cut(rest, "\n") // the language
	if !ok {
		return program
	}
	return strings.TrimSuffix(strings.TrimRight(rest, " \t\n"), "```")
}

// verdict is what the tests say of a program.
type verdict struct {
	// passed are the hidden tests that it passed; all says that it passed every test.
	passed int
	all    bool
	// says is a sentence or two for the policy. It names no hidden test's value.
	says string
}

// maxSays is the most bytes of a verdict's words, all of them ASCII.
const maxSays = 160

// judge compares an answer with what the tests want. A program that was not run is right if it is the reference.
func (p *problem) judge(program string, answer *envs.ToolAnswer) verdict {
	switch {
	case answer == nil && p.reference != "" && program == p.reference:
		return verdict{passed: len(p.hidden), all: true, says: allPass}
	case answer == nil:
		return verdict{says: "The program was not run."}
	case answer.Failed:
		return verdict{says: sentence("The program fails. " + answer.Text)}
	}
	var values []starlark.Value
	tests := p.tests()
	if json.Unmarshal([]byte(answer.Text), &values) != nil || len(values) != len(tests) {
		return verdict{says: "The program's values cannot be read."}
	}
	v := verdict{all: true}
	for i, t := range tests {
		right := values[i].Error == "" && canonicalValue(values[i].JSON) == t.want
		if right && i >= len(p.examples) {
			v.passed++
		}
		if !right && v.all { // the first
			v.all = false
			v.says = p.fails(i, values[i])
		}
	}
	if v.all {
		v.says = allPass
	}
	return v
}

const allPass = "All tests pass."

// fails names a test that fails, by its number among all, and what an example gave.
func (p *problem) fails(i int, got starlark.Value) string {
	switch {
	case i >= len(p.examples) && got.Error != "":
		return "The examples pass. A hidden test fails with an error."
	case i >= len(p.examples):
		return "The examples pass. A hidden test fails."
	case got.Error != "":
		return sentence(fmt.Sprintf("Example %d fails. %s", i+1, got.Error))
	}
	return sentence(fmt.Sprintf("Example %d fails. It gives %s.", i+1, got.JSON))
}

// sentence is a text from outside in one line of ASCII, of at most maxSays bytes.
func sentence(text string) string {
	var s strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			r = ' '
		case r < ' ' || r > '~':
			r = '?'
		}
		if s.WriteRune(r); s.Len() == maxSays {
			break
		}
	}
	out := s.String()
	if len(text) > maxSays && len(out) == maxSays {
		out = out[:maxSays-3] + "..."
	}
	return out
}
