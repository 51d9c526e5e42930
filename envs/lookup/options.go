package lookup

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/board"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

const summary = "Answer a question whose answer is in a corpus: one to four documents have to be found, each of which names the " +
	"next. One action, the answer: 1 if it is right, 0 otherwise, or F1. The corpus and its questions are generated, or are your own " +
	"files. The tool retrieve searches the corpus."

// Splits of the questions.
const (
	Train = "train"
	Test  = "test"
	All   = "all"
)

var splitNames = []string{Train, Test, All}

const maxSeed = 1 << 30

// file is a user's file: its path, and its SHA-256 if one is demanded.
type file struct{ path, digest string }

// Options of lookup; declare says what each is. The defaults ask questions of one or two hops about the full world.
type Options struct {
	Size             string
	Seed             int
	HopsMin, HopsMax int
	Reward, Split    string
	Instances, Pool  int
	corpus           file
	questions        file
	QuestionField    string
	AnswersField     string
}

func (s *Options) declare(o *envs.Options) {
	o.Choice("size", &s.Size, Full, sizeNames,
		"the generated world: full (2,080 documents about people, cities, countries, companies and books), tiny (162 documents of at "+
			"most 12 tokens of the starter's second tokenizer), or short (2,000 documents of one sentence in the same words)")
	o.Int("seed", &s.Seed, 0, 0, maxSeed, "which world: another seed has other names and facts")
	o.Int("hops_min", &s.HopsMin, 1, 1, maxHops, "least number of documents that a generated question needs: {range}")
	o.Int("hops_max", &s.HopsMax, 2, max(1, min(s.HopsMin, maxHops)), maxHops, "most documents that a generated question needs: hops_min to 4")
	o.Choice("reward", &s.Reward, Exact, rewardNames,
		"what an answer pays: em (1 if it equals one of the question's, ignoring case, punctuation, articles and blanks: Search-R1's "+
			"exact match), subem (1 if it has one in it), or f1 (of their words, as SQuAD's)")
	o.Choice("split", &s.Split, Train, splitNames,
		"train, test (a fifth of the entities; no entity is in questions of both) or all. Of a file: what its field split says, or by a "+
			"hash of the question test (one of eight) or train")
	o.Int("instances", &s.Instances, 0, 0, board.MaxInstances,
		"how many instances there are, whatever the seed of the run; 0 for no limit. Of a file: how many of its questions are asked, 0 "+
			"for all")
	o.Int("pool", &s.Pool, 0, 0, board.MaxInstances, "which instances these are: another pool has others")
	o.Text("questions", &s.questions.path, "",
		"a path on the workers to JSON Lines or Parquet with a question and its answers in each row, and perhaps its split, at most 256 "+
			"MiB; if absent, questions about the generated world")
	o.Text("questions_sha256", &s.questions.digest, "",
		"SHA-256 of questions, which every worker checks; if absent, any contents are accepted")
	o.Text("question_field", &s.QuestionField, "question", "the field, or column, of the question")
	o.Text("answers_field", &s.AnswersField, "answers",
		"the field, or column, of the answers that are right: a text, a number or a list of them (FlashRAG and Search-R1: golden_answers)")
	o.Text("corpus", &s.corpus.path, "",
		"a path on the workers to JSON Lines or Parquet with id, title (may be missing) and text in each row, at most 256 MiB: what the "+
			"tool retrieve searches for a file of questions; if absent, the tool has to name its own")
	o.Text("corpus_sha256", &s.corpus.digest, "", "SHA-256 of corpus")
	for _, name := range []struct{ path, value string }{{"question_field", s.QuestionField}, {"answers_field", s.AnswersField}} {
		if name.value == "" || len(name.value) > maxName {
			o.Wrong(name.path, fmt.Sprintf("1 to %d bytes", maxName))
		}
	}
	if s.QuestionField == s.AnswersField || s.AnswersField == splitField {
		o.Wrong("answers_field", "another field than question_field's and "+splitField)
	}
	if s.QuestionField == splitField {
		o.Wrong("question_field", "another field than "+splitField)
	}
	for _, f := range []struct {
		name string
		file
	}{{"questions", s.questions}, {"corpus", s.corpus}} {
		if f.digest != "" && !canon.IsDigest(f.digest) {
			o.Wrong(f.name+"_sha256", "64 lower-case hexadecimal digits")
		}
		if f.digest != "" && f.path == "" {
			o.Wrong(f.name+"_sha256", "no digest without the file "+f.name)
		}
	}
	if s.corpus.path != "" && s.questions.path == "" {
		o.Wrong("corpus", "no corpus without questions: the generated questions are about the generated corpus")
	}
}

// New makes a lookup from its options.
func New(o *envs.Options) envs.Environment {
	l := &Lookup{table: o}
	l.options.declare(o)
	if !o.OK() {
		return l
	}
	if l.options.questions.path != "" {
		l.load(o)
		return l
	}
	world := worlds.get(worldOf{l.options.Size, l.options.Seed}, func() (*world, error) {
		return generate(l.options.Size, l.options.Seed), nil
	})
	g := newGenerated(world.value, l.options)
	for hops := l.options.HopsMin; hops <= l.options.HopsMax; hops++ {
		if len(g.paths[hops]) == 0 {
			o.Wrong("seed", fmt.Sprintf("another one: the split of this world has no question of %d hops", hops))
		}
	}
	l.asks, l.corpus = g, world.value.documents
	return l
}

// Pin implements envs.Pinned.
func (l *Lookup) Pin() (json.RawMessage, error) {
	return l.table.JSON(l.digests()), nil
}

// digests are the options that name the contents of the files.
func (l *Lookup) digests() map[string]any {
	return map[string]any{"questions_sha256": l.options.questions.digest, "corpus_sha256": l.options.corpus.digest}
}

// HeldOut implements envs.Held: for a training split, all of the test split, whose questions are about other entities.
// Nothing is held out if all questions are trained on, or if a file has none for tests.
func (l *Lookup) HeldOut() json.RawMessage {
	changes := l.digests()
	if l.options.Split == Train && l.asks.held() {
		changes["split"], changes["instances"], changes["pool"] = Test, 0, 0
	}
	return l.table.JSON(changes)
}
