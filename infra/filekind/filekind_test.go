package filekind

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each of the commonest broken downloads is named, with what to do.
func TestMistaken(t *testing.T) {
	tar := make([]byte, 512)
	copy(tar, "config.json")
	copy(tar[257:], "ustar")
	for _, c := range []struct{ name, head, says string }{
		{"git-lfs", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123\n",
			"a git-lfs pointer, not the file itself: run git lfs pull"},
		{"web page", "\n<!DOCTYPE html>\n<html><title>Log in</title>", "a web page (HTML)"},
		{"web page in capitals", "<HTML>", "a web page (HTML)"},
		{"a store's error", "<?xml version=\"1.0\"?><Error><Code>AccessDenied", "an XML document"},
		{"hub's answer", "Entry not found", `an answer of the hub ("Entry not found")`},
		{"hub's JSON", `{"error":"Repository not found"}`, "an answer of the hub"},
		{"gated", "Access to model meta-llama/Llama-3.1-8B is restricted.", "with a token if the model needs one"},
		{"gzip", "\x1f\x8b\x08\x00\x00\x00\x00\x00", "gzip-compressed: unpack it with gunzip"},
		{"xz", "\xfd7zXZ\x00\x00", "xz-compressed"},
		{"zstd", "\x28\xb5\x2f\xfd\x04", "zstd-compressed"},
		{"bzip2", "BZh91AY", "bzip2-compressed"},
		{"zip", "PK\x03\x04\x14\x00", "a zip archive"},
		{"torch.save", "PK\x03\x04\x00\x00\x08\x08archive/data.pkl", "a PyTorch archive"},
		{"pickle", "\x80\x02\x8a\x0al\xfc", "a Python pickle"},
		{"tar", string(tar), "a tar archive"},
		{"GGUF", "GGUF\x03\x00\x00\x00", "reprise policy from-gguf FILE DIR"},
		{"HDF5", "\x89HDF\r\n\x1a\n", "an HDF5 file"},
		{"Parquet", "PAR1\x15\x04", "a Parquet file"},
		{"empty", "", "empty (0 bytes): download it again"},
		{"zeros", strings.Repeat("\x00", 600), "zero bytes where its beginning should be"},
	} {
		found := Mistaken([]byte(c.head), int64(len(c.head)))
		require.NotNil(t, found, c.name)
		require.Contains(t, found.Error(), c.says, c.name)
		require.Contains(t, found.Error(), "the file is ", c.name)
	}
	for _, right := range []string{
		`{"model_type": "qwen2"}`, "{% for m in messages %}{{ m.content }}{% endfor %}", "\x40\x00\x00\x00\x00\x00\x00\x00{\"a\":", "{}", "x",
		`{"error": ` + strings.Repeat("x", 600), "Not found" + strings.Repeat(" the answer", 60),
	} {
		require.Nil(t, Mistaken([]byte(right), int64(len(right))), right)
	}
}

// What is no JSON is told by what stands there and where.
func TestJSON(t *testing.T) {
	for _, c := range []struct{ b, says string }{
		{"{\"a\": 1,\n \"b\": NaN}", `line 2, column 7: "NaN", which is no number in JSON: write a finite number, or null`},
		{`{"a": Infinity}`, `line 1, column 7: "Infinity", which is no number`},
		{`{"a": -Infinity}`, `line 1, column 7: "-Infinity", which is no number`},
		{`{"a": nan}`, `column 7: "nan", which is no number`},
		{`{"a": None}`, `"None", which is Python`},
		{`{"a": True}`, `"True", which is Python`},
		{`{'a': 1}`, "a single quote, which is Python"},
		{`{"a": 1,}`, `line 1, column 8: a comma before '}', which JSON does not have: take it out`},
		{"[1, 2,\n]", "line 1, column 6: a comma before ']'"},
		{"{\n// of mine\n\"a\": 1}", `line 2, column 1: "//", a comment`},
		{"\xef\xbb\xbf{}", "a byte order mark"},
		{"\xff\xfe{\x00}\x00", "UTF-16 text: save it as UTF-8"},
		{"{\x00}\x00", "UTF-16 text"},
		{`{"a": [1, 2`, "cut off after 11 bytes, in the middle of its JSON"},
		{`{"a": "tex`, "cut off after 10 bytes"},
		{"  \n", "empty but for white space"},
		{"{} {}", "more than one JSON value"},
		{"<html>", "a web page"},
		{"version https://git-lfs.github.com/spec/v1\n", "a git-lfs pointer"},
		{`{"error": "Invalid username or password."}`, "an answer of the hub"},
		{"\x02\x00\x00\x00\x00\x00\x00\x00{}", "a safetensors file, not JSON"},
		{"<<<<<<< HEAD\n{}", "the mark of a merge conflict: settle the conflict"},
		{`{"a" 1}`, "line 1, column 6: invalid character '1'"},
	} {
		require.ErrorContains(t, JSON([]byte(c.b)), c.says, c.b)
	}
	for _, right := range []string{`{}`, ` {"a": [1e5, null]} `, `{"error": 1, "a": 2, "b": 3, "c": 4}`, `"NaN"`} {
		require.NoError(t, JSON([]byte(right)), right)
	}
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{"", "{", "-", "{\"a\": NaN", "\xff\xfe", "]", "[,]"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := JSON(b); err != nil {
			require.NotEmpty(t, err.Error())
		}
		_ = Mistaken(b, int64(len(b)))
	})
}
