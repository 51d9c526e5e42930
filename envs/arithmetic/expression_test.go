package arithmetic

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]struct {
		canonical, value string
		numbers          []int64
	}{
		"1":                           {"1", "1", []int64{1}},
		" 12 + 3 - 4 ":                {"12+3-4", "11", []int64{12, 3, 4}},
		"10-4-3":                      {"10-4-3", "3", []int64{10, 4, 3}},
		"10-(4-3)":                    {"10-(4-3)", "9", []int64{10, 4, 3}},
		"2+3*4":                       {"2+3*4", "14", []int64{2, 3, 4}},
		"(2+3)*4":                     {"(2+3)*4", "20", []int64{2, 3, 4}},
		"7/2/2":                       {"7/2/2", "7/4", []int64{7, 2, 2}},
		"1/3+1/6":                     {"1/3+1/6", "1/2", []int64{1, 3, 1, 6}},
		"-3+5":                        {"-3+5", "2", []int64{3, 5}},
		"2--3":                        {"2--3", "5", []int64{2, 3}},
		"-(2+3)*+4":                   {"-(2+3)*+4", "-20", []int64{2, 3, 4}},
		"((1))":                       {"((1))", "1", []int64{1}},
		"6 × 4 ÷ 3 − 1":               {"6*4/3-1", "7", []int64{6, 4, 3, 1}},
		"007+1":                       {"7+1", "8", []int64{7, 1}},
		"999999999*999999999":         {"999999999*999999999", "999999998000000001", []int64{999999999, 999999999}},
		"1\n+\t2":                     {"1+2", "3", []int64{1, 2}},
		strings.Repeat("-", 32) + "1": {strings.Repeat("-", 32) + "1", "1", []int64{1}},
	} {
		e, err := Parse(text)
		require.NoError(t, err, text)
		require.Equal(t, want.canonical, e.String(), text)
		require.Equal(t, want.numbers, e.Numbers(), text)
		value, err := e.Value()
		require.NoError(t, err, text)
		require.Equal(t, want.value, value.RatString(), text)
	}
	for text, message := range map[string]string{
		"":                              "want a number, a sign or ( at column 1",
		"  ":                            "column 3",
		"1+":                            "column 3",
		"1 2":                           "want an operator at column 3",
		"(1+2":                          "want an operator or ) at column 5",
		"1)":                            "want an operator at column 2",
		"()":                            "column 2",
		"*1":                            "column 1",
		"2**3":                          "column 3",
		"2//3":                          "column 3",
		"1.5":                           "want an operator at column 2",
		"1e3":                           "column 2",
		"x+1":                           "column 1",
		"1+2=3":                         "want an operator at column 4",
		"__import__('os')":              "column 1",
		"1234567890":                    "at most 9 digits at column 1",
		"1\u00a0+2":                     "column 2",
		"1\x00":                         "column 2",
		"\xff":                          "column 1",
		strings.Repeat("(", 34) + "1":   "at most 32",
		strings.Repeat("-", 33) + "1":   "at most 32",
		strings.Repeat("1+", 100) + "1": "201 bytes, at most 200",
	} {
		_, err := Parse(text)
		require.ErrorIs(t, err, ErrSyntax, text)
		require.ErrorContains(t, err, message, text)
	}
	for _, text := range []string{"1/0", "1/(2-2)", "0*(1/0)"} {
		e, err := Parse(text)
		require.NoError(t, err)
		_, err = e.Value()
		require.ErrorIs(t, err, ErrDivision, text)
	}
}

func TestDecimals(t *testing.T) {
	for text, want := range map[string]struct{ canonical, exact string }{
		"1.5":            {"1.5", "3/2"},
		"007.50 + 1":     {"7.50+1", "17/2"},
		"0.1+0.2":        {"0.1+0.2", "3/10"},
		"2 * 3":          {"2*3", "6"},
		"-1.25 × 4":      {"-1.25*4", "-5"},
		"0.00000001":     {"0.00000001", "1/100000000"},
		"12345678.5*2":   {"12345678.5*2", "24691357"},
		"0.0":            {"0.0", "0"},
		"1.050":          {"1.050", "21/20"},
		"1/0.3333":       {"1/0.3333", "10000/3333"},
		"999999999-.0*0": {},
		"1.":             {},
		"1.2.3":          {},
		"1 .5":           {},
		"1. 5":           {},
		"1.5e3":          {},
		"1,5":            {},
		"1234567890.5":   {},
		"12345.67891":    {},
		"0.1234567890":   {},
	} {
		e, err := ParseDecimals(text)
		if want.exact == "" {
			require.ErrorIs(t, err, ErrSyntax, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want.canonical, e.String())
		again, err := ParseDecimals(e.String())
		require.NoError(t, err, text)
		require.Equal(t, e, again)
		exact, err := e.Exact()
		require.NoError(t, err, text)
		require.Equal(t, want.exact, exact, text)
	}
	e, err := ParseDecimals("1 + 2.5 + 3")
	require.NoError(t, err)
	require.Equal(t, []int64{1, 3}, e.Numbers())
}

func TestExact(t *testing.T) {
	for text, want := range map[string]error{
		"1/0": ErrDivision, "1/(2-2)": ErrDivision, "99999*99999": ErrDigits, "1/99999/99999": ErrDigits, "999999999+1": ErrDigits,
		"-999999999": nil, "1/999999999": nil,
	} {
		e, err := Parse(text)
		require.NoError(t, err, text)
		_, err = e.Exact()
		require.ErrorIs(t, err, want, text)
	}
}

// Whatever is written, parsing neither fails otherwise than with its error nor
// takes long; what it accepts has one form, with the same numbers and value.
func FuzzExpression(f *testing.F) {
	for _, s := range []string{"", "1", "(1+2)*3/4-5", "--1", "1/0", "((((", "6×4÷2−1", "007", "1 2", "\xff", strings.Repeat("9*", 90) + "9", strings.Repeat("1/7+", 40) + "1"} {
		f.Add(s)
	}
	for _, s := range []string{"1.5", "0.000000001", "1.2.3", "00.10/.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := Parse(text); err == nil {
			with, err := ParseDecimals(text)
			require.NoError(t, err)
			require.Equal(t, e, with, "whole numbers are read alike")
			require.NotEmpty(t, e.Numbers())
		}
		e, err := ParseDecimals(text)
		if err != nil {
			require.ErrorIs(t, err, ErrSyntax)
			return
		}
		again, err := ParseDecimals(e.String())
		require.NoError(t, err)
		require.Equal(t, e.String(), again.String())
		require.Equal(t, e.Numbers(), again.Numbers())
		value, err := e.Value()
		other, otherErr := again.Value()
		require.Equal(t, err, otherErr)
		if err != nil {
			require.ErrorIs(t, err, ErrDivision)
			return
		}
		require.Zero(t, value.Cmp(other))
	})
}
