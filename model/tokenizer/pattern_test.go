package tokenizer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPatternsThatCannotBeTranslated(t *testing.T) {
	for _, source := range []string{
		`\bx`, `(?<!a)b`, `^x`, `x$`, `\p{Foo}`, `(x+)+`, `(?:x+){2}`, `x{2}+`, `x**`, `*`, `(x`, `x)`, `[x`, `[]`, `[[:alpha:]]`, `[a-\d]`, `\1`,
		`(?i:ss)`, `(?i:é)`, `(?i:[^a])`, `(?i)x`, `(?<name>x)`, `\x{110000}`, `\xe9`, `\u12`, `x{1001}`, `{`, `\`, `(?=x)*`, `(?:x?){2}`, `(?:x|xx)*`, `((x{9}){9}){9}`, `\s*\s*(?:\s*|b)\s*x`,
		strings.Repeat("(", 99), strings.Repeat("[", 99), strings.Repeat("x", 1<<16),
	} {
		_, _, err := compilePattern(source)
		require.Error(t, err, source)
	}
}

// The parts of a text are the text, whatever the pattern, and no pattern ends the process.
func FuzzPattern(f *testing.F) {
	for _, source := range []string{gpt2Pattern, `(?i:'s|'t)|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*`, `[\p{L}&&[^a-c]]*+`, `(?>a|ab)b|(?=\d)`, `\x{4e2d}|[\^\]\[\\-]`} {
		f.Add(source, "It's 12 \n déjà vu 中文  [-]^\\")
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		text = lossyUTF8(text[:min(len(text), 64)])
		p := parser{t: &Tokenizer{}, growth: 1}
		matches := p.matches(patternJSON{Regex: source})
		if matches == nil {
			require.NotEmpty(t, p.problems)
			return
		}
		var joined strings.Builder
		for _, m := range matches(text) {
			joined.WriteString(text[m.from:m.to])
		}
		require.Equal(t, text, joined.String())
	})
}
