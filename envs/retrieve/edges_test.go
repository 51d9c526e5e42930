package retrieve

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

// BM25's scores by hand, with Anserini's k1 0.9 and b 0.4. Documents have 1, 0 and 3 terms: the mean length of
// those that have any is 2, while all three count as documents. Lamp is in two: idf ln(1 + 1.5/2.5) = .4700036; red
// in one: ln(1 + 2.5/1.5) = .9808293. With 1/(.9·(.6 + .4·length/2)) = 1.3888889 and .9259259 a term that is
// there f times scores idf·(1 − 1/(1 + f·that)).
func TestScoresByHand(t *testing.T) {
	index := New([]Document{{ID: "a", Text: "lamp"}, {ID: "b", Text: "the"}, {ID: "c", Text: "A lamp: red, red!"}}, Anserini)
	for query, want := range map[string][]float64{
		"lamp":          {.2732579, 0, .2259633},
		"red":           {0, 0, .6369021},
		"red lamp":      {.2732579, 0, .8628654},
		"lamp lamp red": {.5465158, 0, 1.0888287},
		"shade":         {0, 0, 0},
	} {
		scores := make([]float64, 3)
		for _, hit := range index.Search(query, 3) {
			require.Positive(t, hit.Score, query)
			scores[hit.Document] = float64(hit.Score)
		}
		golden.Near(t, want, scores, 2e-7, query)
	}
	require.Equal(t, []counted{{"red", 2}, {"lamp", 1}}, count([]string{"red", "lamp", "red"}))
	require.Equal(t, Parameters{K1: 0.9, B: 0.4}, Anserini)

	// A length that does not count; one that counts in full.
	for b, want := range map[float32]bool{0: true, 1: false} {
		hits := New([]Document{{ID: "a", Text: "lamp"}, {ID: "b", Text: "lamp red"}}, Parameters{K1: 1, B: b}).Search("lamp", 2)
		require.Equal(t, want, hits[0].Score == hits[1].Score, "b %v", b)
	}
}

// Searches with ties ask for fewer, as many and more than there are, again and again.
func TestTiesAtTheEnd(t *testing.T) {
	var documents []Document
	for _, id := range []string{"d", "b", "e", "a", "c"} {
		documents = append(documents, Document{ID: id, Text: "red"})
	}
	index := New(documents, Anserini)
	for range 50 {
		for k := range 7 {
			ids := ""
			for _, hit := range index.Search("red", k) {
				ids += documents[hit.Document].ID
			}
			require.Equal(t, "abcde"[:min(k, 5)], ids)
		}
	}
}

// Words at the edges of the rules: of the longest term, of what joins letters and digits, of the stemmer.
func TestWordsAtTheEdges(t *testing.T) {
	long := func(n int) string { return strings.Repeat("b", n) }
	for text, want := range map[string][]string{
		long(254): {long(254)}, long(255): {long(255)}, long(256): {long(255), "b"}, long(510): {long(255), long(255)},
		"red,blue red;blue": {"red", "blue", "red", "blue"}, "1:2 1,2": {"1", "2", "1,2"},
		"blue:red": {"blue:r"}, // one word with a suffix
		"a.1 b'1":  {"1", "b", "1"},
		"x's's":    {"x'"}, // the possessive once, then the plural
		"x’s's":    {"x’"},
	} {
		require.Equal(t, want, Analyze(text), text)
	}
	for word, want := range map[string]string{
		// y is a consonant at the beginning and after a vowel.
		"yielding": "yield", "typed": "type", "employment": "employ", "played": "plai", "syllables": "syllabl",
		// After w, x and y no e is put back.
		"snowing": "snow", "boxing": "box", "toyed": "toi", "hoping": "hope", "rated": "rate", "timetabled": "timet",
		// Vowels are not doubled consonants.
		"seeing": "see", "oed": "o", "adding": "ad", "abaie": "abai",
		// An e, then one l of two.
		"gazelle": "gazel", "michelle": "michel", "belle": "bell",
		// Nothing but a suffix.
		"sses": "ss", "eed": "eed", "eeds": "eed",
		// -ion goes after s and t alone.
		"decision": "decis", "rebellion": "rebellion", "opinion": "opinion",
	} {
		require.Equal(t, want, stem(word), word)
	}
}
