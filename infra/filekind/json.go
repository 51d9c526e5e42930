package filekind

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// JSON says why bytes are no JSON, nil if they are: that they are another kind of file, or have
// another encoding, or what stands where the parser stopped.
func JSON(b []byte) error {
	if json.Valid(b) && !hubError(b) {
		return nil
	}
	if found := Mistaken(b, int64(len(b))); found != nil {
		return found
	}
	switch {
	case Tensors(b):
		return &Error{"a safetensors file, not JSON", "look whether two files were confused"}
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return &Error{"UTF-8 with a byte order mark, which JSON does not have", "save it without the mark"}
	case bytes.HasPrefix(b, []byte("\xff\xfe")), bytes.HasPrefix(b, []byte("\xfe\xff")), len(b) > 1 && (b[0] == 0) != (b[1] == 0):
		return &Error{"UTF-16 text", "save it as UTF-8"}
	case len(bytes.TrimSpace(b)) == 0:
		return &Error{"empty but for white space", "download it again"}
	}
	var v any
	err := json.NewDecoder(bytes.NewReader(b)).Decode(&v)
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{fmt.Sprintf("cut off after %d bytes, in the middle of its JSON", len(b)), "download it again"}
	case errors.As(err, &syntax):
		return unreadable(b, int(syntax.Offset)-1, syntax)
	case err == nil: // more follows the value
		return &Error{"more than one JSON value", "look whether two files were joined"}
	}
	return err
}

// hubError reports whether JSON is a hub's error in place of a file: an object that begins with it.
func hubError(b []byte) bool {
	if found := mistakenText(b[:min(len(b), Head)]); found == nil {
		return false
	}
	var fields map[string]json.RawMessage
	return json.Unmarshal(b, &fields) == nil && fields["error"] != nil && len(fields) <= 3
}

// notJSON are what other languages write where JSON has something else.
var notJSON = []struct {
	pattern  *regexp.Regexp
	what, do string
}{
	{regexp.MustCompile(`^-?(NaN|Infinity|inf|nan)\b`), "which is no number in JSON", "write a finite number, or null"},
	{regexp.MustCompile(`^(True|False|None)\b`), "which is Python", "write true, false or null"},
	{regexp.MustCompile(`^(//|/\*|#)`), "a comment, which JSON does not have", "take it out"},
	{regexp.MustCompile(`^'`), "a single quote, which is Python", `write texts in double quotes`},
	{regexp.MustCompile(`^(<<<<<<<|=======|>>>>>>>)`), "the mark of a merge conflict", "settle the conflict"},
}

// unreadable says what stands at an offset where a parser of JSON stopped.
func unreadable(b []byte, at int, err error) error {
	at = min(max(at, 0), len(b))
	// The parser stops inside of a word, as at the a of NaN.
	start := at
	for start > 0 && at-start < 10 && (b[start-1] == '-' || b[start-1] >= 'a' && b[start-1] <= 'z' || b[start-1] >= 'A' && b[start-1] <= 'Z') {
		start--
	}
	before := bytes.TrimRight(b[:at], " \t\r\n")
	for _, from := range []int{start, at} {
		for _, n := range notJSON {
			if found := n.pattern.Find(b[from:min(len(b), from+20)]); found != nil {
				return fmt.Errorf("%s: %q, %s: %s", place(b, from), found, n.what, n.do)
			}
		}
	}
	if at < len(b) && strings.ContainsRune("]}", rune(b[at])) && bytes.HasSuffix(before, []byte(",")) {
		return fmt.Errorf("%s: a comma before %q, which JSON does not have: take it out", place(b, len(before)-1), b[at])
	}
	return fmt.Errorf("%s: %w", place(b, at), err)
}

// place is a line and a column, both from 1.
func place(b []byte, at int) string {
	line := 1 + bytes.Count(b[:at], []byte("\n"))
	return fmt.Sprintf("line %d, column %d", line, at-bytes.LastIndexByte(b[:at], '\n'))
}
