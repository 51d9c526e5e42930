package rows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// readLines reads JSON Lines: an object a line, empty lines left out.
func readLines(content []byte, form Form, row Row) error {
	n := 0
	for number, rest := 1, content; len(rest) > 0; number++ {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if n++; n > form.Most {
			return form.tooMany()
		}
		if err := readLine(line, form, row); err != nil {
			err.Line = number
			return err
		}
	}
	return nil
}

// field is a value of a line, and the column in which it begins.
type field struct {
	value  json.RawMessage
	column int
}

func readLine(line []byte, form Form, row Row) *Error {
	if len(line) > MaxLine {
		return &Error{Want: fmt.Sprintf("at most %d bytes", MaxLine)}
	}
	if at := invalid(line); at >= 0 {
		return &Error{Column: at + 1, Want: "UTF-8"}
	}
	if trimmed := bytes.TrimLeft(line, " \t\r"); trimmed[0] != '{' {
		return &Error{Column: len(line) - len(trimmed) + 1, Want: "a JSON object, as " + form.Example}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(line, &whole); err != nil {
		return &Error{Column: column(err), Want: "valid JSON, one object a line"}
	}
	fields, wrong := form.fields(line)
	if wrong != nil {
		return wrong
	}
	values := make([][]string, len(form.Columns))
	for i, c := range form.Columns {
		f, ok := fields[c.Name]
		switch {
		case ok:
		case c.Optional:
			continue
		default:
			return &Error{Want: fmt.Sprintf("the field %q", c.Name)}
		}
		if values[i], ok = c.values(f.value); !ok {
			return &Error{Column: f.column, Want: fmt.Sprintf("%s in the field %q", c.kind(), c.Name)}
		}
	}
	if name, want := row(values); want != "" {
		return &Error{Column: fields[name].column, Want: want}
	}
	return nil
}

// fields are the form's columns in a line, which is a JSON object. A column that stands twice is wrong.
func (f Form) fields(line []byte) (map[string]field, *Error) {
	named := make(map[string]bool, len(f.Columns))
	for _, c := range f.Columns {
		named[c.Name] = true
	}
	decoder := json.NewDecoder(bytes.NewReader(line)) // a map would not see a field given twice
	fields := make(map[string]field, len(f.Columns))
	_, err := decoder.Token()
	for err == nil && decoder.More() {
		var key json.Token
		var value json.RawMessage
		if key, err = decoder.Token(); err != nil {
			break
		}
		if err = decoder.Decode(&value); err != nil {
			break
		}
		name, _ := key.(string)
		begin := int(decoder.InputOffset()) - len(value) + 1
		if !named[name] {
			continue
		}
		if _, again := fields[name]; again {
			return nil, &Error{Column: begin, Want: fmt.Sprintf("the field %q once", name)}
		}
		fields[name] = field{value, begin}
	}
	if err != nil {
		return nil, &Error{Want: "valid JSON"}
	}
	return fields, nil
}

// kind says which values of JSON a column takes.
func (c Column) kind() string {
	switch {
	case c.List && c.Numbers:
		return "a string, a number or a list of them"
	case c.List:
		return "a string or a list of strings"
	case c.Numbers:
		return "a string or a number"
	}
	return "a string"
}

// values are the texts of a value of JSON.
func (c Column) values(value json.RawMessage) ([]string, bool) {
	items := []json.RawMessage{value}
	if c.List && value[0] == '[' {
		items = nil // decoding would write into value
		if json.Unmarshal(value, &items) != nil {
			return nil, false
		}
	}
	texts := make([]string, len(items))
	for i, item := range items {
		var ok bool
		if texts[i], ok = scalar(item, c.Numbers); !ok {
			return nil, false
		}
	}
	return texts, true
}

// scalar is the text of a JSON string, or of a number as it is written.
func scalar(value json.RawMessage, number bool) (string, bool) {
	var text string
	if value[0] == '"' {
		return text, json.Unmarshal(value, &text) == nil
	}
	var n json.Number
	if !number || json.Unmarshal(value, &n) != nil || n == "" {
		return "", false
	}
	return n.String(), true
}

// invalid is where bytes stop being UTF-8, or -1.
func invalid(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	for at := 0; at < len(b); {
		r, size := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && size == 1 {
			return at
		}
		at += size
	}
	return -1
}

// column is where JSON stops being JSON, or 0.
func column(err error) int {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return int(syntax.Offset)
	}
	return 0
}
