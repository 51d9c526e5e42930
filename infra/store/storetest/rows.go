package storetest

import (
	"fmt"
	"math"
	"strings"
)

// Part is a group in a row.
type Part struct {
	Name  string  `parquet:"name"`
	Value float64 `parquet:"value"`
}

// TableRow has every kind of column.
type TableRow struct {
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
	Parts    []Part    `parquet:"parts,list"`
}

// SampleRows are n rows, always the same, with numbers that are hard to keep among them.
func SampleRows(n int) []TableRow {
	rows := make([]TableRow, n)
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
			r.Parts = append(r.Parts, Part{Name: "p", Value: float64(j)})
		}
	}
	if n > 5 {
		rows[1].Reward, rows[2].Reward, rows[3].Reward = math.NaN(), math.Inf(-1), math.Copysign(0, -1)
		rows[4].LogProbs[1] = float32(math.Inf(1))
		rows[4].Reward = math.Float64frombits(0x7ff8000000000abc) // a NaN with a payload
	}
	return rows
}
