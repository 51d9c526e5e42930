package retrieve

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// stopWords are Lucene's English ones, which no index holds.
var stopWords = func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq("a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with") {
		words[word] = true
	}
	return words
}()

// maxTerm is the most characters of a word; a longer one is cut into several.
const maxTerm = 255

// Analyze gives the terms of a text, as Lucene's English analysis does: the words of
// Unicode's segmentation (UAX #29) that have a letter or a digit, without a possessive
// 's, in lower case, without stop words, stemmed by Porter's first algorithm.
func Analyze(text string) []string {
	var terms []string
	var a analyzer
	a.each(text, func(term string) { terms = append(terms, term) })
	return terms
}

// analyzer remembers the terms of words, since texts repeat them. The zero value is ready.
type analyzer struct {
	terms map[string]string // "" for a word that has none
}

// each calls yield with each term of a text, in order.
func (a *analyzer) each(text string, yield func(term string)) {
	if a.terms == nil {
		a.terms = map[string]string{}
	}
	for word := ""; text != ""; {
		for word, text = firstWord(text); word != ""; {
			piece := word[:cutAt(word)]
			word = word[len(piece):]
			term, known := a.terms[piece]
			if !known {
				if hasLetterOrDigit(piece) {
					term = termOf(piece)
				}
				a.terms[piece] = term
			}
			if term != "" {
				yield(term)
			}
		}
	}
}

// cutAt is where the first maxTerm characters of a word end.
func cutAt(word string) int {
	if len(word) <= maxTerm {
		return len(word)
	}
	count := 0
	for at := range word {
		if count == maxTerm {
			return at
		}
		count++
	}
	return len(word)
}

// termOf is the term of a word, "" for a stop word.
func termOf(word string) string {
	for _, possessive := range []string{"'s", "’s", "＇s", "'S", "’S", "＇S"} {
		if cut, ok := strings.CutSuffix(word, possessive); ok {
			word = cut
			break
		}
	}
	word = strings.Map(unicode.ToLower, word)
	if stopWords[word] {
		return ""
	}
	return stem(word)
}

// hasLetterOrDigit tells words from what is between them. Fractions and superscripts are
// no digits.
func hasLetterOrDigit(word string) bool {
	return strings.IndexFunc(word, func(r rune) bool { return unicode.In(r, unicode.L, unicode.Nd, unicode.Nl) }) >= 0
}

// firstWord cuts the first segment off a text: a word, or what is between words. The
// segments of ASCII are found here, since shops' texts are nearly all of it; the rest
// are the library's, which is ten times slower.
func firstWord(text string) (word, rest string) {
	at := asciiWord(text)
	if at == 0 {
		word, rest, _ = uniseg.FirstWordInString(text, -1)
		return word, rest
	}
	return text[:at], text[at:]
}

// Kinds of ASCII characters in UAX #29.
const (
	other = iota
	letter
	digit
	underscore
	midLetter // between letters
	midNumber // between digits
	midBoth
	blank
)

var kinds = func() (kinds [utf8.RuneSelf]uint8) {
	for c := range kinds {
		switch r := rune(c); {
		case unicode.IsLetter(r):
			kinds[c] = letter
		case unicode.IsDigit(r):
			kinds[c] = digit
		}
	}
	kinds['_'] = underscore
	kinds[':'] = midLetter
	kinds[','], kinds[';'] = midNumber, midNumber
	kinds['.'], kinds['\''] = midBoth, midBoth
	kinds[' '] = blank
	return kinds
}()

// asciiWord is the length of the first segment if it and the two characters after it,
// which decide where it ends, are ASCII; otherwise 0. Line breaks, which combine with each
// other, are single segments here: they are between words in either case.
func asciiWord(text string) int {
	at := func(i int) int {
		if i >= len(text) {
			return other
		}
		if text[i] >= utf8.RuneSelf {
			return -1
		}
		return int(kinds[text[i]])
	}
	i := 1
	for last := at(0); ; i++ {
		next, after := at(i), at(i+1)
		if last < 0 || next < 0 {
			return 0
		}
		joined := false
		switch next {
		case letter, digit, underscore:
			joined = last == letter || last == digit || last == underscore
		case midLetter, midNumber, midBoth:
			if after < 0 {
				return 0
			}
			inWord := last == letter && after == letter && next != midNumber
			inNumber := last == digit && after == digit && next != midLetter
			if joined = inWord || inNumber; joined {
				i++
				next = after
			}
		case blank:
			joined = last == blank
		}
		if !joined {
			return i
		}
		last = next
	}
}
