package tools

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/calls"
)

func TestCalculator(t *testing.T) {
	tool, err := envs.NewTool(CalculatorName, nil, nil)
	require.NoError(t, err)
	const none = "Error: this is not an expression of numbers, + - * / and parentheses: "
	for text, want := range map[string]envs.ToolAnswer{
		"1 + 2":                         {Text: "3"},
		"(1 + 2.5) * 3":                 {Text: "21/2"},
		"10/4":                          {Text: "5/2"},
		"5/2 + 1/2":                     {Text: "3"},
		"-3 - -4":                       {Text: "1"},
		"0.1 + 0.2":                     {Text: "3/10"},
		"7 − 10":                        {Text: "-3"},
		"99999 * 9999":                  {Text: "999890001"},
		" 2 ×\n3 ":                      {Text: "6"},
		"1/0":                           {Text: "Error: the expression divides by zero.", Failed: true},
		"1/(0.5-1/2)":                   {Text: "Error: the expression divides by zero.", Failed: true},
		"99999*99999":                   {Text: "Error: the value has more than 9 digits.", Failed: true},
		"":                              {Text: none + "want a number, a sign or ( at column 1.", Failed: true},
		"2 ** 3":                        {Text: none + "want a number, a sign or ( at column 4.", Failed: true},
		"2^3":                           {Text: none + "want an operator at column 2.", Failed: true},
		"(1+2":                          {Text: none + "want an operator or ) at column 5.", Failed: true},
		"x = 3":                         {Text: none + "want a number, a sign or ( at column 1.", Failed: true},
		"1e3":                           {Text: none + "want an operator at column 2.", Failed: true},
		"1,000":                         {Text: none + "want an operator at column 2.", Failed: true},
		"12345678901":                   {Text: none + "want at most 9 digits at column 1.", Failed: true},
		strings.Repeat("1+", 100) + "1": {Text: none + "201 bytes, at most 200.", Failed: true},
	} {
		require.Equal(t, want, tool.Call(calls.OfText(expression, text)), text)
	}
	for _, object := range []string{``, `{`, `{}`, `[]`, `{"expression":1}`, `{"expr":"1"}`, `{"expression":"1","expression":"1"}`} {
		want := envs.ToolAnswer{Text: "Error: the calculator needs a text named expression.", Failed: true}
		require.Equal(t, want, tool.Call(json.RawMessage(object)), object)
	}
	_, err = envs.NewTool(CalculatorName, json.RawMessage(`{"digits":1}`), nil)
	require.ErrorContains(t, err, `options of tool "calculator": digits`)
}

// Suggestions are of the numbers that were read, and all of them can be computed.
func TestCalculatorSuggests(t *testing.T) {
	for text, want := range map[string][]string{
		"Numbers: 3, 4": {"3 + 4", "4 + 3", "3 - 4", "4 - 3", "3 * 4", "4 * 3", "3 / 4", "4 / 3"},
		"0 or 1.5":      {"0 + 1.5", "1.5 + 0", "0 - 1.5", "1.5 - 0", "0 * 1.5", "1.5 * 0", "0 / 1.5"},
		"nothing here 1234567890": {"12 + 3.5", "3.5 + 7", "7 + 12", "12 - 7", "3.5 - 12", "7 - 3.5",
			"12 * 3.5", "3.5 * 7", "7 * 12", "12 / 7", "3.5 / 12", "7 / 3.5"},
	} {
		var got []string
		for _, object := range (Calculator{}).Suggest(text) {
			expression, ok := calls.Text(object, expression)
			require.True(t, ok)
			got = append(got, expression)
			require.False(t, Calculator{}.Call(object).Failed, expression)
		}
		require.Equal(t, want, got)
	}
	require.Len(t, (Calculator{}).Suggest("1 2 3 4 5 6 7 8 9 10"), 4*maxShown)
}

func BenchmarkCalculator(b *testing.B) {
	call := calls.OfText(expression, "(12 + 7.5) * 3 - 100 / (9 - 2)")
	for b.Loop() {
		if (Calculator{}).Call(call).Failed {
			b.Fatal("failed")
		}
	}
}
