package tools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/calls"
)

const library = `{"id":"b","title":"Paris","text":"Paris is the capital of France. It lies on the Seine."}
{"id":"a","title":"Seine","text":"The Seine is a river in France."}
{"id":2,"title":"Lyon\nFrance","text":" Lyon  is a town\nof silk. "}
{"id":"d","text":"Twins are two.","more":[1]}
{"id":"c","text":"Twins are two."}
`

func file(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "corpus")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func options(t testing.TB, values map[string]any) json.RawMessage {
	t.Helper()
	if values == nil {
		return nil
	}
	b, err := json.Marshal(values)
	require.NoError(t, err)
	return b
}

func mustRetrieve(t testing.TB, values map[string]any, env envs.Environment) *Retrieve {
	t.Helper()
	tool, err := envs.NewTool(RetrieveName, options(t, values), env)
	require.NoError(t, err)
	return tool.(*Retrieve)
}

func TestRetrieve(t *testing.T) {
	tool := mustRetrieve(t, map[string]any{"corpus": file(t, library), "k": 2}, nil)
	for text, want := range map[string]envs.ToolAnswer{
		"capital of France": {Text: "Doc 1(Title: Paris) Paris is the capital of France. It lies on the Seine.\n" +
			"Doc 2(Title: Seine) The Seine is a river in France."},
		"SEINES":                        {Text: "Doc 1(Title: Seine) The Seine is a river in France.\nDoc 2(Title: Paris) Paris is the capital of France. It lies on the Seine."},
		"silk":                          {Text: "Doc 1(Title: Lyon France) Lyon  is a town\nof silk."},
		"twin":                          {Text: "Doc 1(Title: ) Twins are two.\nDoc 2(Title: ) Twins are two."},
		"nowhere":                       {Text: NoDocument},
		"the of and":                    {Text: NoDocument},
		"?":                             {Text: NoDocument},
		"":                              {Text: "Error: the query is empty.", Failed: true},
		" \n":                           {Text: "Error: the query is empty.", Failed: true},
		strings.Repeat("a", MaxQuery+1): {Text: "Error: the query has 1025 bytes, at most 1024 are allowed.", Failed: true},
	} {
		require.Equal(t, want, tool.Call(calls.OfText(query, text)), text)
	}
	for _, object := range []string{``, `{}`, `{"query":["a"]}`, `{"query":"a","query":"b"}`, `[]`} {
		require.Equal(t, envs.ToolAnswer{Text: "Error: the search needs a text named query.", Failed: true}, tool.Call(json.RawMessage(object)), object)
	}
	hits := tool.corpus.index().Search("twins", 2)
	require.Equal(t, []int{4, 3}, []int{hits[0].Document, hits[1].Document}, "equal scores by ID")
	require.Contains(t, tool.Describe().Description, "the 2 that fit")
}

func TestWordsAreBounded(t *testing.T) {
	tool := mustRetrieve(t, map[string]any{"corpus": file(t, library), "k": 1, "max_document_words": 3}, nil)
	require.Equal(t, "Doc 1(Title: Lyon France) Lyon  is a …", tool.Call(calls.OfText(query, "silk")).Text)
	for text, want := range map[string]string{
		"a b c": "a b c", "a b c d": "a b c …", " a  b\n\nc  ": "a  b\n\nc", "é ü ñ ö": "é ü ñ …", "": "",
		strings.Repeat("x", 3*maxWordBytes+1): strings.Repeat("x", 3*maxWordBytes) + " …",
		strings.Repeat("日", 100):              strings.Repeat("日", maxWordBytes) + " …",
		strings.Repeat("a ", 10000):           "a a a …",
	} {
		require.Equal(t, want, firstWords(text, 3))
	}
}

// A file's digest is checked, and pinned.
func TestPin(t *testing.T) {
	path := file(t, library)
	tool := mustRetrieve(t, map[string]any{"corpus": path}, nil)
	pinned, err := envs.Pinned(tool).Pin()
	require.NoError(t, err)
	digest := fileDigest([]byte(library))
	require.JSONEq(t, fmt.Sprintf(`{"corpus":%q,"sha256":%q,"k":3,"max_document_words":100}`, path, digest), string(pinned))
	again, err := envs.NewTool(RetrieveName, pinned, nil)
	require.NoError(t, err)
	require.Same(t, tool.corpus, again.(*Retrieve).corpus, "read once")
	require.NoError(t, os.WriteFile(path, []byte(library+`{"id":"z","text":"new"}`), 0o600))
	_, err = envs.NewTool(RetrieveName, pinned, nil)
	require.ErrorContains(t, err, `sha256: found "`+digest+`", want the digest of the file, which is `)
}

// worldly is an environment with documents.
type worldly struct {
	envs.Environment
	documents []envs.Document
}

func (w worldly) Corpus() []envs.Document { return w.documents }

