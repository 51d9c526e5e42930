package diversity

import (
	"math"
	"slices"
)

// similarity is the mean over all pairs of a group's members, [members][tokens], of
// the Jaccard index of their sets of n-grams:
//
//	|A ∩ B| / |A ∪ B|
//
// which is 1 for equal members and 0 for members that share no n-gram (Jaccard 1912; as
// resemblance of texts by their shingles: Broder 1997, "On the resemblance and containment
// of documents", definition 1). It measures the same as Self-BLEU (Zhu et al. 2018, arXiv
// 1802.01886), but is symmetric and costs only a look-up for each n-gram of each pair. Two
// members without an n-gram have similarity 1 if they are equal and 0 if not. The result
// is NaN for fewer than two members. g are the group's n-grams.
func similarity[T comparable](group [][]T, g grams) float64 {
	if len(group) < 2 {
		return math.NaN()
	}
	// The stamp of an n-gram identifies the last set in which it was seen.
	stamps := make([]uint32, g.unique)
	sets := make([][]uint32, len(group))
	for m, ids := range g.ids {
		set := make([]uint32, 0, len(ids))
		for _, id := range ids {
			if stamps[id] != uint32(m+1) {
				stamps[id] = uint32(m + 1)
				set = append(set, id)
			}
		}
		sets[m] = set
	}
	clear(stamps)
	var sum float64
	for i, a := range sets {
		for _, id := range a {
			stamps[id] = uint32(i + 1)
		}
		for j, b := range sets[i+1:] {
			both := 0
			for _, id := range b {
				if stamps[id] == uint32(i+1) {
					both++
				}
			}
			switch either := len(a) + len(b) - both; {
			case either > 0:
				sum += float64(both) / float64(either)
			case slices.Equal(group[i], group[i+1+j]):
				sum++
			}
		}
	}
	return sum / float64(len(sets)*(len(sets)-1)/2)
}
