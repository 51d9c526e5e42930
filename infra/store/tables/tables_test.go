package tables_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/storetest"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

func TestTableRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 7, 300, 70_000} {
		rows := storetest.SampleRows(n)
		file, content, err := tables.Encode(rows)
		require.NoError(t, err)
		again, contentAgain, err := tables.Encode(rows)
		require.NoError(t, err)
		require.Equal(t, canon.Digest(file), canon.Digest(again))
		require.Equal(t, content, contentAgain)

		fromFile, err := tables.Content(file)
		require.NoError(t, err)
		require.Equal(t, content, fromFile, "the digest of rows is the digest of the file")

		back, err := tables.Decode[storetest.TableRow](file)
		require.NoError(t, err)
		require.Len(t, back, n)
		for i := range back {
			require.Equal(t, math.Float64bits(rows[i].Reward), math.Float64bits(back[i].Reward))
			back[i].Reward, rows[i].Reward = 0, 0
			if n < 1000 || i%1000 == 0 {
				require.Empty(t, canon.Diff(text(t, rows[i]), text(t, back[i]), 5), "row %d", i)
			}
		}
	}
}

// text shows a row with nil and empty lists alike: Parquet's lists do not distinguish
// them.
func text(t *testing.T, r storetest.TableRow) []byte {
	b, err := canon.Marshal(map[string]any{"a": r.Group, "b": r.Member, "c": r.Done, "d": canon.Float(r.Single), "e": r.Text, "f": r.Raw, "g": fmt.Sprint(r.IDs),
		"h": fmt.Sprint(r.LogProbs), "i": fmt.Sprintf("%q", r.Actions), "j": fmt.Sprint(r.Flags), "k": fmt.Sprint(r.Returns), "l": r.Seed, "m": fmt.Sprint(r.Parts)})
	require.NoError(t, err)
	return b
}

// The bytes and the content of a table are pinned: another Parquet library, or the
// same one in another process, must be noticed here before a run's digests change.
func TestTablePinned(t *testing.T) {
	file, content, err := tables.Encode(storetest.SampleRows(300))
	require.NoError(t, err)
	require.Equal(t, "49ee92506f5670279d21a94606b6f88735a3c231db58d9ba598083f3c77b0b39", content)
	require.Equal(t, "2d0fca6bd1ef8dab8cba5c200488122c13c194120acc86bc3939fcb6cbe278d2", canon.Digest(file))
}

// The remains of other tables in recycled memory must not come into a file's bytes (see
// tablebits.go).
func TestTableBytesAreFreeOfEarlierOnes(t *testing.T) {
	want := map[int]string{}
	for round := range 60 {
		n := 1 + (round*7)%20
		noise := storetest.SampleRows(300 + round)
		for i := range noise {
			noise[i].Done = true
			for j := range noise[i].Flags {
				noise[i].Flags[j] = true
			}
		}
		_, _, err := tables.Encode(noise)
		require.NoError(t, err)
		rows := storetest.SampleRows(n)
		file, _, err := tables.Encode(rows)
		require.NoError(t, err)
		if want[n] == "" {
			want[n] = canon.Digest(file)
		}
		require.Equal(t, want[n], canon.Digest(file), "round %d", round)
	}
}

func TestTableContentTellsRowsApart(t *testing.T) {
	type row struct {
		A []int32 `parquet:"a,list"`
		B []int32 `parquet:"b,list"`
	}
	seen := map[string]int{}
	for i, rows := range [][]row{
		nil,
		{{}},
		{{}, {}},
		{{A: []int32{1, 2}}, {A: []int32{3}}},
		{{A: []int32{1}}, {A: []int32{2, 3}}},
		{{B: []int32{1, 2}}, {B: []int32{3}}},
		{{A: []int32{1, 2, 3}}, {}},
		{{}, {A: []int32{1, 2, 3}}},
	} {
		_, content, err := tables.Encode(rows)
		require.NoError(t, err)
		require.NotContains(t, seen, content, "tables %d and %d", i, seen[content])
		seen[content] = i
	}
	type renamed struct {
		A []int32 `parquet:"a,list"`
		C []int32 `parquet:"c,list"`
	}
	type wider struct {
		A []int64 `parquet:"a,list"`
		B []int32 `parquet:"b,list"`
	}
	_, one, err := tables.Encode([]row{{}})
	require.NoError(t, err)
	_, two, err := tables.Encode([]renamed{{}})
	require.NoError(t, err)
	_, three, err := tables.Encode([]wider{{}})
	require.NoError(t, err)
	require.NotEqual(t, one, two)
	require.NotEqual(t, one, three)
}

func TestTableContentIgnoresTheWriter(t *testing.T) {
	rows := storetest.SampleRows(300)
	_, want, err := tables.Encode(rows)
	require.NoError(t, err)
	var b strings.Builder
	w := parquet.NewGenericWriter[storetest.TableRow](&b, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(17), parquet.PageBufferSize(512), parquet.DataPageVersion(1))
	_, err = w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	got, err := tables.Content([]byte(b.String()))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestDecodeTableRefuses(t *testing.T) {
	file, _, err := tables.Encode(storetest.SampleRows(20))
	require.NoError(t, err)
	type other struct {
		Group int64 `parquet:"group"`
	}
	_, err = tables.Decode[other](file)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "columns")
	for _, bad := range [][]byte{nil, []byte("PAR1"), []byte("PAR1xxxxPAR1"), file[:len(file)-1], file[1:], file[:len(file)/2], append([]byte("PAR1\xff\xff\xff\xff"), "PAR1"...)} {
		_, err := tables.Decode[storetest.TableRow](bad)
		require.Error(t, err)
		_, err = tables.Content(bad)
		require.Error(t, err)
	}
	_, _, err = tables.Encode([]struct{ F func() }{{}})
	require.Error(t, err)
}

func TestTableArtifact(t *testing.T) {
	ctx := context.Background()
	s := store.NewMemory()
	rows := storetest.SampleRows(8)
	ref, err := tables.Put(ctx, s, store.IterationDir("run", 0, 0), "turn-1.step", rows)
	require.NoError(t, err)
	require.NotEmpty(t, ref.Content)
	back, err := tables.Get[storetest.TableRow](ctx, s, ref)
	require.NoError(t, err)
	require.Len(t, back, 8)
}

func FuzzDecodeTable(f *testing.F) {
	for _, n := range []int{0, 3} {
		file, _, err := tables.Encode(storetest.SampleRows(n))
		require.NoError(f, err)
		f.Add(file)
		for _, at := range []int{4, len(file) / 3, len(file) / 2, len(file) - 9, len(file) - 40} {
			bad := append([]byte(nil), file...)
			bad[at] ^= 0x55
			f.Add(bad)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		_, _ = tables.Decode[storetest.TableRow](file)
		_, _ = tables.Content(file)
	})
}
