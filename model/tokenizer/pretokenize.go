package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// piece is a part of a text on its way to the model.
type piece struct {
	text string
	// first says that it begins where the whole text does.
	first bool
	// inside says that it goes on from a text before, so that nothing is put before it.
	inside bool
}

// step cuts a piece into words, which may be cut again by the step after it.
type step func(p piece, yield func(piece))

// words calls yield with the words of a normalized piece, which tokens never cross.
func words(steps []step, p piece, yield func(word string)) {
	switch {
	case p.text == "":
	case len(steps) == 0:
		yield(p.text)
	default:
		steps[0](p, func(p piece) { words(steps[1:], p, yield) })
	}
}

func (p *parser) preTokenizer(j *preTokenizerJSON) {
	if j == nil {
		return
	}
	t := p.t
	if t.byteLevel && j.Type != "Sequence" {
		p.refuse("pre-tokenizer %q after ByteLevel is not supported", j.Type)
		return
	}
	switch j.Type {
	case "Sequence":
		for i := range j.PreTokenizers {
			p.preTokenizer(&j.PreTokenizers[i])
		}
	case "Split":
		behavior, ok := behaviors[j.Behavior]
		if !ok {
			p.refuse("pre-tokenizer Split with behavior %q is not supported", j.Behavior)
		}
		matches := p.matches(j.Pattern)
		if matches != nil && ok {
			t.steps = append(t.steps, splitting(matches, j.Invert, behavior))
		}
	case "Digits":
		behavior := contiguous
		if j.Individual {
			behavior = isolated
		}
		t.steps = append(t.steps, splitting(characters(unicodeSets()["numeric"].has), false, behavior))
	case "Metaspace":
		p.metaspace(j)
	case "ByteLevel":
		t.byteLevel = true
		if j.AddPrefixSpace != nil && *j.AddPrefixSpace {
			t.steps = append(t.steps, func(p piece, yield func(piece)) {
				if !strings.HasPrefix(p.text, " ") && !p.inside {
					p.text = " " + p.text
				}
				yield(p)
			})
		}
		if j.UseRegex == nil || *j.UseRegex {
			t.steps = append(t.steps, splitting(p.matches(patternJSON{Regex: gpt2Pattern}), false, isolated))
		}
	default:
		p.refuse("pre-tokenizer %q is not supported", j.Type)
	}
}

// metaspace puts a mark in place of spaces, and before a text.
func (p *parser) metaspace(j *preTokenizerJSON) {
	mark, scheme, ok := p.metaspaceMark("pre-tokenizer", j.Replacement, j.PrependScheme, j.AddPrefixSpace)
	if !ok {
		return
	}
	if scheme == "first" && len(p.t.normalizers) > 0 {
		p.refuse(`pre-tokenizer Metaspace with prepend_scheme "first" after a normalizer is not supported`)
	}
	if scheme == "first" && p.metaspaces > 0 {
		p.refuse(`pre-tokenizer Metaspace with prepend_scheme "first" after another Metaspace is not supported`)
	}
	p.metaspaces++
	split := func(p piece, yield func(piece)) { yield(p) }
	if j.Split == nil || *j.Split {
		split = splitting(literal(mark), false, mergedWithNext)
	}
	p.t.steps = append(p.t.steps, func(p piece, yield func(piece)) {
		p.text = strings.ReplaceAll(p.text, " ", mark)
		if !strings.HasPrefix(p.text, mark) && !p.inside && (scheme == "always" || scheme == "first" && p.first) {
			p.text = mark + p.text
		}
		split(p, yield)
	})
}

// metaspaceMark reads what a pre-tokenizer and a decoder Metaspace have in common.
func (p *parser) metaspaceMark(of, replacement, scheme string, addPrefixSpace *bool) (mark, resolved string, ok bool) {
	if scheme == "" {
		scheme = "always"
	}
	switch {
	case utf8.RuneCountInString(replacement) != 1:
		p.refuse("%s Metaspace: its replacement %q is not one character", of, replacement)
	case scheme != "first" && scheme != "never" && scheme != "always":
		p.refuse("%s Metaspace with prepend_scheme %q is not supported", of, scheme)
	case addPrefixSpace != nil && !*addPrefixSpace && scheme != "never":
		p.refuse("%s Metaspace: add_prefix_space is false, and prepend_scheme is %q", of, scheme)
	default:
		return replacement, scheme, true
	}
	return "", "", false
}

