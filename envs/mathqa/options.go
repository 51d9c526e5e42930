package mathqa

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
)

// sample is the questions that are asked where no file is given: made for this
// repository.
//
//go:embed sample.jsonl
var sample []byte

// Options of mathqa. See Describe for each.
type Options struct {
	File          string `json:"file"`
	SHA256        string `json:"sha256"`
	QuestionField string `json:"question_field"`
	AnswerField   string `json:"answer_field"`
	AnswerMarker  string `json:"answer_marker"`
	Attempts      int    `json:"attempts"`
	Split         string `json:"split"`
	Instances     int    `json:"instances"`
	Pool          int    `json:"pool"`
}

// Defaults ask the sample, with three attempts.
var Defaults = Options{
	QuestionField: "question",
	AnswerField:   "answer",
	Attempts:      3,
	Split:         All,
}

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

var hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)

// New makes a mathqa from its options; the error is an *envs.OptionsError.
func New(raw json.RawMessage) (envs.Environment, error) {
	o := Defaults
	checks := board.Checks{Problems: envs.DecodeOptions(raw, &o)}
	for _, name := range []struct {
		path, value string
		least       int
	}{{"question_field", o.QuestionField, 1}, {"answer_field", o.AnswerField, 1}, {"answer_marker", o.AnswerMarker, 0}} {
		if len(name.value) < name.least || len(name.value) > maxName {
			checks.Wrong(name.path, name.value, fmt.Sprintf("%d to %d bytes", name.least, maxName))
		}
	}
	if o.QuestionField == o.AnswerField {
		checks.Wrong("answer_field", o.AnswerField, "another field than question_field's")
	}
	if o.SHA256 != "" && !hexDigest.MatchString(o.SHA256) {
		checks.Wrong("sha256", o.SHA256, "64 lower-case hexadecimal digits")
	}
	checks.Range("attempts", o.Attempts, 1, maxAttempts)
	checks.OneOf("split", o.Split, splitNames)
	checks.Range("instances", o.Instances, 0, board.MaxInstances)
	checks.Range("pool", o.Pool, 0, board.MaxInstances)
	m := &MathQA{options: o}
	if len(checks.Problems) == 0 {
		m.load(&checks)
	}
	if err := checks.Err(Name); err != nil {
		return nil, err
	}
	return m, nil
}

// load reads the questions and keeps those that the options ask for.
func (m *MathQA) load(checks *board.Checks) {
	o := m.options
	content := sample
	if o.File != "" {
		var err error
		if content, err = Open(o.File); err != nil {
			fileProblem(checks, o.File, err)
			return
		}
	}
	digest := sha256.Sum256(content)
	m.digest = hex.EncodeToString(digest[:])
	if o.SHA256 != "" && o.SHA256 != m.digest {
		checks.Wrong("sha256", o.SHA256, "the digest of the file, which is "+m.digest)
		return
	}
	questions, err := Read(content, Fields{Question: o.QuestionField, Answer: o.AnswerField, Marker: o.AnswerMarker})
	if err != nil {
		fileProblem(checks, o.File, err)
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
		checks.Wrong("split", o.Split, fmt.Sprintf("another one: none of the %d questions is in it", len(questions)))
	case o.Instances > n:
		checks.Wrong("instances", o.Instances, fmt.Sprintf("at most %d, the questions there are", n))
	case o.Instances > 0:
		kept := make([]Question, o.Instances)
		for i, at := range board.Member(0, o.Pool).Rand().Perm(n)[:o.Instances] {
			kept[i] = m.questions[at]
		}
		m.questions = kept
	}
}

// fileProblem adds what is wrong with a file.
func fileProblem(checks *board.Checks, path string, err error) {
	var system *fs.PathError
	if errors.As(err, &system) {
		err = system.Err // without the path, which is told already
	}
	p := envs.Problem{Path: "file", Found: fmt.Sprintf("%q (%v)", path, err), Want: "a file of questions"}
	var wrong *FileError
	if errors.As(err, &wrong) {
		p.Found, p.Want = fmt.Sprintf("%q: %s", path, wrong.Place()), wrong.Want
	}
	checks.Problems = append(checks.Problems, p)
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
	o := m.options
	o.SHA256 = m.digest
	return json.Marshal(o)
}

// HeldOut implements envs.Held: for a training split, all of the test split, of
// the same file. Nothing is held back where all questions are trained on, or
// where the file has none for tests.
func (m *MathQA) HeldOut() json.RawMessage {
	held := *m
	if m.options.Split == Train && m.held {
		held.options.Split, held.options.Instances, held.options.Pool = Test, 0, 0
	}
	options, err := held.Pin()
	if err != nil {
		panic(fmt.Sprintf("mathqa: options: %v", err)) // strings and integers
	}
	return options
}

// Describe implements envs.Environment.
func (m *MathQA) Describe() envs.Description {
	d := &Defaults
	return envs.Description{
		Name:    Name,
		Summary: "Answer a question from a file, with several attempts: the first is worth 1, the next a half, then a quarter. An answer is right if it is the file's, case and blanks aside.",
		Options: []envs.Option{
			{Name: "file", Type: "string", Default: d.File, Doc: "a path on the workers to JSON Lines or Parquet with a question and an answer in each row, at most 256 MiB; absent for a sample of 40 arithmetic questions"},
			{Name: "sha256", Type: "string", Default: d.SHA256, Doc: "the file's SHA-256, which every worker checks; absent, whatever is in the file counts"},
			{Name: "question_field", Type: "string", Default: d.QuestionField, Doc: "the field, or column, of the question (MetaMathQA: query)"},
			{Name: "answer_field", Type: "string", Default: d.AnswerField, Doc: "the field, or column, of the answer (MetaMathQA: response)"},
			{Name: "answer_marker", Type: "string", Default: d.AnswerMarker, Doc: "what stands before the answer in its field, where that says more (GSM8K: ####, MetaMathQA: The answer is:)"},
			{Name: "attempts", Type: "integer", Default: d.Attempts, Doc: "most attempts, each a turn: 1 to 10 (RAGEN's configuration allows 1)"},
			{Name: "split", Type: "string", Default: d.Split, Doc: "all questions of the file, or by a hash of the question: test (one of eight) or train. RAGEN draws both from all"},
			{Name: "instances", Type: "integer", Default: d.Instances, Doc: "how many of the questions are asked, whatever the seed; 0 for all"},
			{Name: "pool", Type: "integer", Default: d.Pool, Doc: "which questions these are: pools with other numbers have others"},
		},
	}
}
