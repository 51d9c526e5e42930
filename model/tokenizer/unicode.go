package tokenizer

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// unicodeText has the characters that Hugging Face's tokenizers mean by a class, one line a set: see
// testdata/make_unicode.py. Go's own tables are of another version of Unicode, and ids must not change
// with Go.
//
//go:embed unicode.txt
var unicodeText string

// span is the characters from first to last.
type span struct{ first, last rune }

// set is a set of characters: sorted spans that neither touch nor overlap. Surrogates are in none.
type set []span

// unicodeSets are the sets of unicode.txt by name, and the general categories of one letter. "space",
// "word" and those of \p are Oniguruma's, of the patterns; "numeric" and "rustword" are Rust's.
var unicodeSets = sync.OnceValue(func() map[string]set {
	sets := map[string]set{}
	for line := range strings.Lines(unicodeText) {
		fields := strings.Fields(line)
		var s set
		last := rune(0)
		for _, f := range fields[1:] {
			start, width, _ := strings.Cut(f, "-")
			first := last + codePoint(start)
			last = first
			if width != "" {
				last += codePoint(width)
			}
			s = append(s, span{first, last})
		}
		sets[fields[0]] = s
		if name := fields[0]; len(name) == 2 {
			sets[name[:1]] = union(sets[name[:1]], s)
		}
	}
	return sets
})

// codePoint reads a number of unicode.txt, which the build carries.
func codePoint(s string) rune {
	n, err := strconv.ParseUint(s, 16, 21)
	if err != nil {
		panic("unicode.txt: " + err.Error())
	}
	return rune(n)
}

// unicodeSet finds a set by the name of a \p, in which case, spaces, "-" and "_" do not count.
func unicodeSet(name string) (set, bool) {
	fold := func(s string) string {
		return strings.ToLower(strings.NewReplacer(" ", "", "-", "", "_", "").Replace(s))
	}
	for known, s := range unicodeSets() {
		if fold(known) == fold(name) && known != "rustword" && known != "numeric" && known != "word" && known != "space" {
			return s, true
		}
	}
	return nil, false
}

// white is the property White_Space, which is \s of the patterns and is_whitespace of Rust.
func white() set { return unicodeSets()["space"] }

func (s set) has(r rune) bool {
	_, found := slices.BinarySearchFunc(s, r, func(p span, r rune) int {
		switch {
		case p.last < r:
			return -1
		case p.first > r:
			return 1
		}
		return 0
	})
	return found
}

func union(a, b set) set {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y span) int { return int(x.first - y.first) })
	var out set
	for _, p := range all {
		if n := len(out); n > 0 && p.first <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, p.last)
		} else {
			out = append(out, p)
		}
	}
	return out
}

// complement is all other characters.
func complement(s set) set {
	var out set
	next := rune(0)
	for _, p := range union(s, set{{0xd800, 0xdfff}}) {
		if p.first > next {
			out = append(out, span{next, p.first - 1})
		}
		next = p.last + 1
	}
	if next <= 0x10ffff {
		out = append(out, span{next, 0x10ffff})
	}
	return out
}

func intersection(a, b set) set { return complement(union(complement(a), complement(b))) }
