package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/envs/rows"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Limits of a search.
const (
	// MaxQuery is the most bytes of a query.
	MaxQuery = 1024
	// MaxHits is the most documents that a call may show.
	MaxHits = 20
	// maxWords is the most words of a document that a call may show.
	maxWords = 2000
	// maxWordBytes is the most bytes that a word of a shown document may have on average, and its blank.
	maxWordBytes = 32
)

// Retrieve is a tool that searches the documents of a corpus as Search-R1 does (arXiv 2503.09516), whose words its
// answers have: BM25 with English analysis over title and text, and documents of equal scores by ID.
type Retrieve struct {
	table  *envs.Options
	file   string
	digest string // of the file
	k      int
	words  int
	corpus *corpus
}

// query is the name of the argument.
const query = "query"

// NoDocument is the answer to a query of which no document has a word.
const NoDocument = "no document found"

// NewRetrieve makes the tool from its options. Without a file, the environment must be an envs.Library with documents.
// What is wrong is a problem of the options.
func NewRetrieve(o *envs.Options, env envs.Environment) *Retrieve {
	r := &Retrieve{table: o}
	o.Text("corpus", &r.file, "", "a path on the workers to JSON Lines or Parquet with id, title (may be missing) and text in each row, at most "+
		"256 MiB; if absent, the documents of the environment, which must have some")
	o.Text("sha256", &r.digest, "", "the file's SHA-256, which every worker checks; if absent, any contents are accepted")
	if r.digest != "" && !canon.IsDigest(r.digest) {
		o.Wrong("sha256", "64 lower-case hexadecimal digits")
	}
	if r.digest != "" && r.file == "" {
		o.Wrong("sha256", "no digest without a file: the environment's documents follow from its own options")
	}
	o.Int("k", &r.k, 3, 1, MaxHits, "how many documents an answer has, {range} (Search-R1: 3)")
	o.Int("max_document_words", &r.words, 100, 1, maxWords, "how many words of each document's text are shown, {range}")
	if o.OK() {
		r.load(o, env)
	}
	return r
}

// load reads the corpus.
func (r *Retrieve) load(o *envs.Options, env envs.Environment) {
	if r.file == "" {
		library, _ := env.(envs.Library)
		var documents []envs.Document
		if library != nil {
			documents = library.Corpus()
		}
		if len(documents) == 0 {
			o.Wrong("corpus", "a file of documents, since the environment has none")
			return
		}
		r.corpus, _ = corpusOf(documentsDigest(documents), func() ([]envs.Document, error) { return documents, nil })
		return
	}
	const wanted = "a file of documents"
	content, err := rows.Open(r.file)
	if err != nil {
		o.WrongFile("corpus", r.file, err, wanted)
		return
	}
	digest := fileDigest(content)
	if r.digest != "" && r.digest != digest {
		o.Wrong("sha256", "the digest of the file, which is "+digest)
		return
	}
	r.digest = digest
	if r.corpus, err = corpusOf(digest, func() ([]envs.Document, error) { return rows.Documents(content) }); err != nil {
		o.WrongFile("corpus", r.file, err, wanted)
	}
}

// Pin implements envs.Pinned.
func (r *Retrieve) Pin() (json.RawMessage, error) {
	return r.table.JSON(map[string]any{"sha256": r.digest}), nil
}

// Describe implements envs.Tool.
func (r *Retrieve) Describe() chat.Tool {
	return chat.Tool{
		Name:        RetrieveName,
		Description: fmt.Sprintf("Searches a collection of documents and answers the %d that fit the query best.", r.k),
		Parameters:  calls.TextSchema(query, "What to look for, in a few words"),
	}
}

// Call implements envs.Tool.
func (r *Retrieve) Call(object json.RawMessage) envs.ToolAnswer {
	text, ok := calls.Text(object, query)
	switch {
	case !ok:
		return failed("the search needs a text named %s", query)
	case len(text) > MaxQuery:
		return failed("the query has %d bytes, at most %d are allowed", len(text), MaxQuery)
	case strings.TrimSpace(text) == "":
		return failed("the query is empty")
	}
	hits := r.corpus.index().Search(text, r.k)
	if len(hits) == 0 {
		return envs.ToolAnswer{Text: NoDocument}
	}
	lines := make([]string, len(hits))
	for i, hit := range hits {
		d := r.corpus.documents[hit.Document]
		lines[i] = fmt.Sprintf("Doc %d(Title: %s) %s", i+1, inLine(d.Title), firstWords(d.Text, r.words))
	}
	return envs.ToolAnswer{Text: strings.Join(lines, "\n")}
}

// inLine is a text with single blanks between its words.
func inLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// firstWords are so many words of a text at its beginning, as they stand, and " …" if that is not all. Words that are very
// long count as several.
func firstWords(text string, words int) string {
	text = strings.TrimSpace(text)
	end, inWord := min(len(text), maxWordBytes*words), false
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	for at, c := range text[:end] {
		if blank := unicode.IsSpace(c); blank == inWord { // a word ends or begins
			if inWord = !blank; inWord {
				words--
			} else if words == 0 {
				end = at
				break
			}
		}
	}
	if end == len(text) {
		return text
	}
	return strings.TrimRightFunc(text[:end], unicode.IsSpace) + " …"
}

// suggestedWords is the most words of a suggested query.
const suggestedWords = 6

// Suggest implements envs.Suggesting: each phrase of up to six words that was read. A policy that writes them learns to copy:
// after its first word, each next one of a query follows from what was read.
func (r *Retrieve) Suggest(read string) []json.RawMessage {
	var out []json.RawMessage
	for _, phrase := range envs.Phrases(read, suggestedWords) {
		out = append(out, calls.OfText(query, phrase))
	}
	return out
}
