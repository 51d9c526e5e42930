// Package retrieve searches texts as Lucene does with Anserini's settings: BM25 over one
// field, English analysis, and ties by the documents' names.
//
// The scores are Lucene 8's to the bit of a float32: documents' lengths are rounded as
// its index stores them, and terms are summed in float64. So a ranking is the same
// as that of programs which search through Anserini or Pyserini.
//
// Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and
// Beyond (2009), in the form of Lucene's BM25Similarity.
package retrieve

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// Parameters of BM25.
type Parameters struct {
	// K1 is how slowly a term's repetitions saturate.
	K1 float32
	// B is how much a document's length counts, from 0 (not at all) to 1.
	B float32
}

// Anserini's parameters of BM25, its default.
var Anserini = Parameters{K1: 0.9, B: 0.4}

// Document is a text under a name.
type Document struct {
	// ID orders documents of equal scores, ascending by bytes.
	ID string
	// Text is analysed by Analyze.
	Text string
}

// Hit is a document that has a term of the query.
type Hit struct {
	// Document is its index in the documents of the Index.
	Document int
	// Score is BM25's, above 0.
	Score float32
}

// Index is an inverted index in memory. It never changes and may be used by several
// goroutines.
type Index struct {
	ids   []string
	terms map[string][]posting
	// scratch holds the *[]float64 of searches that have ended: [documents], all 0.
	scratch sync.Pool
}

// posting is a document that has a term.
type posting struct {
	document int32
	// saturation is 1 + frequency / (k1·((1−b) + b·length/average)).
	saturation float32
}

// New indexes documents.
func New(documents []Document, p Parameters) *Index {
	x := &Index{ids: make([]string, len(documents)), terms: map[string][]posting{}}
	x.scratch.New = func() any {
		return new(make([]float64, len(documents)))
	}
	lengths := make([]int, len(documents))
	total, filled := 0, 0
	var a analyzer
	for i, d := range documents {
		x.ids[i] = d.ID
		a.each(d.Text, func(term string) {
			lengths[i]++
			postings, known := x.terms[term]
			if n := len(postings); n > 0 && postings[n-1].document == int32(i) {
				postings[n-1].saturation++ // the frequency, until all lengths are known
				return
			}
			if !known {
				term = strings.Clone(term) // of the text, which the index does not keep
			}
			x.terms[term] = append(postings, posting{document: int32(i), saturation: 1})
		})
		total += lengths[i]
		if lengths[i] > 0 {
			filled++
		}
	}
	average := float32(float64(total) / float64(max(filled, 1)))
	norms := make([]float32, len(documents))
	for i, length := range lengths {
		// Each operation is rounded to float32, as Java does it.
		share := float32(p.B * float32(stored(length)))
		norms[i] = 1 / float32(p.K1*float32((1-p.B)+float32(share/average)))
	}
	for _, postings := range x.terms {
		for i, at := range postings {
			postings[i].saturation = 1 + float32(at.saturation*norms[at.document])
		}
	}
	return x
}

// stored is a length as Lucene's index keeps it, in one byte: exact up to 40, then
// rounded down to four significant bits (SmallFloat.intToByte4).
func stored(length int) int {
	const exact = 24
	n := length - exact
	if drop := bits.Len(uint(max(n, 0))) - 4; drop > 0 && n >= 1<<4 {
		n = n >> drop << drop
		return n + exact
	}
	return length
}

// Len is the number of documents.
func (x *Index) Len() int { return len(x.ids) }

// Search gives the best k documents of a query: by score, descending, and by ID where
// scores are equal. Documents without a term of the query are no hits.
func (x *Index) Search(query string, k int) []Hit {
	scratch := x.scratch.Get().(*[]float64)
	scores := *scratch
	var touched []int32
	for _, t := range count(Analyze(query)) {
		postings := x.terms[t.term]
		weight := float32(t.count) * x.idf(len(postings))
		for _, p := range postings {
			if scores[p.document] == 0 {
				touched = append(touched, p.document)
			}
			scores[p.document] += float64(weight - float32(weight/p.saturation))
		}
	}
	hits := x.best(scores, touched, k)
	for _, d := range touched {
		scores[d] = 0
	}
	x.scratch.Put(scratch)
	return hits
}

// idf is the weight of a term that so many documents have. Lucene counts the documents
// that have the field at all; here that is all of them.
func (x *Index) idf(documents int) float32 {
	n, df := float64(len(x.ids)), float64(documents)
	return float32(math.Log(1 + (n-df+0.5)/(df+0.5)))
}

// best gives the first k of the documents that were touched, in order.
func (x *Index) best(scores []float64, touched []int32, k int) []Hit {
	order := func(a, b Hit) int {
		if c := cmp.Compare(b.Score, a.Score); c != 0 {
			return c
		}
		return cmp.Compare(x.ids[a.Document], x.ids[b.Document])
	}
	k = min(max(k, 0), len(touched))
	hits := make([]Hit, 0, min(2*k, len(touched)))
	for _, d := range touched {
		hit := Hit{Document: int(d), Score: float32(scores[d])}
		if len(hits) == 2*k {
			// Sorting twice as many as wanted costs less than sorting all of them.
			slices.SortFunc(hits, order)
			hits = hits[:k]
		}
		hits = append(hits, hit)
	}
	slices.SortFunc(hits, order)
	return hits[:k]
}

// counted is a term and how often a query has it.
type counted struct {
	term  string
	count int
}

// count gives the distinct terms of a query in the order of their first occurrence.
func count(terms []string) []counted {
	var distinct []counted
	for _, term := range terms {
		at := slices.IndexFunc(distinct, func(c counted) bool { return c.term == term })
		if at < 0 {
			at = len(distinct)
			distinct = append(distinct, counted{term: term})
		}
		distinct[at].count++
	}
	return distinct
}