// match is a part of a text, which a delimiter matches or not.
type match struct {
	from, to int
	is       bool
}

// matcher lists the parts of a text in order: delimiters, and what is between them. Together they are
// the text.
type matcher func(text string) []match

// matches is the matcher of a pattern, or nil if it is refused.
func (p *parser) matches(pattern patternJSON) matcher {
	switch {
	case pattern.String != "":
		return literal(pattern.String)
	case pattern.Regex == "":
		p.refuse("pre-tokenizer Split by nothing is not supported")
		return nil
	}
	re, _, err := compilePattern(pattern.Regex)
	if err != nil {
		p.refuse("pre-tokenizer Split: %w", err)
		return nil
	}
	return func(text string) []match {
		found := findAll(re, text)
		parts := make([]match, 0, len(found)+1)
		at := 0
		for _, m := range found {
			if m[0] > at {
				parts = append(parts, match{at, m[0], false})
			}
			parts = append(parts, match{m[0], m[1], true})
			at = m[1]
		}
		if at < len(text) {
			parts = append(parts, match{at, len(text), false})
		}
		return parts
	}
}

// literal matches a text that is not empty.
func literal(delimiter string) matcher {
	return func(text string) []match {
		var parts []match
		at := 0
		for {
			i := strings.Index(text[at:], delimiter)
			if i < 0 {
				break
			}
			if i > 0 {
				parts = append(parts, match{at, at + i, false})
			}
			at += i + len(delimiter)
			parts = append(parts, match{at - len(delimiter), at, true})
		}
		if at < len(text) {
			parts = append(parts, match{at, len(text), false})
		}
		return parts
	}
}

// characters matches each character that is one.
func characters(is func(rune) bool) matcher {
	return func(text string) []match {
		var parts []match
		at := 0
		for i, r := range text {
			if !is(r) {
				continue
			}
			if at < i {
				parts = append(parts, match{at, i, false})
			}
			at = i + utf8.RuneLen(r)
			parts = append(parts, match{i, at, true})
		}
		if at < len(text) {
			parts = append(parts, match{at, len(text), false})
		}
		return parts
	}
}

// behavior is what becomes of the delimiters of a split.
type behavior int

const (
	isolated behavior = iota
	removed
	mergedWithPrevious
	mergedWithNext
	contiguous
)

// behaviors are the names of tokenizer.json.
var behaviors = map[string]behavior{
	"Isolated": isolated, "Removed": removed, "Contiguous": contiguous,
	"MergedWithPrevious": mergedWithPrevious, "MergedWithNext": mergedWithNext,
}

// splitting is the step that splits by a matcher, as NormalizedString::split of tokenizers does.
func splitting(matches matcher, invert bool, b behavior) step {
	return func(p piece, yield func(piece)) {
		parts := matches(p.text)
		if invert {
			for i := range parts {
				parts[i].is = !parts[i].is
			}
		}
		for _, m := range arranged(parts, b) {
			if m.from < m.to && (b != removed || !m.is) {
				yield(piece{p.text[m.from:m.to], p.first && m.from == 0, p.inside && m.from == 0})
			}
		}
	}
}

// arranged puts the parts together that a behavior keeps together.
func arranged(parts []match, b behavior) []match {
	if b == isolated || b == removed {
		return parts
	}
	out := make([]match, 0, len(parts))
	previous := false
	for i := range parts {
		m := parts[i]
		if b == mergedWithNext {
			m = parts[len(parts)-1-i]
		}
		joins := m.is && !previous
		if b == contiguous {
			joins = m.is == previous
		}
		switch n := len(out); {
		case !joins || n == 0:
			out = append(out, m)
		case b == mergedWithNext:
			out[n-1].from = m.from
		default:
			out[n-1].to = m.to
		}
		previous = m.is
	}
	if b == mergedWithNext {
		for i, k := 0, len(out)-1; i < k; i, k = i+1, k-1 {
			out[i], out[k] = out[k], out[i]
		}
	}
	return out
}
