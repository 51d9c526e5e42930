package retrieve

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"
)

func TestAnalyze(t *testing.T) {
	for text, want := range map[string][]string{
		"":                           nil,
		"The and of -- !":            nil,
		"Women's women’s WOMEN'S":    {"women", "women", "women"},
		"7.5 1,234.00 3;5 a.1":       {"7.5", "1,234.00", "3;5", "1"},
		"u.s.a. foo_bar o'neil a:b":  {"u.s.a", "foo_bar", "o'neil", "a:b"},
		`x-large 52"x84" non-slip`:   {"x", "larg", "52", "x84", "non", "slip"},
		"café NAÏVE 日本 茶":            {"café", "naïv", "日", "本", "茶"},
		"😀 → ½ Ⅷ":                    {"ⅷ"},
		strings.Repeat("é", 300):     {strings.Repeat("é", 255), strings.Repeat("é", 45)},
		strings.Repeat("ab1", 200):   {strings.Repeat("ab1", 85), strings.Repeat("ab1", 85), strings.Repeat("ab1", 30)},
		"cafe\u0301s.x \u200d":       {"cafe\u0301s.x"},
		"a\r\nb c\td":                {"b", "c", "d"},
		"is\xffit":                   nil,
		"running runs relational by": {"run", "run", "relat"},
	} {
		require.Equal(t, want, Analyze(text), "%q", text)
	}
}

// Porter's own examples, step by step of his paper, and words of two letters.
func TestStem(t *testing.T) {
	for word, want := range map[string]string{
		"caresses": "caress", "ponies": "poni", "ties": "ti", "caress": "caress", "cats": "cat",
		"feed": "feed", "agreed": "agre", "plastered": "plaster", "bled": "bled", "motoring": "motor", "sing": "sing",
		"conflated": "conflat", "troubled": "troubl", "sized": "size", "hopping": "hop", "tanned": "tan", "falling": "fall",
		"hissing": "hiss", "fizzed": "fizz", "failing": "fail", "filing": "file", "happy": "happi", "sky": "sky",
		"relational": "relat", "conditional": "condit", "rational": "ration", "valenci": "valenc", "digitizer": "digit",
		"radicalli": "radic", "vietnamization": "vietnam", "operator": "oper", "feudalism": "feudal", "sensibiliti": "sensibl",
		"triplicate": "triplic", "formative": "form", "electriciti": "electr", "electrical": "electr", "hopeful": "hope", "goodness": "good",
		"revival": "reviv", "allowance": "allow", "inference": "infer", "airliner": "airlin", "gyroscopic": "gyroscop",
		"adjustable": "adjust", "replacement": "replac", "adjustment": "adjust", "dependent": "depend", "adoption": "adopt",
		"communism": "commun", "activate": "activ", "homologou": "homolog", "effective": "effect", "bowdlerize": "bowdler",
		"probate": "probat", "rate": "rate", "cease": "ceas", "controll": "control", "roll": "roll",
		"archaeology": "archaeolog", "as": "as", "s": "s", "és": "és", "ies": "i", "crème": "crème", "ion": "ion", "onion": "onion",
	} {
		require.Equal(t, want, stem(word), word)
	}
}

// The segments of ASCII found here are the library's.
func FuzzFirstWord(f *testing.F) {
	for _, text := range []string{"a.b:c 1,2;3 _x_ '..' a'b", "  \t\n", "x.é", "a.\u0301b", "1.a", "a_1.2", ":a:", "\r\na"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		words := func(first func(string) (string, string)) []string {
			var words []string
			for rest := text; rest != ""; {
				var word string
				word, rest = first(rest)
				if hasLetterOrDigit(word) {
					words = append(words, word)
				}
			}
			return words
		}
		state := -1
		require.Equal(t, words(func(s string) (word, rest string) {
			word, rest, state = uniseg.FirstWordInString(s, state)
			return word, rest
		}), words(firstWord))
	})
}

// Whatever the text, a term is not empty, not blank and not much longer than a word may be.
func FuzzAnalyze(f *testing.F) {
	f.Add("The women's shoes, 7.5 oz")
	f.Fuzz(func(t *testing.T, text string) {
		for _, term := range Analyze(text) {
			require.NotEmpty(t, strings.TrimSpace(term))
			require.LessOrEqual(t, len([]rune(term)), maxTerm+1)
		}
	})
}

func TestStoredLengths(t *testing.T) {
	for length, want := range map[int]int{0: 0, 1: 1, 39: 39, 40: 40, 41: 40, 42: 42, 55: 54, 56: 56, 59: 56, 60: 60, 711: 664, 712: 664, 728: 728} {
		require.Equal(t, want, stored(length), length)
	}
	for length := range 100_000 {
		require.LessOrEqual(t, stored(length), length)
		require.LessOrEqual(t, stored(length), stored(length+1))
		require.Equal(t, stored(length), stored(stored(length)))
	}
}

func TestSearchEdges(t *testing.T) {
	require.Empty(t, New(nil, Anserini).Search("a lamp", 5))
	empty := New([]Document{{ID: "a"}, {ID: "b", Text: "the"}}, Anserini)
	require.Empty(t, empty.Search("the lamp", 5))
	twins := New([]Document{{ID: "c", Text: "red lamp"}, {ID: "a", Text: "red lamp"}, {ID: "b", Text: "red shade"}}, Anserini)
	require.Equal(t, 3, twins.Len())
	var ids []int
	for _, hit := range twins.Search("red lamp", 50) {
		ids = append(ids, hit.Document)
	}
	require.Equal(t, []int{1, 0, 2}, ids)
	require.Len(t, twins.Search("red", 2), 2)
	require.Empty(t, twins.Search("red", 0))
	require.Empty(t, twins.Search("red", -1))
	require.Empty(t, twins.Search("", 5))
}

// The best k are the first k of all, whatever k is, and searches leave nothing behind.
func TestSearchIsAPrefix(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("red blue green lamp desk shade tea cup mug small large steel glass wood soft")
	var documents []Document
	for i := range 400 {
		var text []string
		for range 1 + r.IntN(60) {
			text = append(text, words[r.IntN(len(words))])
		}
		documents = append(documents, Document{ID: fmt.Sprintf("%03d", 399-i), Text: strings.Join(text, " ")})
	}
	index := New(documents, Anserini)
	for range 50 {
		query := words[r.IntN(len(words))] + " " + words[r.IntN(len(words))]
		all := index.Search(query, len(documents))
		require.True(t, slices.IsSortedFunc(all, func(a, b Hit) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(documents[a.Document].ID, documents[b.Document].ID))
		}))
		for _, k := range []int{1, 7, 50, 399} {
			require.Equal(t, all[:min(k, len(all))], index.Search(query, k))
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	documents := make([]Document, 1000)
	for i := range documents {
		documents[i] = Document{ID: fmt.Sprint(i), Text: strings.Repeat("a red lamp, with 7.5 shades of grey: durable. ", 20)}
	}
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			New(documents, Anserini)
		}
	})
	index := New(documents, Anserini)
	b.Run("search", func(b *testing.B) {
		for b.Loop() {
			index.Search("i need a durable red lamp with two shades of grey", 50)
		}
	})
}