func TestDocumentsOfAnEnvironment(t *testing.T) {
	env := worldly{documents: []envs.Document{{ID: "1", Title: "Ada", Text: "Ada was born in Rome."}, {ID: "2", Title: "Bob", Text: "Bob knows Ada."}}}
	tool := mustRetrieve(t, nil, env)
	require.Equal(t, "Doc 1(Title: Ada) Ada was born in Rome.\nDoc 2(Title: Bob) Bob knows Ada.", tool.Call(calls.OfText(query, "ada")).Text)
	pinned, err := tool.Pin()
	require.NoError(t, err)
	require.Same(t, tool.corpus, mustRetrieve(t, map[string]any{"k": 5}, env).corpus)
	_, err = envs.NewTool(RetrieveName, pinned, env)
	require.NoError(t, err)
	other := worldly{documents: []envs.Document{{ID: "1", Title: "Ad", Text: "aAda was born in Rome."}, env.documents[1]}}
	require.NotSame(t, tool.corpus, mustRetrieve(t, nil, other).corpus)
	mine := mustRetrieve(t, map[string]any{"corpus": file(t, library)}, env)
	require.Equal(t, NoDocument, mine.Call(calls.OfText(query, "ada")).Text, "the file counts")
}

func TestWrongOptions(t *testing.T) {
	for _, c := range []struct {
		values map[string]any
		want   string
	}{
		{nil, `corpus: found "", want a file of documents, since the environment has none`},
		{map[string]any{"sha256": strings.Repeat("a", 64)}, "want no digest without a file"},
		{map[string]any{"corpus": "x", "sha256": "A"}, "want 64 lower-case"},
		{map[string]any{"corpus": "x", "k": 0}, "from 1 to 20"}, {map[string]any{"corpus": "x", "k": 21}, "from 1 to 20"},
		{map[string]any{"corpus": "x", "max_document_words": 0}, "from 1 to 2000"},
		{map[string]any{"corpus": "/nowhere/x"}, `corpus: found "/nowhere/x" (no such file or directory), want a file of documents`},
		{map[string]any{"corpus": t.TempDir()}, "want a regular file"},
		{map[string]any{"corpus": file(t, "{")}, "line 1, column 1"},
	} {
		_, err := envs.NewTool(RetrieveName, options(t, c.values), worldly{})
		var wrong *envs.OptionsError
		require.ErrorAs(t, err, &wrong)
		require.ErrorContains(t, err, c.want)
	}
	d, err := envs.DescribeTool(RetrieveName)
	require.NoError(t, err)
	require.Len(t, d.Options, 4)
}

func TestRetrieveSuggests(t *testing.T) {
	tool := mustRetrieve(t, map[string]any{"corpus": file(t, library)}, nil)
	texts := func(objects []json.RawMessage) (out []string) {
		for _, object := range objects {
			text, ok := calls.Text(object, query)
			require.True(t, ok)
			require.False(t, tool.Call(object).Failed)
			out = append(out, text)
		}
		return out
	}
	require.Equal(t, []string{"Who", "Who is", "Who is Ada", "is", "is Ada", "Ada", "a<b"}, texts(tool.Suggest("Who is Ada's?\n(a<b)")))
	require.Len(t, texts(tool.Suggest("one two three four five six seven")), 6+6+5+4+3+2+1)
	require.Empty(t, tool.Suggest(" . "))
}

// Tools that are made at the same time share a corpus and its index, and the oldest corpora are forgotten.
func TestCorporaAreShared(t *testing.T) {
	env := worldly{documents: generated(300)}
	made := make([]*Retrieve, 8)
	answers := make([]envs.ToolAnswer, len(made))
	var wait sync.WaitGroup
	for i := range made {
		wait.Go(func() {
			tool, err := envs.NewTool(RetrieveName, nil, env)
			if err == nil {
				made[i] = tool.(*Retrieve)
				answers[i] = tool.Call(calls.OfText(query, "river 17"))
			}
		})
	}
	wait.Wait()
	for i := range made {
		require.Same(t, made[0].corpus, made[i].corpus)
		require.Same(t, made[0].corpus.index(), made[i].corpus.index())
		require.Equal(t, answers[0], answers[i])
	}
	for i := range maxKept {
		mustRetrieve(t, nil, worldly{documents: generated(i + 1)})
	}
	require.Len(t, corpora.kept, maxKept)
	again := mustRetrieve(t, nil, env)
	require.NotSame(t, made[0].corpus, again.corpus)
	require.Equal(t, answers[0], again.Call(calls.OfText(query, "river 17")))
}

// generated are documents of words that many share.
func generated(n int) []envs.Document {
	words := strings.Fields("river city king year book teacher company bridge mountain founder capital spouse island school painter")
	documents := make([]envs.Document, n)
	for i := range documents {
		var text strings.Builder
		for j := range 40 {
			fmt.Fprintf(&text, "%s %d ", words[(i*7+j*j)%len(words)], (i*31+j)%n)
		}
		documents[i] = envs.Document{ID: fmt.Sprintf("%05d", i), Title: fmt.Sprintf("%s %d", words[i%len(words)], i), Text: text.String()}
	}
	return documents
}

func BenchmarkRetrieve(b *testing.B) {
	tool := mustRetrieve(b, nil, worldly{documents: generated(2000)})
	call := calls.OfText(query, "which city is the capital of the king who founded school 42?")
	tool.Call(call)
	for b.Loop() {
		if tool.Call(call).Failed {
			b.Fatal("failed")
		}
	}
}

func FuzzRetrieve(f *testing.F) {
	tool := mustRetrieve(f, nil, worldly{documents: generated(20)})
	for _, text := range []string{"river", "", "é 3", "\xff", strings.Repeat("king ", 300)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		answer := tool.Call(calls.OfText(query, text))
		require.NotEmpty(t, answer.Text)
		require.Equal(t, answer, tool.Call(calls.OfText(query, text)))
	})
}
