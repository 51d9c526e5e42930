package mathqa

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/rows"
)

// Limits of a file of questions, beside those of package rows.
const (
	// MaxQuestions is the most questions of a file.
	MaxQuestions = 1 << 20
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

// Read gives the questions of a file's content, JSON Lines or Parquet: see package rows. Other fields and columns are
// ignored. Errors are a *rows.Error.
func Read(content []byte, fields Fields) ([]Question, error) {
	form := rows.Form{
		Columns: []rows.Column{{Name: fields.Question}, {Name: fields.Answer, Numbers: true}},
		Noun:    "question", Example: `{"question":"…","answer":"…"}`, Most: MaxQuestions,
	}
	var questions []Question
	err := rows.Read(content, form, func(values [][]string) (column, want string) {
		q, column, want := question(values[0][0], values[1][0], fields)
		questions = append(questions, q)
		return column, want
	})
	if err != nil {
		return nil, err
	}
	return questions, nil
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
