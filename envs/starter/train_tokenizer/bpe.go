package main

import (
	"cmp"
	"maps"
	"slices"
)

// train learns merges from words with their counts, the most frequent pair
// first and of equal ones the least in byte order, until there are limit merges
// or no pair is left that may merge.
func train(counts map[string]int, limit int) (merges [][2]string) {
	type entry struct {
		parts []string
		count int
	}
	words := slices.Sorted(maps.Keys(counts))
	entries := make([]entry, len(words))
	for i, word := range words {
		parts := make([]string, len(word))
		for j := range len(word) {
			parts[j] = word[j : j+1]
		}
		entries[i] = entry{parts, counts[word]}
	}
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
			parts := e.parts[:0]
			for j := 0; j < len(e.parts); j++ {
				if j+1 < len(e.parts) && e.parts[j] == best[0] && e.parts[j+1] == best[1] {
					parts = append(parts, best[0]+best[1])
					j++
					continue
				}
				parts = append(parts, e.parts[j])
			}
			entries[i].parts = parts
		}
	}
	return merges
}
