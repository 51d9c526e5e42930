package diversity

import "math"

// grams are the n-grams of a group for one n, numbered in the order of their first
// occurrence.
type grams struct {
	// ids are the n-grams of each member by number, [members][tokens − n + 1].
	ids [][]uint32
	// unique is the number of different n-grams, total the number of all.
	unique, total int
}

// distinct is distinct-n: the number of different n-grams divided by the number of all
// n-grams:
//
//	|∪ n-grams of member i| / Σ |n-grams of member i|
//
// (Li et al. 2016, arXiv 1510.03055, section 4.4, where the divisor is the number of
// tokens, which differs by n−1 for each member.) It is 1 if no n-gram occurs twice. It is
// lower for longer texts, so compare it between iterations and not between tasks. It is
// NaN if the group has no n-gram.
func (g grams) distinct() float64 {
	if g.total == 0 {
		return math.NaN()
	}
	return float64(g.unique) / float64(g.total)
}

// count numbers the n-grams of a group for n = 1 to most. It identifies an n-gram by the
// number of the (n−1)-gram before its last token and by that token, so that equal numbers
// mean equal n-grams, without hashes that could collide.
func count[T comparable](group [][]T, most int) []grams {
	byN := make([]grams, most)
	tokens := make(map[T]uint32)
	byN[0].ids = make([][]uint32, len(group))
	for m, member := range group {
		ids := make([]uint32, len(member))
		for i, token := range member {
			id, ok := tokens[token]
			if !ok {
				id = uint32(len(tokens))
				tokens[token] = id
			}
			ids[i] = id
		}
		byN[0].ids[m] = ids
		byN[0].total += len(ids)
	}
	byN[0].unique = len(tokens)
	for n := 1; n < most; n++ {
		g := &byN[n]
		g.ids = make([][]uint32, len(group))
		pairs := make(map[uint64]uint32, byN[n-1].unique)
		for m := range group {
			heads, last := byN[n-1].ids[m], byN[0].ids[m]
			ids := make([]uint32, max(0, len(last)-n))
			for i := range ids {
				pair := uint64(heads[i])<<32 | uint64(last[i+n])
				id, ok := pairs[pair]
				if !ok {
					id = uint32(len(pairs))
					pairs[pair] = id
				}
				ids[i] = id
			}
			g.ids[m] = ids
			g.total += len(ids)
		}
		g.unique = len(pairs)
	}
	return byN
}
