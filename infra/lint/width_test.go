package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// columns is the most columns of a line, what stands in quotes left out: a message is not broken.
const columns = 140

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|` + "`[^`]*`")

// tooWide reports whether a line has too many columns.
func tooWide(line string) bool {
	return utf8.RuneCountInString(line) > columns && utf8.RuneCountInString(quoted.ReplaceAllString(line, `""`)) > columns
}

func TestLinesAreNarrow(t *testing.T) {
	for path := range sources(t) {
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		number := 0
		for line := range strings.Lines(string(text)) {
			if number++; tooWide(strings.TrimSuffix(line, "\n")) {
				t.Errorf("%s:%d has more than %d columns", path, number, columns)
			}
		}
	}
}

// TestWideLineIsFound shows that the check can fail.
func TestWideLineIsFound(t *testing.T) {
	long := strings.Repeat("a", columns)
	require.False(t, tooWide(long))
	require.True(t, tooWide(long+"b"))
	require.False(t, tooWide(`x := "`+long+`"`), "a message is not broken")
	require.False(t, tooWide(`x := "\"`+long+`"`))
	require.True(t, tooWide(`x := "`+long+`" + `+long))
}
