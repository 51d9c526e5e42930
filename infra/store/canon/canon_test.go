package canon

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarshal(t *testing.T) {
	type inner struct {
		Z int     `json:"z"`
		A float64 `json:"a"`
	}
	cases := []struct {
		name string
		in   any
		want string
	}{
		{"keys sorted in structs", inner{Z: 1, A: 0.1}, `{"a":0.1,"z":1}`},
		{"keys sorted in maps by bytes", map[string]int{"é": 1, "z": 2, "Z": 3, "": 4}, `{"":4,"Z":3,"z":2,"é":1}`},
		{"nested raw message", map[string]any{"raw": json.RawMessage(` { "b" : [ 1 , 2.50 ] , "a" : null } `)}, `{"raw":{"a":null,"b":[1,2.5]}}`},
		{"no HTML escaping", "<a & b>", `"<a & b>"`},
		{"control bytes", "\x00\n\"\\", `"\u0000\n\"\\"`},
		{"integers verbatim", json.RawMessage(`[9007199254740993,-0,123456789012345678901234567890]`), `[9007199254740993,-0,123456789012345678901234567890]`},
		{"uint64", uint64(math.MaxUint64), `18446744073709551615`},
		{"shortest floats", []float64{0.1, 1e21, 1e-7, 1.0, 1.0 / 3, math.MaxFloat64, 5e-324}, `[0.1,1e+21,1e-7,1,0.3333333333333333,1.7976931348623157e+308,5e-324]`},
		{"float literals", json.RawMessage(`[1.0,1e2,0.10,1E-7,-0.0]`), `[1,100,0.1,1e-7,-0]`},
		{"float32", float32(0.1), `0.1`},
		{"empty", []any{[]int{}, map[string]int{}, nil, true, false}, `[[],{},null,true,false]`},
		{"Float", []Float{Float(math.NaN()), Float(math.Inf(1)), Float(math.Inf(-1)), 0.5, 3, Float(math.Copysign(0, -1))}, `["NaN","Infinity","-Infinity",0.5,3,-0]`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := Marshal(c.in)
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
			again, err := Format(got)
			require.NoError(t, err)
			require.Equal(t, c.want, string(again))
		})
	}
}

func TestMarshalRefuses(t *testing.T) {
	_, err := Marshal(math.NaN())
	require.Error(t, err)
	for _, text := range []string{
		``, `{`, `{"a":1,"a":2}`, `{"a":1} 2`, `1e400`, `[1,]`, `nul`, `{1:2}`, `]`, `[1}`,
		strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
	} {
		_, err := Format([]byte(text))
		require.ErrorIs(t, err, ErrInvalid, "%.40s", text)
	}
}

func TestFloatRoundTrip(t *testing.T) {
	for _, x := range []float64{0, math.Copysign(0, -1), 1, -1.5, math.Pi, math.NaN(), math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64, math.MaxFloat64, 1 << 60} {
		b, err := Marshal(map[string]Float{"x": Float(x)})
		require.NoError(t, err)
		var back map[string]Float
		require.NoError(t, json.Unmarshal(b, &back))
		if math.IsNaN(x) {
			require.True(t, math.IsNaN(float64(back["x"])))
			continue
		}
		require.Equal(t, math.Float64bits(x), math.Float64bits(float64(back["x"])), "%v as %s", x, b)
	}
	var f Float
	for _, text := range []string{`"nan"`, `"1"`, `null`, `true`, `1e999`, `[]`} {
		require.Error(t, json.Unmarshal([]byte(text), &f), text)
	}
}

func TestDigest(t *testing.T) {
	require.Equal(t, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", Digest([]byte("abc")))
}

func TestDiff(t *testing.T) {
	cases := []struct {
		name       string
		have, want string
		out        []string
	}{
		{"equal, other spelling", `{"a":1.0,"b":2}`, `{ "b":2, "a":1 }`, nil},
		{"value", `{"a":{"b":[1,2]}}`, `{"a":{"b":[1,3]}}`, []string{"$.a.b[1]: have 2, want 3"}},
		{"key missing", `{"a":1,"c":3}`, `{"b":2,"c":3}`, []string{"$.a: have 1, want nothing", "$.b: have nothing, want 2"}},
		{"kinds and lengths", `{"a":"1","l":[1]}`, `{"a":1,"l":[1,2]}`, []string{`$.a: have "1", want 1`, "$.l[1]: have nothing, want 2"}},
		{"odd keys", `{"a b":1,"":2}`, `{"a b":2,"":2}`, []string{`$["a b"]: have 1, want 2`}},
		{"not JSON", `x`, `{}`, []string{"$: have x, want {}"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.out, Diff([]byte(c.have), []byte(c.want), 20))
		})
	}
	require.Len(t, Diff([]byte(`[1,2,3,4]`), []byte(`[5,6,7,8]`), 2), 2)
}

func FuzzFormat(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[1.50,"x",null]}`, `"é\u2028<"`, `1e308`, `[[[]]]`, `{"a":{"a":{}}}`, "\"\xff\"", `-0.0`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		once, err := Format(text)
		if err != nil {
			return
		}
		require.True(t, json.Valid(once))
		twice, err := Format(once)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
		require.Empty(t, Diff(text, once, 20))
		var v any
		require.NoError(t, json.Unmarshal(once, &v))
	})
}

func FuzzFloat(f *testing.F) {
	for _, bits := range []uint64{0, 1 << 63, 0x3ff0000000000000, 0x7ff0000000000000, 0xfff8000000000001} {
		f.Add(bits)
	}
	f.Fuzz(func(t *testing.T, bits uint64) {
		x := math.Float64frombits(bits)
		b, err := Marshal(Float(x))
		require.NoError(t, err)
		var back Float
		require.NoError(t, json.Unmarshal(b, &back))
		if !math.IsNaN(x) {
			require.Equal(t, bits, math.Float64bits(float64(back)))
		}
	})
}

func TestIsDigest(t *testing.T) {
	digest := Digest(nil)
	require.True(t, IsDigest(digest))
	for _, text := range []string{"", digest[1:], digest + "0", strings.ToUpper(digest), digest[1:] + "g", digest + "\n"} {
		require.False(t, IsDigest(text), "%q", text)
	}
}
