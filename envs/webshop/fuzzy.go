package webshop

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// matches is the score above which two texts count as the same.
const matches = 85

// tokenSetRatio says how alike two texts are as sets of words, 0 to 100: rapidfuzz's
// token_set_ratio after its default processing, which is what thefuzz 0.20 and later give.
// Texts of which one's words are all among the other's have 100.
func tokenSetRatio(a, b string) int {
	as, bs := wordSet(a), wordSet(b)
	if len(as) == 0 || len(bs) == 0 {
		return 0
	}
	var both, onlyA, onlyB []string
	for _, word := range as {
		if _, found := slices.BinarySearch(bs, word); found {
			both = append(both, word)
		} else {
			onlyA = append(onlyA, word)
		}
	}
	for _, word := range bs {
		if _, found := slices.BinarySearch(as, word); !found {
			onlyB = append(onlyB, word)
		}
	}
	if len(both) > 0 && (len(onlyA) == 0 || len(onlyB) == 0) {
		return 100
	}
	restA, restB := []rune(strings.Join(onlyA, " ")), []rune(strings.Join(onlyB, " "))
	common := utf8.RuneCountInString(strings.Join(both, " "))
	gap := 0
	if common > 0 {
		gap = 1
	}
	withA, withB := common+gap+len(restA), common+gap+len(restB)
	score := alike(len(restA)+len(restB)-2*commonSubsequence(restA, restB), withA+withB)
	if common > 0 {
		score = max(score, alike(gap+len(restA), common+withA), alike(gap+len(restB), common+withB))
	}
	return int(math.RoundToEven(score))
}

// alike is the share of characters that stay, in percent.
func alike(distance, length int) float64 { return 100 - 100*float64(distance)/float64(length) }

// wordSet gives the different words of a text, sorted. Characters 128 to 255 are deleted
// first, as thefuzz does it: "café" is "caf".
func wordSet(text string) []string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r >= 128 && r <= 255:
			return -1
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return ' '
	}, text)
	words := strings.Fields(text)
	slices.Sort(words)
	return slices.Compact(words)
}

// commonSubsequence is the length of the longest common subsequence.
func commonSubsequence(a, b []rune) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}
