// Package board is what the environments on a grid share: reading layouts,
// forms of observations, and pools of instances.
package board

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxSide is the most rows and the most columns of a grid.
const MaxSide = 50

// LayoutError says what is wrong with a layout, and where.
type LayoutError struct {
	// Line and Column count from 1; a column is one glyph. Column is 0 if the
	// line as a whole is wrong, Line where the layout as a whole is.
	Line, Column int
	// Found and Want complete "found …, want …".
	Found, Want string
}

// Error implements error.
func (e *LayoutError) Error() string { return fmt.Sprintf("found %s, want %s", e.Place(), e.Want) }

// Place is what was found with where it was found.
func (e *LayoutError) Place() string {
	switch {
	case e.Line == 0:
		return e.Found
	case e.Column == 0:
		return fmt.Sprintf("%s in line %d", e.Found, e.Line)
	}
	return fmt.Sprintf("%s in line %d, column %d", e.Found, e.Line, e.Column)
}

// Rows reads the lines of a layout: [rows][columns], every row as long as the
// first, every cell one of the glyphs. Empty lines at the end do not count, and
// lines may end in a carriage return. Errors are of type *LayoutError.
func Rows(text, glyphs string) ([][]rune, error) {
	// Four bytes a glyph, a line break, and one row more than may be.
	if len(text) > (MaxSide*4+2)*(MaxSide+1) {
		return nil, &LayoutError{Found: fmt.Sprintf("%d bytes", len(text)), Want: fmt.Sprintf("at most %d rows of %d cells", MaxSide, MaxSide)}
	}
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	if len(lines) > MaxSide {
		return nil, &LayoutError{Found: fmt.Sprintf("%d rows", len(lines)), Want: fmt.Sprintf("at most %d", MaxSide)}
	}
	rows := make([][]rune, len(lines))
	for i, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		if !utf8.ValidString(line) {
			return nil, &LayoutError{Line: i + 1, Found: "bytes that are not UTF-8", Want: "one of the glyphs " + glyphs}
		}
		rows[i] = []rune(line)
		if len(rows[i]) == 0 {
			return nil, &LayoutError{Line: i + 1, Found: "no cells", Want: "a row of the glyphs " + glyphs}
		}
		if len(rows[i]) > MaxSide {
			return nil, &LayoutError{Line: i + 1, Found: fmt.Sprintf("%d cells", len(rows[i])), Want: fmt.Sprintf("at most %d", MaxSide)}
		}
		for j, glyph := range rows[i] {
			if !strings.ContainsRune(glyphs, glyph) {
				return nil, &LayoutError{Line: i + 1, Column: j + 1, Found: fmt.Sprintf("%q", glyph), Want: "one of the glyphs " + glyphs}
			}
		}
		if len(rows[i]) != len(rows[0]) {
			return nil, &LayoutError{Line: i + 1, Found: fmt.Sprintf("%d cells", len(rows[i])), Want: fmt.Sprintf("%d as in line 1", len(rows[0]))}
		}
	}
	return rows, nil
}
