// Package human writes values as people read them (counts, sizes, texts from elsewhere)
// and recognises terminals.
package human

import (
	"fmt"
	"math"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Plural is "1 object", "2 objects".
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Bytes is a number of bytes with one digit after the point, in units of 1024.
func Bytes(n int64) string {
	if n < 1024 {
		return Plural(int(n), "byte")
	}
	v, unit := float64(n)/1024, 0
	for units := "KMGTP"; v >= 1024 && unit < len(units)-1; unit++ {
		v /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[unit])
}

// Visible replaces control characters, which a terminal would obey, by spaces.
func Visible(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, s)
}

// ShellWord is a run's id as one word of a command line.
func ShellWord(id string) string {
	plain := id != ""
	for _, r := range id {
		if !strings.ContainsRune("-_./:=@%+,", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			plain = false
		}
	}
	if plain {
		return id
	}
	return "'" + strings.ReplaceAll(id, "'", `'\''`) + "'"
}

// Terminal is the terminal that a stream is, or nil.
func Terminal(stream any) *os.File {
	if f, ok := stream.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

// Number formats a value by a format of fmt for float64. A value that the format would leave with less
// than two digits that count has two, in the format's width: 5e-07 is not 0.00.
func Number(format string, v float64) string {
	text := fmt.Sprintf(format, v)
	_, after, _ := strings.Cut(text, ".")
	if x := math.Abs(v); x == 0 || math.IsInf(x, 0) || math.IsNaN(x) || x >= math.Pow10(1-len(after)) {
		return text
	}
	return fmt.Sprintf("%*s", utf8.RuneCountInString(text), fmt.Sprintf("%.2g", v))
}

// Middle is a text of at most so many characters: the beginning and the end of a longer one.
func Middle(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	end := (most - 1) / 2
	return string(runes[:most-1-end]) + "…" + string(runes[len(runes)-end:])
}
