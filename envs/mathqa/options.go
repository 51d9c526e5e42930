package mathqa

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/envs/rows"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// sample has the questions that are used if no file is given; they were made for this
// repository.
//
//go:embed sample.jsonl
var sample []byte

const summary = "Answer a question from a file, with several attempts: the first is worth 1, the next a half, then a quarter. An answer is right if it is the file's number in any spelling, or the file's text, ignoring case and blanks."

// Splits of the questions.
const (
	Train = "train"
	Test  = "test"
	All   = "all"
)

var splitNames = []string{All, Train, Test}

// Limits of the options.
const (
	maxAttempts = 10
	maxName     = 100 // bytes of a field's name and of a marker
	testShare   = 8   // one question of so many is for tests
)

// Options of mathqa; declare says what each is. The defaults ask the sample, with
// three attempts.
type Options struct {
	File, SHA256                             string
	QuestionField, AnswerField, AnswerMarker string
	Attempts                                 int
	Split                                    string
	Instances, Pool                          int
	Compare                                  string
}

func (s *Options) declare(o *envs.Options) {
	o.Text("file", &s.File, "", "a path on the workers to JSON Lines or Parquet with a question and an answer in each row, at most 256 MiB; if absent, 40 built-in arithmetic questions")
	o.Text("sha256", &s.SHA256, "", "the file's SHA-256, which every worker checks; if absent, any contents are accepted")
	o.Text("question_field", &s.QuestionField, "question", "the field, or column, of the question (MetaMathQA: query)")
	o.Text("answer_field", &s.AnswerField, "answer", "the field, or column, of the answer (MetaMathQA: response)")
	o.Text("answer_marker", &s.AnswerMarker, "", "the text before the answer, if its field has more than the answer (GSM8K: ####, MetaMathQA: The answer is:)")
	for _, name := range []struct {
		path, value string
		least       int
	}{{"question_field", s.QuestionField, 1}, {"answer_field", s.AnswerField, 1}, {"answer_marker", s.AnswerMarker, 0}} {
		if len(name.value) < name.least || len(name.value) > maxName {
			o.Wrong(name.path, fmt.Sprintf("%d to %d bytes", name.least, maxName))
		}
	}
	if s.QuestionField == s.AnswerField {
		o.Wrong("answer_field", "another field than question_field's")
	}
	if s.SHA256 != "" && !canon.IsDigest(s.SHA256) {
		o.Wrong("sha256", "64 lower-case hexadecimal digits")
	}
	o.Choice("compare", &s.Compare, Numbers, compareNames, "when an answer is right: numbers (numbers of equal value, whatever their commas, zeros, signs of money, per cent, units or LaTeX; other answers as texts), or text (it equals the file's, ignoring case and blanks: RAGEN's)")
	o.Int("attempts", &s.Attempts, 3, 1, maxAttempts, "largest number of attempts, each a turn: {range} (RAGEN's configuration allows 1)")
	o.Choice("split", &s.Split, All, splitNames, "all questions of the file, or by a hash of the question: test (one of eight) or train. RAGEN draws both from all")
	o.Int("instances", &s.Instances, 0, 0, board.MaxInstances, "how many of the questions are asked, whatever the seed; 0 for all")
	o.Int("pool", &s.Pool, 0, 0, board.MaxInstances, "which questions these are: another pool has others")
}

// New makes a mathqa from its options.
func New(o *envs.Options) envs.Environment {
	m := &MathQA{table: o}
	m.options.declare(o)
	if o.OK() {
		m.load(o)
	}
	return m
}

// load reads the questions and keeps those that the options ask for.
func (m *MathQA) load(table *envs.Options) {
	o := m.options
	content := sample
	if o.File != "" {
		var err error
		if content, err = rows.Open(o.File); err != nil {
			table.WrongFile("file", o.File, err, "a file of questions")
			return
		}
	}
	digest := sha256.Sum256(content)
	m.digest = hex.EncodeToString(digest[:])
	if o.SHA256 != "" && o.SHA256 != m.digest {
		table.Wrong("sha256", "the digest of the file, which is "+m.digest)
		return
	}
	fields := Fields{Question: o.QuestionField, Answer: o.AnswerField, Marker: o.AnswerMarker, Numbers: o.Compare == Numbers}
	questions, err := Read(content, fields)
	if err != nil {
		table.WrongFile("file", o.File, err, "a file of questions")
		return
	}
	for _, q := range questions {
		split := q.split()
		m.held = m.held || split == Test
		if o.Split == All || o.Split == split {
			m.questions = append(m.questions, q)
		}
	}
	switch n := len(m.questions); {
	case n == 0:
		table.Wrong("split", fmt.Sprintf("another one: none of the %d questions is in it", len(questions)))
	case o.Instances > n:
		table.Wrong("instances", fmt.Sprintf("at most %d, the questions there are", n))
	case o.Instances > 0:
		m.questions = board.Some(m.questions, o.Instances, o.Pool)
	}
}

// split says what a question is for, by the question alone.
func (q Question) split() string {
	digest := sha256.Sum256([]byte("reprise/mathqa/1 " + q.Text))
	if binary.BigEndian.Uint64(digest[:8])%testShare == 0 {
		return Test
	}
	return Train
}

// Pin implements envs.Pinned.
func (m *MathQA) Pin() (json.RawMessage, error) {
	return m.table.JSON(map[string]any{"sha256": m.digest}), nil
}

// HeldOut implements envs.Held: for a training split, all of the test split, of
// the same file. Nothing is held out if all questions are trained on, or if the file has
// none for tests.
func (m *MathQA) HeldOut() json.RawMessage {
	changes := map[string]any{"sha256": m.digest}
	if m.options.Split == Train && m.held {
		changes["split"], changes["instances"], changes["pool"] = Test, 0, 0
	}
	return m.table.JSON(changes)
}
