package mathqa

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/envs"
)

// Limits of a file of questions.
const (
	// MaxFile is the most bytes of a file, and of its questions and answers together.
	MaxFile = 256 << 20
	// MaxQuestions is the most questions of a file.
	MaxQuestions = 1 << 20
	// MaxLine is the most bytes of a line of JSON.
	MaxLine = 1 << 20
	// MaxQuestion and MaxAnswer are the most bytes of a question, and of the
	// canonical form of an answer.
	MaxQuestion, MaxAnswer = 8192, 256
)

// Question is the question's text.
type Question struct {
	Text string
	// Answer in its canonical form.
	Answer string
}

// Fields say where a file has questions and answers.
type Fields struct {
	// Question and Answer are the names of fields of a line, or of columns.
	Question, Answer string
	// Marker, if not "", is the text before the answer in its field; its last occurrence
	// counts.
	Marker string
	// Numbers says that answers are compared by Numbers.
	Numbers bool
}

// FileError is what is wrong with a file of questions, and where. It does not
// show what the file holds.
type FileError struct {
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
func (e *FileError) Place() string {
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
func (e *FileError) Allowed() string { return e.Want }

func (e *FileError) Error() string { return e.Place() + ": want " + e.Want }

// Open reads a file's bytes. Only a regular file of at most MaxFile bytes is read.
func Open(path string) ([]byte, error) {
	content, want, err := envs.ReadFile(path, MaxFile)
	if want != "" {
		return nil, &FileError{Want: want}
	}
	return content, err
}

// Read gives the questions of a file's content: Parquet if it begins like Parquet, JSON
// Lines otherwise. Other fields and columns are ignored. Errors are a *FileError.
func Read(content []byte, fields Fields) ([]Question, error) {
	var questions []Question
	var err error
	switch {
	case len(content) > MaxFile:
		err = &FileError{Want: fmt.Sprintf("at most %d bytes", MaxFile)}
	case bytes.HasPrefix(content, []byte("PAR1")):
		questions, err = readParquet(content, fields)
	default:
		questions, err = readLines(content, fields)
	}
	if err != nil {
		return nil, err
	}
	if len(questions) == 0 {
		return nil, &FileError{Want: "at least one question"}
	}
	return questions, nil
}

// readLines reads JSON Lines: an object a line, empty lines left out.
func readLines(content []byte, fields Fields) ([]Question, error) {
	var questions []Question
	for number, rest := 1, content; len(rest) > 0; number++ {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		q, err := readLine(line, fields)
		if err != nil {
			err.Line = number
			return nil, err
		}
		if questions = append(questions, q); len(questions) > MaxQuestions {
			return nil, &FileError{Want: fmt.Sprintf("at most %d questions", MaxQuestions)}
		}
	}
	return questions, nil
}

func readLine(line []byte, fields Fields) (Question, *FileError) {
	if len(line) > MaxLine {
		return Question{}, &FileError{Want: fmt.Sprintf("at most %d bytes", MaxLine)}
	}
	if at := invalid(line); at >= 0 {
		return Question{}, &FileError{Column: at + 1, Want: "UTF-8"}
	}
	if trimmed := bytes.TrimLeft(line, " \t\r"); trimmed[0] != '{' {
		return Question{}, &FileError{Column: len(line) - len(trimmed) + 1, Want: `a JSON object, as {"question":"…","answer":"…"}`}
	}
	var whole json.RawMessage
	if err := json.Unmarshal(line, &whole); err != nil {
		return Question{}, &FileError{Column: column(err), Want: "valid JSON, one object a line"}
	}
	// From here on it is JSON; a map would not see a field given twice.
	decoder := json.NewDecoder(bytes.NewReader(line))
	values := map[string]json.RawMessage{}
	columns := map[string]int{}
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
		if _, again := values[name]; again && (name == fields.Question || name == fields.Answer) {
			return Question{}, &FileError{Column: begin, Want: fmt.Sprintf("the field %q once", name)}
		}
		values[name], columns[name] = value, begin
	}
	if err != nil {
		return Question{}, &FileError{Want: "valid JSON"}
	}
	var texts [2]string
	for i, name := range []string{fields.Question, fields.Answer} {
		value, ok := values[name]
		if !ok {
			return Question{}, &FileError{Want: fmt.Sprintf("the field %q", name)}
		}
		text, ok := scalar(value, i == 1)
		if !ok {
			want := fmt.Sprintf("a string in the field %q", name)
			if i == 1 {
				want = fmt.Sprintf("a string or a number in the field %q", name)
			}
			return Question{}, &FileError{Column: columns[name], Want: want}
		}
		texts[i] = text
	}
	q, field, want := question(texts[0], texts[1], fields)
	if want != "" {
		return Question{}, &FileError{Column: columns[field], Want: want}
	}
	return q, nil
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

// question checks a question and its answer. If something is wrong, it says in which
// field, and what is wanted.
func question(text, answer string, fields Fields) (q Question, field, want string) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return q, fields.Question, fmt.Sprintf("a question in the field %q", fields.Question)
	case len(text) > MaxQuestion:
		return q, fields.Question, fmt.Sprintf("a question of at most %d bytes", MaxQuestion)
	}
	if fields.Marker != "" {
		at := strings.LastIndex(answer, fields.Marker)
		if at < 0 {
			return q, fields.Answer, fmt.Sprintf("the marker %q before the answer", fields.Marker)
		}
		answer = answer[at+len(fields.Marker):]
	}
	canonical, ok := canonicalFor(answer, fields.Numbers)
	if !ok {
		return q, fields.Answer, fmt.Sprintf("an answer in the field %q, of at most %d bytes", fields.Answer, MaxAnswer)
	}
	if !envs.Writable(canonical) {
		return q, fields.Answer, fmt.Sprintf("an answer without %s and the tags of replies, which none could give", envs.Separator)
	}
	return Question{Text: text, Answer: canonical}, "", ""
}

// Canonical gives the form in which answers are compared, as RAGEN's: lower case,
// without blanks. It is not ok if nothing is left, or more than MaxAnswer bytes.
func Canonical(answer string) (string, bool) {
	canonical := strings.Join(strings.Fields(strings.ToLower(strings.ToValidUTF8(answer, "\uFFFD"))), "")
	return canonical, canonical != "" && len(canonical) <= MaxAnswer
}

// canonicalFor is Canonical, with the blank of a mixed number kept as a sign if answers are compared by Numbers.
func canonicalFor(answer string, numbers bool) (string, bool) {
	if numbers && len(answer) <= 4*MaxAnswer { // a longer one is an answer only by its blanks
		answer = joinMixed(answer)
	}
	return Canonical(answer)
}
