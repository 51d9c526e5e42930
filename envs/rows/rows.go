// Package rows reads users' tables: files of JSON Lines or Parquet, of which named columns are read as texts.
//
// A file is text from outside: its sizes are bounded before anything is allocated for them, and whatever is wrong is an
// Error with the line and column, or the row, and with what is allowed there.
package rows

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/reprise-rl/reprise/envs"
)

// Limits of a file.
const (
	// MaxFile is the most bytes of a file, and of all values of a column together.
	MaxFile = 256 << 20
	// MaxLine is the most bytes of a line of JSON.
	MaxLine = 1 << 20
	// maxValues is the most values of a column of Parquet.
	maxValues = 1 << 22
	// maxDigits is the most digits of a decimal.
	maxDigits = 256
)

// Column is a field of JSON Lines, or a top-level column of Parquet. Names count with their case.
type Column struct {
	Name string
	// Numbers says that a value may also be a number, which is read as it is written, or a truth value of Parquet.
	Numbers bool
	// List says that a row may have a list of values. One value is a list of one.
	List bool
	// Optional says that a row may lack the field, and a file of Parquet the column; both then have no value.
	Optional bool
}

// Form says what a file holds.
type Form struct {
	// Columns are those that are read; a file may have others.
	Columns []Column
	// Noun is what a row is, for errors: "question".
	Noun string
	// Example is a line as it should be, for errors.
	Example string
	// Most is the most rows.
	Most int
}

// Row takes the values of a row: [columns of the Form][values]. A column that is neither a List nor Optional has one
// value. If something is wrong, it gives the column's name and what is allowed there; want is "" otherwise. It may keep
// the texts, not the slices.
type Row func(values [][]string) (column, want string)

// Error is what is wrong with a file, and where. It does not show what the file holds.
type Error struct {
	// Line of JSON Lines, or row of Parquet, counted from 1; 0 for the whole file.
	Line int
	// Column of the line in bytes, counted from 1; 0 for the whole line.
	Column int
	// Row says that Line is a row of Parquet.
	Row bool
	// Want says what is allowed.
	Want string
}

// Place is where in the file, in words.
func (e *Error) Place() string {
	switch {
	case e.Line == 0:
		return "the file"
	case e.Row:
		return fmt.Sprintf("row %d", e.Line)
	case e.Column == 0:
		return fmt.Sprintf("line %d", e.Line)
	}
	return fmt.Sprintf("line %d, column %d", e.Line, e.Column)
}

// Allowed is what the file may have there.
func (e *Error) Allowed() string { return e.Want }

func (e *Error) Error() string { return e.Place() + ": want " + e.Want }

// Open reads a file's bytes. Only a regular file of at most MaxFile bytes is read. Errors are an *Error, or the system's.
func Open(path string) ([]byte, error) {
	content, want, err := envs.ReadFile(path, MaxFile)
	if want != "" {
		return nil, &Error{Want: want}
	}
	return content, err
}

// OpenPinned reads the file of an option and checks its SHA-256 against *digest, the value of the option's "_sha256" in
// hexadecimal, or fills that in if it is empty. What is wrong is reported to the table, where kind says what the file should
// be, and ok is false.
func OpenPinned(table *envs.Options, option, path string, digest *string, kind string) (content []byte, ok bool) {
	content, err := Open(path)
	if err != nil {
		table.WrongFile(option, path, err, kind)
		return nil, false
	}
	sum := sha256.Sum256(content)
	found := hex.EncodeToString(sum[:])
	if *digest != "" && *digest != found {
		table.Wrong(option+"_sha256", "the digest of the file, which is "+found)
		return nil, false
	}
	*digest = found
	return content, true
}

// Read calls row with each row of a file's content, in order: Parquet if it begins like Parquet, JSON Lines otherwise.
// A file has at least one row. Errors are an *Error.
func Read(content []byte, form Form, row Row) error {
	n := 0
	counted := func(values [][]string) (column, want string) {
		n++
		return row(values)
	}
	var err error
	switch {
	case len(content) > MaxFile:
		err = &Error{Want: fmt.Sprintf("at most %d bytes", MaxFile)}
	case bytes.HasPrefix(content, []byte("PAR1")):
		err = readParquet(content, form, counted)
	default:
		err = readLines(content, form, counted)
	}
	if err == nil && n == 0 {
		err = &Error{Want: "at least one " + form.Noun}
	}
	return err
}

// tooMany is the error about a file of more rows than the form's Most.
func (f Form) tooMany() *Error { return &Error{Want: fmt.Sprintf("at most %d %ss", f.Most, f.Noun)} }
