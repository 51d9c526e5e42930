package diversity

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// number is a float that testdata can call nan.
type number float64

func (n *number) UnmarshalJSON(b []byte) error {
	if string(b) == `"nan"` {
		*n = number(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

type want struct {
	Distinct   [3]number
	Similarity number
}

func equal(t *testing.T, want number, got float64) {
	t.Helper()
	if math.IsNaN(float64(want)) {
		require.True(t, math.IsNaN(got), "%v", got)
		return
	}
	require.InDelta(t, float64(want), got, 1e-15)
}

func (w want) check(t *testing.T, got Figures) {
	t.Helper()
	for n := range w.Distinct {
		equal(t, w.Distinct[n], got.Distinct[n])
	}
	equal(t, w.Similarity, got.Similarity)
}

func TestWorked(t *testing.T) {
	content, err := os.ReadFile("testdata/worked.json")
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			want
			Members []string
		}
		Mean struct {
			want
			Of []int
		}
	}
	require.NoError(t, json.Unmarshal(content, &file))
	require.Len(t, file.Groups, 7)
	var groups [][][]string
	for _, g := range file.Groups {
		group := [][]string{}
		for _, text := range g.Members {
			group = append(group, Words(text))
		}
		groups = append(groups, group)
		g.check(t, Measure([][][]string{group}))
		for n := range g.Distinct {
			equal(t, g.Distinct[n], Distinct(group, n+1))
		}
		equal(t, g.Similarity, Similarity(group, SimilarityOrder))
	}
	var some [][][]string
	for _, at := range file.Mean.Of {
		some = append(some, groups[at])
	}
	file.Mean.check(t, Measure(some))
	require.True(t, math.IsNaN(Distinct(groups[0], 0)))
	require.True(t, math.IsNaN(Similarity(groups[0], 0)))
	require.True(t, math.IsNaN(Measure[int32](nil).Similarity))
}

// Words are what texts are compared by in the reference.
func Words(text string) []string { return strings.Fields(text) }

// Distinct is distinct-n of a group.
func Distinct[T comparable](group [][]T, n int) float64 {
	if n < 1 {
		return math.NaN()
	}
	return count(group, n)[n-1].distinct()
}

// Similarity is the similarity of a group by n-grams.
func Similarity[T comparable](group [][]T, n int) float64 {
	if n < 1 {
		return math.NaN()
	}
	return similarity(group, count(group, n)[n-1])
}

func random(r *rand.Rand, members, tokens, vocabulary int) [][]int32 {
	group := make([][]int32, members)
	for m := range group {
		group[m] = make([]int32, r.IntN(tokens+1))
		for i := range group[m] {
			group[m][i] = int32(r.IntN(vocabulary))
		}
	}
	return group
}

// By sets of arrays, the slow way.
func TestAgainstSets(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		group := random(r, 1+r.IntN(6), 12, 1+r.IntN(5))
		for n := 1; n <= 4; n++ {
			sets := make([]map[[4]int32]bool, len(group))
			all, total := map[[4]int32]bool{}, 0
			for m, ids := range group {
				sets[m] = map[[4]int32]bool{}
				for i := 0; i+n <= len(ids); i++ {
					gram := [4]int32{-1, -1, -1, -1}
					copy(gram[:], ids[i:i+n])
					sets[m][gram], all[gram] = true, true
					total++
				}
			}
			if total == 0 {
				require.True(t, math.IsNaN(Distinct(group, n)))
			} else {
				require.Equal(t, float64(len(all))/float64(total), Distinct(group, n))
			}
			if len(group) < 2 {
				continue
			}
			var sum float64
			for i := range group {
				for j := i + 1; j < len(group); j++ {
					both := 0
					for gram := range sets[i] {
						if sets[j][gram] {
							both++
						}
					}
					if either := len(sets[i]) + len(sets[j]) - both; either > 0 {
						sum += float64(both) / float64(either)
					} else if slices.Equal(group[i], group[j]) {
						sum++
					}
				}
			}
			require.InDelta(t, sum/float64(len(group)*(len(group)-1)/2), Similarity(group, n), 1e-15)
		}
	}
}

// Names do not matter, nor does the order of members; the same input gives the same
// bits, and is left as it is.
func TestProperties(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		group := random(r, 2+r.IntN(8), 40, 9)
		before := make([][]int32, len(group))
		named := make([][]string, len(group))
		for m, ids := range group {
			before[m] = slices.Clone(ids)
			for _, id := range ids {
				named[m] = append(named[m], string(rune('a'+id)))
			}
		}
		a, b := Measure([][][]int32{group}), Measure([][][]string{named})
		require.Equal(t, bits(t, a), bits(t, b))
		require.Equal(t, before, group)
		require.True(t, a.Similarity >= 0 && a.Similarity <= 1)
		r.Shuffle(len(group), func(i, j int) { group[i], group[j] = group[j], group[i] })
		c := Measure([][][]int32{group})
		require.Equal(t, bits(t, Figures{Distinct: a.Distinct}), bits(t, Figures{Distinct: c.Distinct}))
		require.InDelta(t, a.Similarity, c.Similarity, 1e-14)
		echo := [][]int32{group[0], group[0], group[0]}
		require.Equal(t, 1.0, Similarity(echo, 2))
	}
}

// bits are the figures as integers, so that one NaN is like another.
func bits(t *testing.T, f Figures) []uint64 {
	t.Helper()
	var all []uint64
	for _, v := range append(f.Distinct[:], f.Similarity) {
		all = append(all, math.Float64bits(v))
	}
	return all
}

func BenchmarkMeasure(b *testing.B) {
	// 8 groups of 16 members with 2,000 tokens each, from words that are more and
	// less frequent, as in language.
	r := rand.New(rand.NewPCG(1, 1))
	words := rand.NewZipf(r, 1.1, 4, 30000)
	groups := make([][][]int32, 8)
	for g := range groups {
		groups[g] = make([][]int32, 16)
		for m := range groups[g] {
			for range 2000 {
				groups[g][m] = append(groups[g][m], int32(words.Uint64()))
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		Measure(groups)
	}
}
