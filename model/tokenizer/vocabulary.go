package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxIDs bounds token ids, so that a file cannot demand unlimited memory.
const maxIDs = 1 << 22

// model reads the vocabulary, the added tokens and the merges.
func (p *parser) model(f *file) {
	if f.Model.Dropout != nil && *f.Model.Dropout != 0 {
		p.refuse("dropout of BPE is not deterministic")
	}
	if f.Model.Prefix != nil && *f.Model.Prefix != "" {
		p.refuse("continuing_subword_prefix is not supported")
	}
	if f.Model.Suffix != nil && *f.Model.Suffix != "" {
		p.refuse("end_of_word_suffix is not supported")
	}
	if p.vocabulary(f) {
		p.merges(f)
		p.characters(f)
	}
}

// vocabulary reads the tokens by id, with the added tokens. It returns false if there is no telling
// which id a token has.
func (p *parser) vocabulary(f *file) bool {
	t, top, before := p.t, -1, len(p.problems)
	check := func(token string, id int) {
		if id < 0 || id >= maxIDs {
			p.refuse("token %q has id %d: not in [0, %d)", token, id, maxIDs)
		}
		top = max(top, id)
	}
	tokens := make([]string, 0, len(f.Model.Vocab))
	for token := range f.Model.Vocab {
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	for _, token := range tokens {
		check(token, f.Model.Vocab[token])
	}
	for _, a := range f.AddedTokens {
		check(a.Content, a.ID)
	}
	if len(p.problems) > before {
		return false
	}
	t.names = make([]string, top+1)
	t.known = make([]bool, top+1)
	for _, token := range tokens {
		id := f.Model.Vocab[token]
		if t.known[id] {
			p.refuse("tokens %q and %q have the same id %d", t.names[id], token, id)
		}
		t.known[id], t.names[id] = true, token
	}
	p.addedTokens(f)
	t.text = make([]string, top+1)
	for id, name := range t.names {
		for _, f := range p.bytes {
			name = f(name)
		}
		t.text[id] = name
	}
	return len(p.problems) == before
}

// addedTokens reads the added tokens. tokenizers does not take their ids from the file: a token that is
// in the vocabulary has its id, and the others are numbered on from the size of the vocabulary.
func (p *parser) addedTokens(f *file) {
	t := p.t
	next := len(f.Model.Vocab)
	seen, patterns := map[string]bool{}, map[string]string{}
	for _, a := range f.AddedTokens {
		if a.Content == "" || seen[a.Content] {
			p.refuse("added token %q is empty or given twice", a.Content)
			continue
		}
		seen[a.Content] = true
		id, ok := f.Model.Vocab[a.Content]
		if !ok {
			id = next
			next++
		}
		if id != a.ID {
			p.refuse("added token %q has the id %d in the file, and tokenizers gives it %d", a.Content, a.ID, id)
			continue
		}
		if !ok && t.known[id] {
			p.refuse("added token %q has the id %d of another token", a.Content, id)
			continue
		}
		added := addedToken{
			content: a.Content, pattern: a.Content, id: int32(id), singleWord: a.SingleWord, lstrip: a.LStrip, rstrip: a.RStrip,
		}
		if a.Normalized {
			added.pattern = t.normalize(a.Content, false)
			if other, ok := patterns[added.pattern]; ok || added.pattern == "" {
				p.refuse("added token %q normalizes to nothing or to the same as another: %q", a.Content, other)
			}
			patterns[added.pattern] = a.Content
			t.addedNormalized = append(t.addedNormalized, added)
		} else {
			t.added = append(t.added, added)
		}
		t.known[id], t.names[id] = true, added.pattern
	}
}

func (p *parser) merges(f *file) {
	m := &p.t.bpe
	m.merges = make(map[pair]merge, len(f.Model.Merges))
	for rank, parts := range f.Model.Merges {
		left, okLeft := f.Model.Vocab[parts[0]]
		right, okRight := f.Model.Vocab[parts[1]]
		both, okBoth := f.Model.Vocab[parts[0]+parts[1]]
		if !okLeft || !okRight || !okBoth {
			p.refuse("merge %d, %q and %q: a token is not in the vocabulary", rank, parts[0], parts[1])
			return // the others would say the same
		}
		m.merges[pair{int32(left), int32(right)}] = merge{rank: int32(rank), id: int32(both)}
	}
	if !f.Model.IgnoreMerges {
		return
	}
	m.whole = make(map[string]int32, len(f.Model.Vocab))
	for token, id := range f.Model.Vocab {
		if p.t.byteLevel {
			bytes, ok := alphabetBytes(token)
			if !ok {
				continue // no word is written so
			}
			token = bytes
		}
		m.whole[token] = int32(id)
	}
}

// characters reads the tokens of single bytes or characters, and what stands for those without.
func (p *parser) characters(f *file) {
	m := &p.t.bpe
	m.byteLevel, m.unk, m.fuse = p.t.byteLevel, -1, f.Model.FuseUnk
	if unk := f.Model.UnkToken; unk != nil {
		id, ok := f.Model.Vocab[*unk]
		if !ok {
			p.refuse("unk_token %q is not in the vocabulary", *unk)
			return
		}
		m.unk = int32(id)
	}
	all := true
	if f.Model.ByteFallback {
		m.fallback = new([256]int32)
		for b := range m.fallback {
			id, ok := f.Model.Vocab[fmt.Sprintf("<0x%02X>", b)]
			if !ok {
				id = -1
				all = all && !inUTF8(byte(b))
			}
			m.fallback[b] = int32(id)
		}
	}
	if !m.byteLevel {
		m.runes = map[rune]int32{}
		for token, id := range f.Model.Vocab {
			if r, size := utf8.DecodeRuneInString(token); size == len(token) && size > 0 {
				m.runes[r] = int32(id)
			}
		}
		if m.fallback == nil || !all {
			p.t.warnings = append(p.t.warnings, "the vocabulary has no token for some characters, and "+becomes(f.Model.UnkToken))
		}
		return
	}
	var lacking []byte
	for b := range 256 {
		id, ok := f.Model.Vocab[string(byteRunes[b])]
		if !ok {
			id = -1
			if inUTF8(byte(b)) {
				lacking = append(lacking, byte(b))
			}
		}
		m.bytes[b] = int32(id)
	}
	if len(lacking) > 0 && (m.fallback == nil || !all) {
		p.t.warnings = append(p.t.warnings, "the vocabulary has no token for some bytes, and "+becomes(f.Model.UnkToken)+":"+listed(lacking))
	}
}

// inUTF8 reports whether a byte occurs in UTF-8.
func inUTF8(b byte) bool { return b < 0xc0 || b > 0xc1 && b < 0xf5 }

// becomes says what becomes of bytes or characters without a token.
func becomes(unk *string) string {
	if unk != nil {
		return fmt.Sprintf("%q stands for them, as in Hugging Face's tokenizers", *unk)
	}
	return "they vanish from a text, as in Hugging Face's tokenizers"
}

// listed writes bytes, with runs as ranges.
func listed(bytes []byte) string {
	var list strings.Builder
	for i := 0; i < len(bytes); i++ {
		first := bytes[i]
		for i+1 < len(bytes) && bytes[i+1] == bytes[i]+1 {
			i++
		}
		fmt.Fprintf(&list, " 0x%02x", first)
		if bytes[i] != first {
			fmt.Fprintf(&list, "-0x%02x", bytes[i])
		}
	}
	return list.String()
}
