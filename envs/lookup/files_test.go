package lookup

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/rows"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/draw"
)

// written writes a file and gives its path, as JSON.
func written(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return strconv.Quote(path)
}

const someQuestions = `{"question":" Where is the cat? ","answers":["On the Mat","mat","the mat"],"split":"train"}
{"question":"How many mats?","answers":2,"split":"test"}

{"question":"<|im_end|>","answers":"É","split":"train"}
`

const someDocuments = `{"id":7,"title":"Cat","text":"The cat is on the mat."}
{"id":"b","text":"Two mats."}
`

func TestFiles(t *testing.T) {
	options := `{"questions":` + written(t, "q.jsonl", []byte(someQuestions)) + `,"corpus":` + written(t, "c.jsonl", []byte(someDocuments)) + `,"split":`
	env := mustNew(t, options+`"train"}`)
	require.Equal(t, []envs.Document{{ID: "7", Title: "Cat", Text: "The cat is on the mat."}, {ID: "b", Text: "Two mats."}}, env.Corpus())
	seen := map[string][]string{}
	for group := range int64(40) {
		e := env.Reset(at(group), draw.Address{})
		seen[e.Observation()] = e.(envs.Advised).Advice(1)
		require.ElementsMatch(t, []string{"on mat", "2", "é"}, e.Choices())
	}
	require.Equal(t, map[string][]string{"Where is the cat?": {"on mat"}, "<|im_end|>": {"é"}}, seen)
	require.True(t, env.begin(env.asks.(*fromFile).chosen[0]).Step("mat").Success)
	require.Equal(t, []string{"nothing"}, env.Examples(nil))

	held := mustNew(t, string(env.HeldOut()))
	require.Equal(t, "How many mats?", held.Reset(at(0), draw.Address{}).Observation())
	require.JSONEq(t, string(held.HeldOut()), string(env.HeldOut()))
	all := mustNew(t, options+`"all","instances":3}`)
	texts := map[string]bool{}
	for group := range int64(3) {
		texts[all.Reset(at(group), draw.Address{}).Observation()] = true
	}
	require.Len(t, texts, 3)
	require.Len(t, all.Cases(), 3)

	pinned, err := env.Pin()
	require.NoError(t, err)
	same := mustNew(t, string(pinned))
	require.NotEmpty(t, same.options.questions.digest)
	require.NotEmpty(t, same.options.corpus.digest)
	require.NotEqual(t, same.options.corpus.digest, same.options.questions.digest)
	for _, name := range []string{"questions", "corpus"} {
		var changed map[string]any
		require.NoError(t, json.Unmarshal(pinned, &changed))
		require.NoError(t, os.WriteFile(changed[name].(string), []byte(someQuestions+" "), 0o600))
		_, err = envs.New(Name, pinned)
		require.ErrorContains(t, err, name+"_sha256: found ")
		require.ErrorContains(t, err, "want the digest of the file, which is ")
		content := map[string]string{"questions": someQuestions, "corpus": someDocuments}[name]
		require.NoError(t, os.WriteFile(changed[name].(string), []byte(content), 0o600))
	}
	require.Equal(t, same.Corpus(), mustNew(t, string(pinned)).Corpus())
}

// Parquet is read as JSON Lines are, by other names of the fields too; questions without a mark are split by a hash.
func TestParquet(t *testing.T) {
	type asked struct {
		Query  string   `parquet:"query"`
		Golden []string `parquet:"golden_answers,list"`
	}
	type document struct {
		ID    int64  `parquet:"id"`
		Title string `parquet:"title"`
		Text  string `parquet:"text"`
	}
	var questions []asked
	for i := range 200 {
		questions = append(questions, asked{"What is " + strconv.Itoa(i) + "?", []string{"it " + strconv.Itoa(i), strconv.Itoa(i)}})
	}
	options := `{"questions":` + written(t, "q.parquet", table(t, questions...)) + `,"question_field":"query","answers_field":"golden_answers","corpus":` +
		written(t, "c.parquet", table(t, document{1, "A", "a"}, document{2, "B", "b"})) + `,"split":`
	train, test := mustNew(t, options+`"train"}`), mustNew(t, options+`"test"}`)
	require.Len(t, train.Corpus(), 2)
	trained, tested := train.asks.(*fromFile).chosen, test.asks.(*fromFile).chosen
	require.Len(t, append(trained, tested...), 200)
	require.InDelta(t, 25, len(tested), 20)
	e := test.begin(tested[0])
	require.Len(t, e.Choices(), exampleAnswers)

	tok, err := starter.Tokenizer()
	require.NoError(t, err)
	_, err = envs.MaxPromptTokens(train, tok, envs.Protocol{Think: true}, 1, 16)
	require.NoError(t, err)
}

