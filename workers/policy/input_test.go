package policy

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/tokenizer"
)

func TestFloats(t *testing.T) {
	b, err := json.Marshal([]floats{{0.1, -1e-9, 1 << 24, float32(math.Inf(-1)), float32(math.Inf(1)), float32(math.NaN())}, {}, nil})
	require.NoError(t, err)
	require.Equal(t, `[[0.1,-1e-9,16777216,"-Infinity","Infinity","NaN"],[],[]]`, string(b))
}

func FuzzInput(f *testing.F) {
	for _, seed := range []string{
		`{"ids":[[1,2],[3]]}`, `{"ids":[[]],"messages":[{"role":"a","content":"b"}],"on":true}`, `{"ids":[[1e3]]}`, `{"ids":[[1]`, `[[]]`, `{"ids":null}`, `{"ids":[],"ids":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		input := struct {
			IDs      [][]int32           `json:"ids"`
			Messages []tokenizer.Message `json:"messages,omitempty"`
			On       bool                `json:"on,omitempty"`
		}{}
		err := parseInput(b, "example", []inputField{
			{name: "ids", read: readArray(&input.IDs, readIDs)},
			{name: "messages", optional: true, read: readArray(&input.Messages, readMessage)},
			{name: "on", optional: true, read: readBool(&input.On)},
		})
		if err != nil {
			return
		}
		require.NotNil(t, input.IDs)
		again, err := json.Marshal(input)
		require.NoError(t, err)
		copied := input
		require.NoError(t, json.Unmarshal(b, &copied), "what is accepted is JSON of these types")
		other, err := json.Marshal(copied)
		require.NoError(t, err)
		require.Equal(t, string(again), string(other))
	})
}
