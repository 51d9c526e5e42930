package retrieve

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/golden"
)

// Every term, ranking and score of Lucene's.
func TestSearchGolden(t *testing.T) {
	var want struct {
		K1, B     float32
		Documents []struct {
			ID, Contents string
			Tokens       []string
		}
		Queries []struct {
			Query  string
			Tokens []string
			Hits   [][2]any
		}
	}
	require.NoError(t, json.Unmarshal(golden.Read(t, "webshop", "search.json", "testdata"), &want))
	require.NotEmpty(t, want.Documents)
	require.NotEmpty(t, want.Queries)
	documents := make([]Document, len(want.Documents))
	for i, d := range want.Documents {
		require.Equal(t, d.Tokens, Analyze(d.Contents), d.ID)
		documents[i] = Document{ID: d.ID, Text: d.Contents}
	}
	const k = 50 // the golden's
	index := New(documents, Parameters{K1: want.K1, B: want.B})
	for _, q := range want.Queries {
		require.Equal(t, append([]string{}, q.Tokens...), append([]string{}, Analyze(q.Query)...), q.Query)
		hits := index.Search(q.Query, k)
		require.Len(t, hits, len(q.Hits), q.Query)
		for i, hit := range hits {
			require.Equal(t, q.Hits[i][0], documents[hit.Document].ID, "%q, place %d", q.Query, i+1)
			// The reference prints four decimals, and takes a millionth for each tie.
			require.InDelta(t, q.Hits[i][1], hit.Score, 1.1e-4, "%q, place %d", q.Query, i+1)
		}
	}
}