func table[T any](t testing.TB, records ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b)
	_, err := w.Write(records)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// What is wrong with a file is told with its place, and with what is allowed there.
func TestWrongFiles(t *testing.T) {
	good := `{"question":"a","answers":["b"]}` + "\n"
	for content, wrong := range map[string]string{
		"":                               `the file, want at least one question`,
		good + "x":                       `line 2, column 1, want a JSON object, as {\"question\":\"…\",\"answers\":[\"…\"]}`,
		good + `{"question":"a"}`:        `line 2, want the field \"answers\"`,
		`{"question":" ","answers":"b"}`: `line 1, column 13, want a question`,
		`{"question":"` + strings.Repeat("a", maxQuestion+1) + `","answers":"b"}`: `want a question of at most 8192 bytes`,
		`{"question":"a","answers":[]}`:                                           `line 1, column 27, want 1 to 64 answers in the field`,
		`{"question":"a","answers":["b","The"]}`:                                  `line 1, column 27, want answers in the field`,
		`{"question":"a","answers":{}}`:                                           `line 1, column 27, want a string, a number or a list of them`,
		`{"question":"a","answers":"b","split":"dev"}`:                            `line 1, column 39, want train or test in the field`,
		good + `{"question":"a","answers":["b"],"answers":"c"}`:                   `line 2, column 43, want the field \"answers\" once`,
	} {
		_, err := readQuestions([]byte(content), "question", "answers")
		requireWrong(t, err, wrong, content)
	}
	document := `{"id":1,"text":"b"}` + "\n"
	_, err := envs.New(Name, json.RawMessage(`{"questions":`+written(t, "q.jsonl", []byte(good+"x"))+`}`))
	require.ErrorContains(t, err, `q.jsonl": line 2, column 1, want a JSON object`)
	questions := `{"questions":` + written(t, "q.jsonl", []byte(good+`{"question":"b","answers":1,"split":"train"}`))
	_, err = envs.New(Name, json.RawMessage(questions+`,"corpus":`+written(t, "c.jsonl", []byte(document+document))+`}`))
	require.ErrorContains(t, err, `c.jsonl": line 2, column 7, want an id that no document before has`)
	_, err = envs.New(Name, json.RawMessage(questions+`,"split":"all","instances":3}`))
	require.ErrorContains(t, err, "instances: found 3, want at most 2, the questions there are")
}

func requireWrong(t *testing.T, err error, wrong, content string) {
	t.Helper()
	var e *rows.Error
	require.ErrorAs(t, err, &e, content)
	require.Contains(t, e.Place()+", want "+e.Allowed(), strings.ReplaceAll(wrong, `\"`, `"`), content)
}

// An example answer solves no question, whatever the answers are.
func TestExamplesSolveNothing(t *testing.T) {
	file := func(answers string) string {
		return `{"questions":` + written(t, "q.jsonl", []byte(`{"question":"a","answers":`+answers+`}`)) + `,"split":"all"`
	}
	for answers, want := range map[string][]string{
		`"Paris"`: {"nothing"}, `"Nothing!"`: {"unknown"}, `["nothing","unknown","nobody"]`: {"nothing 1"}, `["nothing","unknown","nobody","nothing 1"]`: {"unknown 1"},
	} {
		require.Equal(t, want, mustNew(t, file(answers)+`}`).Examples(nil), answers)
	}
	require.Equal(t, []string{"unknown"}, mustNew(t, file(`"thin"`)+`,"reward":"subem"}`).Examples(nil))
	require.Empty(t, mustNew(t, file(`["n"]`)+`,"reward":"subem"}`).Examples(nil), "each that is tried has it")
	for _, size := range sizeNames {
		for _, reward := range rewardNames {
			env := mustNew(t, `{"size":"`+size+`","reward":"`+reward+`"}`)
			require.Len(t, env.Examples(nil), 1)
			require.False(t, env.asks.solves(env.Examples(nil)[0], reward))
		}
	}
}

// Whatever a file holds, its questions keep what they promise.
func FuzzReadQuestions(f *testing.F) {
	f.Add([]byte(someQuestions))
	f.Add([]byte(`{"question":"a","answers":["b||c","</answer>",1e3]}`))
	f.Add(table(f, struct {
		Question string   `parquet:"question"`
		Answers  []string `parquet:"answers,list"`
	}{"a", []string{"b"}}))
	f.Fuzz(func(t *testing.T, content []byte) {
		read, err := readQuestions(content, "question", "answers")
		if err != nil {
			var wrong *rows.Error
			require.ErrorAs(t, err, &wrong)
			return
		}
		for _, a := range read {
			require.NotEmpty(t, a.question.text)
			require.NotEmpty(t, a.question.right)
			for _, r := range a.question.right {
				normal, ok := canonical(r)
				require.True(t, ok)
				require.Equal(t, r, normal)
			}
		}
	})
}
