package main

import (
	"cmp"
	"maps"
	"slices"
)

// train continues merges by those learned from words with their counts, the most frequent
// pair first and of equal ones the least in byte order, until there are limit merges or no
// pair is left that may merge.
func train(counts map[string]int, merges [][2]string, limit int) [][2]string {
	type entry struct {
		parts []string
		count int
	}
	words := slices.Sorted(maps.Keys(counts))
	entries := make([]entry, len(words))
	for i, word := range words {
		entries[i] = entry{split(word, merges), counts[word]}
	}
	merges = slices.Clone(merges)
	for len(merges) < limit {
		seen := map[[2]string]int{}
		for _, e := range entries {
			for i := 1; i < len(e.parts); i++ {
				if joined := e.parts[i-1] + e.parts[i]; mayMerge(joined) || partOfTag(joined) {
					seen[[2]string{e.parts[i-1], e.parts[i]}] += e.count
				}
			}
		}
		if len(seen) == 0 {
			break
		}
		best := slices.MinFunc(slices.Collect(maps.Keys(seen)), func(a, b [2]string) int {
			return cmp.Or(cmp.Compare(seen[b], seen[a]), cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
		})
		merges = append(merges, best)
		for i, e := range entries {
			entries[i].parts = merge(e.parts, best)
		}
	}
	return merges
}

// split gives the tokens in which merges spell a word, applied in their order.
func split(word string, merges [][2]string) []string {
	parts := make([]string, len(word))
	for i := range len(word) {
		parts[i] = word[i : i+1]
	}
	for _, m := range merges {
		parts = merge(parts, m)
	}
	return parts
}

// merge joins a pair wherever it occurs, from the left. It may reuse parts.
func merge(parts []string, pair [2]string) []string {
	out := parts[:0]
	for i := 0; i < len(parts); i++ {
		if i+1 < len(parts) && parts[i] == pair[0] && parts[i+1] == pair[1] {
			out = append(out, pair[0]+pair[1])
			i++
			continue
		}
		out = append(out, parts[i])
	}
	return out
}
