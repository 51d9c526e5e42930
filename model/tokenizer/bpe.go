package tokenizer

import "unicode/utf8"

// pair is two adjacent symbols, by token id.
type pair struct{ left, right int32 }

// merge is the token that a pair becomes. Lower ranks are merged first.
type merge struct{ rank, id int32 }

// bpe is byte-pair encoding over bytes or characters.
type bpe struct {
	// byteLevel says that a word is cut into its bytes, otherwise into its characters. bytes and runes
	// are their tokens; those that have none are -1 or missing.
	byteLevel bool
	bytes     [256]int32
	runes     map[rune]int32
	merges    map[pair]merge
	// whole maps a word that is a token to its id if such words skip the merges
	// (ignore_merges); otherwise it is nil.
	whole map[string]int32
	// fallback are the tokens <0x00> to <0xFF> that stand for the bytes of a character without a token
	// (byte_fallback), each -1 if it is missing; nil without.
	fallback *[256]int32
	// unk is the token of a character without one, or -1: then the character vanishes before merging.
	// With fuse, neighbours without a token become one unk.
	unk  int32
	fuse bool
}

// symbol is an element of the linked list in which a word is merged. A symbol that was
// merged into its neighbour has id -1.
type symbol struct{ id, prev, next int32 }

// candidate is a possible merge at the symbol with index at.
type candidate struct {
	rank, at int32
	from     pair
	id       int32
}

// encode appends the tokens of one word to ids. Merges are applied by rank and, at equal
// rank, from left to right. With a heap this takes O(n log n) for a word of n bytes.
func (m *bpe) encode(ids []int32, word string) []int32 {
	if m.whole != nil {
		if id, ok := m.whole[word]; ok {
			return append(ids, id)
		}
	}
	symbols := m.symbols(word)
	n := int32(len(symbols))
	if n == 0 {
		return ids
	}
	var queue candidates
	offer := func(at int32) {
		if at < 0 || symbols[at].next >= n {
			return
		}
		from := pair{symbols[at].id, symbols[symbols[at].next].id}
		if to, ok := m.merges[from]; ok {
			queue.push(candidate{rank: to.rank, at: at, from: from, id: to.id})
		}
	}
	for i := range n - 1 {
		offer(i)
	}
	for len(queue) > 0 {
		c := queue.pop()
		s := &symbols[c.at]
		if s.id != c.from.left || s.next >= n || symbols[s.next].id != c.from.right {
			continue // an earlier merge used one of the two
		}
		gone := s.next
		s.id, s.next = c.id, symbols[gone].next
		symbols[gone].id = -1
		if s.next < n {
			symbols[s.next].prev = c.at
		}
		offer(s.prev)
		offer(c.at)
	}
	for i := int32(0); i < n; i = symbols[i].next {
		ids = append(ids, symbols[i].id)
	}
	return ids
}

// symbols are what a word consists of before merging: the tokens of its bytes or characters, in order.
func (m *bpe) symbols(word string) []symbol {
	symbols := make([]symbol, 0, len(word))
	add := func(id int32) {
		at := int32(len(symbols))
		symbols = append(symbols, symbol{id: id, prev: at - 1, next: at + 1})
	}
	// An unk waits for the next character: as in tokenizers, bytes to fall back on come before it.
	waits := false
	without := func(r rune) {
		if m.fallback != nil && m.fallBack(r, add) {
			return
		}
		if m.unk < 0 {
			return
		}
		if waits && !m.fuse {
			add(m.unk)
		}
		waits = true
	}
	with := func(id int32) {
		if waits {
			add(m.unk)
			waits = false
		}
		add(id)
	}
	if m.byteLevel {
		for i := range len(word) {
			if id := m.bytes[word[i]]; id >= 0 {
				with(id)
			} else {
				without(byteRunes[word[i]])
			}
		}
	} else {
		for _, r := range word {
			if id, ok := m.runes[r]; ok {
				with(id)
			} else {
				without(r)
			}
		}
	}
	if waits {
		add(m.unk)
	}
	return symbols
}

// fallBack adds the tokens of a character's bytes. It returns false, and adds none, if one is missing.
func (m *bpe) fallBack(r rune, add func(id int32)) bool {
	bytes := utf8.AppendRune(nil, r)
	for _, b := range bytes {
		if m.fallback[b] < 0 {
			return false
		}
	}
	for _, b := range bytes {
		add(m.fallback[b])
	}
	return true
}

// candidates is a binary heap, ordered by rank and then by position.
type candidates []candidate

func (c candidates) less(i, j int) bool {
	if c[i].rank != c[j].rank {
		return c[i].rank < c[j].rank
	}
	return c[i].at < c[j].at
}

func (c *candidates) push(v candidate) {
	*c = append(*c, v)
	h := *c
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.less(i, up) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (c *candidates) pop() candidate {
	h := *c
	top := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	*c = h
	for i := 0; ; {
		least := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < last && h.less(down, least) {
				least = down
			}
		}
		if least == i {
			return top
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
