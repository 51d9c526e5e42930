package store_test

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
)

type inner struct {
	Name  string  `parquet:"name"`
	Value float64 `parquet:"value"`
}

type tableRow struct {
	Group    int64     `parquet:"group"`
	Member   int32     `parquet:"member"`
	Done     bool      `parquet:"done"`
	Reward   float64   `parquet:"reward"`
	Single   float32   `parquet:"single"`
	Text     string    `parquet:"text"`
	Raw      []byte    `parquet:"raw"`
	IDs      []int32   `parquet:"ids,list"`
	LogProbs []float32 `parquet:"log_probs,list"`
	Actions  []string  `parquet:"actions,list"`
	Flags    []bool    `parquet:"flags,list"`
	Returns  []float64 `parquet:"returns,list"`
	Seed     uint64    `parquet:"seed"`
	Parts    []inner   `parquet:"parts,list"`
}

func sampleRows(n int) []tableRow {
	rows := make([]tableRow, n)
	for i := range rows {
		r := &rows[i]
		r.Group, r.Member, r.Done = int64(i/4), int32(i%4), i%3 == 0
		r.Reward, r.Single = math.Sqrt(float64(i)), float32(i)/3
		r.Text, r.Raw = fmt.Sprintf("<think>é %d</think>", i), []byte{0, 255, byte(i)}
		r.Seed = math.MaxUint64 - uint64(i)
		for j := range i % 5 {
			r.IDs = append(r.IDs, int32(j*i))
			r.LogProbs = append(r.LogProbs, -float32(j)/7)
			r.Actions = append(r.Actions, strings.Repeat("a", j))
			r.Flags = append(r.Flags, j%2 == 0)
			r.Returns = append(r.Returns, 1/float64(j+1))
			r.Parts = append(r.Parts, inner{Name: "p", Value: float64(j)})
		}
	}
	if n > 5 {
		rows[1].Reward, rows[2].Reward, rows[3].Reward = math.NaN(), math.Inf(-1), math.Copysign(0, -1)
		rows[4].LogProbs[1] = float32(math.Inf(1))
		rows[4].Reward = math.Float64frombits(0x7ff8000000000abc) // a NaN with a payload
	}
	return rows
}

func TestTableRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 7, 300, 70_000} {
		rows := sampleRows(n)
		file, content, err := store.EncodeTable(rows)
		require.NoError(t, err)
		again, contentAgain, err := store.EncodeTable(rows)
		require.NoError(t, err)
		require.Equal(t, canon.Digest(file), canon.Digest(again))
		require.Equal(t, content, contentAgain)

		fromFile, err := store.TableContent(file)
		require.NoError(t, err)
		require.Equal(t, content, fromFile, "the digest of rows is the digest of the file")

		back, err := store.DecodeTable[tableRow](file)
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

// text shows a row with nil and empty lists alike: Parquet's lists do not tell.
func text(t *testing.T, r tableRow) []byte {
	b, err := canon.Marshal(map[string]any{"a": r.Group, "b": r.Member, "c": r.Done, "d": canon.Float(r.Single), "e": r.Text, "f": r.Raw, "g": fmt.Sprint(r.IDs),
		"h": fmt.Sprint(r.LogProbs), "i": fmt.Sprintf("%q", r.Actions), "j": fmt.Sprint(r.Flags), "k": fmt.Sprint(r.Returns), "l": r.Seed, "m": fmt.Sprint(r.Parts)})
	require.NoError(t, err)
	return b
}

// The bytes and the content of a table are pinned: another Parquet library, or the
// same one in another process, must be noticed here before a run's digests change.
func TestTablePinned(t *testing.T) {
	file, content, err := store.EncodeTable(sampleRows(300))
	require.NoError(t, err)
	require.Equal(t, "49ee92506f5670279d21a94606b6f88735a3c231db58d9ba598083f3c77b0b39", content)
	require.Equal(t, "2d0fca6bd1ef8dab8cba5c200488122c13c194120acc86bc3939fcb6cbe278d2", canon.Digest(file))
}

// What other tables leave in recycled memory must not come into a file's bytes (see
// tablebits.go).
func TestTableBytesAreFreeOfEarlierOnes(t *testing.T) {
	want := map[int]string{}
	for round := range 60 {
		n := 1 + (round*7)%20
		noise := sampleRows(300 + round)
		for i := range noise {
			noise[i].Done = true
			for j := range noise[i].Flags {
				noise[i].Flags[j] = true
			}
		}
		_, _, err := store.EncodeTable(noise)
		require.NoError(t, err)
		rows := sampleRows(n)
		file, _, err := store.EncodeTable(rows)
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
		_, content, err := store.EncodeTable(rows)
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
	_, one, err := store.EncodeTable([]row{{}})
	require.NoError(t, err)
	_, two, err := store.EncodeTable([]renamed{{}})
	require.NoError(t, err)
	_, three, err := store.EncodeTable([]wider{{}})
	require.NoError(t, err)
	require.NotEqual(t, one, two)
	require.NotEqual(t, one, three)
}

func TestTableContentIgnoresTheWriter(t *testing.T) {
	rows := sampleRows(300)
	_, want, err := store.EncodeTable(rows)
	require.NoError(t, err)
	var b strings.Builder
	w := parquet.NewGenericWriter[tableRow](&b, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(17), parquet.PageBufferSize(512), parquet.DataPageVersion(1))
	_, err = w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	got, err := store.TableContent([]byte(b.String()))
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestDecodeTableRefuses(t *testing.T) {
	file, _, err := store.EncodeTable(sampleRows(20))
	require.NoError(t, err)
	type other struct {
		Group int64 `parquet:"group"`
	}
	_, err = store.DecodeTable[other](file)
	require.ErrorIs(t, err, store.ErrInvalid)
	require.ErrorContains(t, err, "columns")
	for _, bad := range [][]byte{nil, []byte("PAR1"), []byte("PAR1xxxxPAR1"), file[:len(file)-1], file[1:], file[:len(file)/2], append([]byte("PAR1\xff\xff\xff\xff"), "PAR1"...)} {
		_, err := store.DecodeTable[tableRow](bad)
		require.Error(t, err)
		_, err = store.TableContent(bad)
		require.Error(t, err)
	}
	_, _, err = store.EncodeTable([]struct{ F func() }{{}})
	require.Error(t, err)
}

func TestTableArtifact(t *testing.T) {
	ctx := context.Background()
	s := store.NewMemory()
	rows := sampleRows(8)
	ref, err := store.PutTable(ctx, s, store.IterationDir("run", 0, 0), "turn-1.step", rows)
	require.NoError(t, err)
	require.NotEmpty(t, ref.Content)
	back, err := store.GetTable[tableRow](ctx, s, ref)
	require.NoError(t, err)
	require.Len(t, back, 8)
}

func FuzzDecodeTable(f *testing.F) {
	for _, n := range []int{0, 3} {
		file, _, err := store.EncodeTable(sampleRows(n))
		require.NoError(f, err)
		f.Add(file)
		for _, at := range []int{4, len(file) / 3, len(file) / 2, len(file) - 9, len(file) - 40} {
			bad := append([]byte(nil), file...)
			bad[at] ^= 0x55
			f.Add(bad)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		_, _ = store.DecodeTable[tableRow](file)
		_, _ = store.TableContent(file)
	})
}
