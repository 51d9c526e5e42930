package countdown

import (
	"errors"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/arithmetic"
)

// Calculator is the name of the tool, and what its calls begin with: "calculate 1+2".
const Calculator = "calculate"

// unread is the canonical name of a call whose text is not an expression. The text itself
// is not kept: it may be long, and nothing depends on it.
const unread = Calculator + " ?"

// What the calculator says instead of a value.
const (
	noExpression = "error: not an expression"
	zeroDivision = "error: division by zero"
	tooLong      = "error: too many digits"
)

// callText gives what a call asks to be computed; called is false if an action is no call.
func callText(action string) (text string, called bool) {
	action = strings.TrimSpace(action)
	if len(action) < len(Calculator) || !strings.EqualFold(action[:len(Calculator)], Calculator) {
		return "", false
	}
	return action[len(Calculator):], true
}

// canonicalCall is the canonical name of a call that asks for a text.
func canonicalCall(text string) string {
	expression, err := arithmetic.Parse(text)
	if err != nil {
		return unread
	}
	return Calculator + " " + expression.String()
}

// compute is the calculator: an exact value such as 7, -3 or 5/2, or what was wrong. valid
// says that it is a value.
func compute(text string) (result string, valid bool) {
	expression, err := arithmetic.Parse(text)
	if err != nil {
		return noExpression, false
	}
	value, err := expression.Exact()
	switch {
	case errors.Is(err, arithmetic.ErrDivision):
		return zeroDivision, false
	case err != nil:
		return tooLong, false
	}
	return value, true
}

// widestResults are results such that each result takes at most as many tokens as one of
// them.
func widestResults() []string {
	nines := strings.Repeat("9", arithmetic.MaxDigits)
	return []string{"-" + nines + "/" + nines, noExpression, zeroDivision, tooLong}
}

// call answers a call.
func (e *episode) call(text string) envs.Outcome {
	before := e.result
	e.result, _ = compute(text)
	e.calls--
	return envs.Outcome{Effective: e.result != before, Text: "Result: " + e.result}
}

// Tools implements envs.Tooled.
func (c *Countdown) Tools() []string {
	if c.options.Calls == 0 {
		return nil
	}
	return []string{Calculator}
}

// Call implements envs.Tooled.
func (c *Countdown) Call(action string) (tool string, valid bool) {
	text, called := callText(action)
	if c.options.Calls == 0 || !called {
		return "", false
	}
	_, valid = compute(text)
	return Calculator, valid
}
