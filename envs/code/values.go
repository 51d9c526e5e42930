package code

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"go.starlark.net/syntax"

	"github.com/reprise-rl/reprise/infra/strict"
)

// maxDepth is the most arrays and objects in each other of a value.
const maxDepth = 32

// canonicalValue writes a value of JSON so that equal values have equal texts: keys in order, and 2, 2.0 and 2e0 as one
// number. It is "" for what is no value or is nested too deeply.
func canonicalValue(value []byte) string {
	if _, err := strict.Parse(value, strict.Limits{Depth: maxDepth}); err != nil {
		return ""
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return ""
	}
	out, err := json.Marshal(withNumbers(v))
	if err != nil {
		return ""
	}
	return string(out)
}

// withNumbers is a value whose numbers are written in one way.
func withNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return json.Number(canonicalNumber(string(v)))
	case []any:
		for i := range v {
			v[i] = withNumbers(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = withNumbers(v[key])
		}
	}
	return v
}

// maxWhole is where floats stop having every integer.
const maxWhole = 1 << 53

func canonicalNumber(n string) string {
	if !strings.ContainsAny(n, ".eE") {
		if n == "-0" {
			return "0"
		}
		return n
	}
	f, err := strconv.ParseFloat(n, 64)
	switch {
	case err != nil: // too large for a float
		return n
	case f > -maxWhole && f < maxWhole && f == math.Trunc(f):
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// maxTest is the most bytes of a test of a file, which bounds how deeply it nests.
const maxTest = 4096

// errTest is what a test of a file has to be.
var errTest = errors.New(`a test such as f(3) == 9: in one line, a call, ==, and a value written out`)

// readTest reads a test of a file: `f([1, 2]) == 3`, or the same behind `assert`. What stands on the left is evaluated
// after the program, what is on the right is the value.
func readTest(line string) (test, error) {
	line = strings.TrimSpace(line)
	if rest, ok := strings.CutPrefix(line, "assert "); ok {
		line = strings.TrimSpace(rest)
	}
	if len(line) > maxTest || strings.ContainsAny(line, "\n\r") {
		return test{}, errTest
	}
	tree, err := (&syntax.FileOptions{}).ParseExpr("test", line, 0)
	if err != nil {
		return test{}, fmt.Errorf("%w: %w", errTest, err)
	}
	compared, ok := tree.(*syntax.BinaryExpr)
	if !ok || compared.Op != syntax.EQL {
		return test{}, errTest
	}
	value, ok := written(compared.Y)
	if !ok {
		return test{}, errTest
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return test{}, errTest
	}
	want := canonicalValue(encoded)
	if want == "" {
		return test{}, errTest
	}
	runes := []rune(line)
	left := strings.TrimSpace(string(runes[:compared.OpPos.Col-1]))
	right := strings.TrimSpace(string(runes[compared.OpPos.Col+1:]))
	return test{call: left, want: want, shown: right}, nil
}

// written is the value of an expression without names, calls and operations.
func written(e syntax.Expr) (any, bool) {
	switch e := e.(type) {
	case *syntax.ParenExpr:
		return written(e.X)
	case *syntax.Literal:
		switch v := e.Value.(type) {
		case string:
			return v, e.Token == syntax.STRING // no bytes
		case int64, float64, *big.Int:
			return v, true
		}
	case *syntax.UnaryExpr:
		if v, ok := e.X.(*syntax.Literal); ok && e.Op == syntax.MINUS {
			switch v := v.Value.(type) {
			case int64:
				return -v, true
			case float64:
				return -v, true
			case *big.Int:
				return new(big.Int).Neg(v), true
			}
		}
	case *syntax.Ident:
		v, ok := map[string]any{"True": true, "False": false, "None": nil}[e.Name]
		return v, ok
	case *syntax.ListExpr:
		return listed(e.List)
	case *syntax.TupleExpr:
		return listed(e.List)
	case *syntax.DictExpr:
		out := map[string]any{}
		for _, entry := range e.List {
			pair, ok := entry.(*syntax.DictEntry)
			if !ok {
				return nil, false
			}
			key, ok := written(pair.Key)
			name, isText := key.(string)
			value, good := written(pair.Value)
			if _, twice := out[name]; !ok || !isText || !good || twice {
				return nil, false
			}
			out[name] = value
		}
		return out, true
	}
	return nil, false
}

func listed(items []syntax.Expr) (any, bool) {
	out := []any{}
	for _, item := range items {
		v, ok := written(item)
		if !ok {
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}
