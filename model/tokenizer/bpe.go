package tokenizer

// pair is two adjacent symbols, by token id.
type pair struct{ left, right int32 }

// merge is the token that a pair becomes. Lower ranks are merged first.
type merge struct{ rank, id int32 }

// bpe is byte-pair encoding over bytes.
type bpe struct {
	bytes  [256]int32 // the token of each single byte, or -1
	merges map[pair]merge
	// whole maps the bytes of a token to its id if words that are tokens skip the
	// merges (ignore_merges); otherwise it is nil.
	whole map[string]int32
	// unk is the token of a byte without one, or -1: then the byte vanishes before merging.
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

// symbols are what a word consists of before merging: the tokens of its bytes, in order.
func (m *bpe) symbols(word string) []symbol {
	symbols := make([]symbol, 0, len(word))
	fused := false
	for i := range len(word) {
		id := m.bytes[word[i]]
		if id < 0 {
			if id = m.unk; id < 0 || fused {
				continue
			}
			fused = m.fuse
		} else {
			fused = false
		}
		at := int32(len(symbols))
		symbols = append(symbols, symbol{id: id, prev: at - 1, next: at + 1})
	}
	return symbols
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
