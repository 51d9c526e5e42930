package retrieve

import porterstemmer "github.com/blevesearch/go-porterstemmer"

// suffixes are words that are nothing but a suffix: Lucene cuts them, the library does not, or the
// other way round.
var suffixes = map[string]string{"ies": "i", "sses": "ss", "eed": "eed", "eeds": "eed"}

// stem is Porter's first stemmer (An algorithm for suffix stripping, 1980) with the
// departures of his own program, which Lucene carries. Words of at most two characters
// stay as they are. Letters outside of a to z count as consonants.
func stem(word string) string {
	if cut, ok := suffixes[word]; ok {
		return cut
	}
	return string(porterstemmer.StemWithoutLowerCasing([]rune(word)))
}
