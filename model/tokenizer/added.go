package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// addedToken is a token that is recognised in text before anything else.
type addedToken struct {
	// content is how the token is written. pattern is what is looked for: the content, or, of a token
	// that is looked for in normalized text, the normalized content.
	content, pattern string
	id               int32
	// singleWord leaves it out beside a character of a word. lstrip and rstrip take the white space
	// before and after it.
	singleWord, lstrip, rstrip bool
}

// cut calls yield with the pieces of text in order: added tokens that stand inside of an extent with
// their ids, and the text between them with -1. If added tokens overlap, it takes the leftmost and, at the
// same position, the longest. As in tokenizers, a token that is no single word hides those that overlap
// with it.
func cut(text string, own []extent, added []addedToken, yield func(id int32, from, to int)) {
	from := 0
	for _, e := range own {
		find(text[e.from:e.to], added, func(a *addedToken, start, end int) {
			start, end = start+e.from, end+e.from
			if a.singleWord && (wordBefore(text[:start]) || wordAfter(text[end:])) {
				return
			}
			if a.lstrip {
				start = max(len(strings.TrimRightFunc(text[:start], white().has)), from)
			}
			if a.rstrip {
				end = len(text) - len(strings.TrimLeftFunc(text[end:], white().has))
			}
			if from < start {
				yield(-1, from, start)
			}
			if start < end { // else the token before took all of it
				yield(a.id, start, end)
			}
			from = end
		})
	}
	if from < len(text) {
		yield(-1, from, len(text))
	}
}

func wordBefore(text string) bool {
	r, _ := utf8.DecodeLastRuneInString(text)
	return text != "" && unicodeSets()["rustword"].has(r)
}

func wordAfter(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return text != "" && unicodeSets()["rustword"].has(r)
}

// find calls yield with the places of added tokens in order, which do not overlap.
func find(text string, added []addedToken, yield func(a *addedToken, start, end int)) {
	if len(added) == 0 {
		return
	}
	// next is the position where each added token occurs next. It is stored, so that
	// after each occurrence of one token the text is not searched again for the others.
	next := make([]int, len(added))
	for i := range next {
		next[i] = -1
	}
	for pos := 0; pos < len(text); {
		best := -1
		for i, a := range added {
			if next[i] < pos {
				found := strings.Index(text[pos:], a.pattern)
				if found < 0 {
					found = len(text)
				}
				next[i] = pos + found
			}
			if next[i] >= len(text) {
				continue
			}
			if best < 0 || next[i] < next[best] || next[i] == next[best] && len(a.pattern) > len(added[best].pattern) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		pos = next[best] + len(added[best].pattern)
		yield(&added[best], next[best], pos)
	}
}
