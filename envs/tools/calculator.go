// Package tools has the tools in Go that answer by their arguments alone: a calculator, and a search in documents.
package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/arithmetic"
	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Names of the tools in a spec.
const (
	CalculatorName = "calculator"
	RetrieveName   = "retrieve"
)

func init() {
	envs.RegisterTool(CalculatorName, envs.ToolEntry{
		Summary: "Computes an expression of whole numbers and decimals with + - * / and parentheses, exactly: 7, -3 or 5/2.",
		Make:    func(*envs.Options, envs.Environment) envs.Tool { return Calculator{} },
	})
	envs.RegisterTool(RetrieveName, envs.ToolEntry{
		Summary: "Finds the documents of a corpus that fit a query best, by BM25. The corpus is a file, or the environment's.",
		Make:    func(o *envs.Options, env envs.Environment) envs.Tool { return NewRetrieve(o, env) },
	})
}

// failed is the answer of a call that a tool could not do.
func failed(format string, values ...any) envs.ToolAnswer {
	return envs.ToolAnswer{Text: "Error: " + fmt.Sprintf(format, values...) + ".", Failed: true}
}

// Calculator is a tool that computes an expression exactly, as countdown's calculator does, with decimals besides. Its
// bounds are those of package arithmetic.
type Calculator struct{}

// expression is the name of the calculator's argument.
const expression = "expression"

// Describe implements envs.Tool.
func (Calculator) Describe() chat.Tool {
	return chat.Tool{
		Name: CalculatorName,
		Description: "Computes an arithmetic expression exactly. It may have whole numbers, decimals, + - * / and parentheses. " +
			"The answer is a whole number or a fraction, as 5/2.",
		Parameters: calls.TextSchema(expression, "The expression, as (1 + 2.5) * 3"),
	}
}

// Call implements envs.Tool.
func (Calculator) Call(object json.RawMessage) envs.ToolAnswer {
	text, ok := calls.Text(object, expression)
	if !ok {
		return failed("the calculator needs a text named %s", expression)
	}
	parsed, err := arithmetic.ParseDecimals(text)
	if err != nil {
		where := strings.TrimPrefix(err.Error(), arithmetic.ErrSyntax.Error()+": ")
		return failed("this is not an expression of numbers, + - * / and parentheses: %s", where)
	}
	value, err := parsed.Exact()
	switch {
	case errors.Is(err, arithmetic.ErrDivision):
		return failed("the expression divides by zero")
	case err != nil:
		return failed("the value has more than %d digits", arithmetic.MaxDigits)
	}
	return envs.ToolAnswer{Text: value}
}

// number finds the numbers of a text.
var number = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)?`)

// maxShown is the most numbers of a text that examples are made of.
const maxShown = 6

// Suggest implements envs.Suggesting: the numbers that were read in pairs, with each operator.
func (Calculator) Suggest(read string) []json.RawMessage {
	var shown []string
	for _, n := range number.FindAllString(read, -1) {
		if _, err := arithmetic.ParseDecimals(n); err == nil && len(shown) < maxShown {
			shown = append(shown, n)
		}
	}
	if len(shown) < 2 {
		shown = []string{"12", "3.5", "7"}
	}
	var out []json.RawMessage
	for i, operator := range []string{"+", "-", "*", "/"} {
		apart := 1 + i%(len(shown)-1)
		for j, left := range shown {
			right := shown[(j+apart)%len(shown)]
			if operator != "/" || strings.Trim(right, "0.") != "" { // not by zero
				out = append(out, calls.OfText(expression, left+" "+operator+" "+right))
			}
		}
	}
	return out
}
