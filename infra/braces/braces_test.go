package braces

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	var wrong []Piece
	got := Parse("{a}{{b}} {b} {c\n} } {}{a", []string{"a"}, func(p Piece) { wrong = append(wrong, p) })
	require.Equal(t, Template{{"a", true}, {"{b}  c\n  a", false}}, got)
	require.Equal(t, []Piece{{"b", true}, {"{c\n} } {}{a", false}, {"} } {}{a", false}, {"} {}{a", false}, {"", true}, {"{a", false}}, wrong)
	require.True(t, got.Has("a"))
	require.False(t, got.Has("b"))
	require.True(t, got.Writes("{b}"))
	require.True(t, strings.HasPrefix(got.Fill(map[string]string{"a": "{{x}"}), "{{x}{b} "), "what replaces a placeholder is no template")
}

// FuzzParse: a template is read in whole, or something in it is wrong.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"{a} and {b}", "{{{a}}}", "{", "}}", "{a}{", "{{b}}", "{a\n}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		bad := false
		all := Parse(text, []string{"a", "b"}, func(Piece) { bad = true })
		if bad {
			return
		}
		var back strings.Builder
		for _, p := range all {
			require.NotEmpty(t, p.Text)
			if p.Placeholder {
				back.WriteString("{" + p.Text + "}")
			} else {
				back.WriteString(strings.NewReplacer("{", "{{", "}", "}}").Replace(p.Text))
			}
		}
		require.Equal(t, text, back.String())
	})
}
