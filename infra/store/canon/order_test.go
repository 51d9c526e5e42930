package canon

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Keys are in the order of their UTF-8 bytes: not by length, not by case, not as numbers,
// not by UTF-16 units, at every depth.
func TestKeyOrder(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"longer keys come first":     {`{"b":1,"aa":2}`, `{"aa":2,"b":1}`},
		"a prefix comes first":       {`{"ab":1,"a":2,"":3,"abc":4}`, `{"":3,"a":2,"ab":1,"abc":4}`},
		"digits are no numbers":      {`{"9":1,"10":2,"1":3}`, `{"1":3,"10":2,"9":1}`},
		"capitals come first":        {`{"a":1,"B":2,"A":3,"b":4}`, `{"A":3,"B":2,"a":1,"b":4}`},
		"underscores and dots":       {`{"a_b":1,"a.b":2,"a b":3,"aB":4}`, `{"a b":3,"a.b":2,"aB":4,"a_b":1}`},
		"bytes, not UTF-16 units":    {"{\"\U0001F600\":1,\"\uFB33\":2,\"é\":3,\"z\":4}", "{\"z\":4,\"é\":3,\"\uFB33\":2,\"\U0001F600\":1}"},
		"escapes are read first":     {`{"b":1,"\u0061":2}`, `{"a":2,"b":1}`},
		"in an object in an object":  {`{"x":{"b":1,"aa":2}}`, `{"x":{"aa":2,"b":1}}`},
		"in an object in an array":   {`[[{"b":1,"aa":{"d":[],"cc":3}}]]`, `[[{"aa":{"cc":3,"d":[]},"b":1}]]`},
		"values go with their keys":  {`{"c":3,"bb":{"x":2},"aaa":[1]}`, `{"aaa":[1],"bb":{"x":2},"c":3}`},
		"the order of arrays stays":  {`[3,1,2]`, `[3,1,2]`},
		"more keys than sort by one": {shuffled(t, 40), ordered(40)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Format([]byte(c.in))
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
			got, err = Marshal(json.RawMessage(c.in))
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
		})
	}
	got, err := Marshal(map[string]int{"b": 1, "aa": 2})
	require.NoError(t, err)
	require.Equal(t, `{"aa":2,"b":1}`, string(got))
	got, err = Marshal(struct {
		B  int `json:"b"`
		AA int `json:"aa"`
	}{1, 2})
	require.NoError(t, err)
	require.Equal(t, `{"aa":2,"b":1}`, string(got))
}

// ordered is an object of n keys of different lengths in the order of their bytes.
func ordered(n int) string {
	return object(numbered(n))
}

// shuffled is the same object, its keys in another order.
func shuffled(t *testing.T, n int) string {
	t.Helper()
	keys := numbered(n)
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	require.False(t, slices.IsSorted(keys))
	return object(keys)
}

func numbered(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = string(rune('A'+i)) + strings.Repeat("k", (n-i)%7)
	}
	return keys
}

func object(keys []string) string {
	var b strings.Builder
	for i, key := range keys {
		text, _ := json.Marshal(key)
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		b.Write(text)
		b.WriteString(":")
		b.Write(text)
	}
	return b.String() + "}"
}
