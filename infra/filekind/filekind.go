// Package filekind says what a file is that should be another: a git-lfs pointer, a web page, an
// archive, half a download. Readers ask it before or after their own parser fails, so that an error
// names the cause and what to do, and not the first byte that the parser disliked.
package filekind

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// Head is how many of a file's first bytes Mistaken looks at; fewer are enough if the file has no
// more.
const Head = 512

// Error says what a file is, and what to do about it.
type Error struct {
	// Is completes "the file is …".
	Is string
	// Do is what a person can do, as a command in words.
	Do string
}

// Error is one sentence.
func (e *Error) Error() string { return "the file is " + e.Is + ": " + e.Do }

// again is the remedy for what is no model file at all.
const again = "download it again, with a token if the model needs one, and look at what came"

// magics are the first bytes of formats that are found under other names, the longest first where
// one begins another.
var magics = []struct {
	magic string
	Error
}{
	{"\x1f\x8b", Error{"gzip-compressed", "unpack it with gunzip"}},
	{"\xfd7zXZ\x00", Error{"xz-compressed", "unpack it with unxz"}},
	{"\x28\xb5\x2f\xfd", Error{"zstd-compressed", "unpack it with unzstd"}},
	{"BZh", Error{"bzip2-compressed", "unpack it with bunzip2"}},
	{"\x04\x22\x4d\x18", Error{"lz4-compressed", "unpack it with unlz4"}},
	{"7z\xbc\xaf\x27\x1c", Error{"a 7z archive", "unpack it"}},
	{"GGUF", Error{"a GGUF file", "make a model folder of it with reprise policy from-gguf FILE DIR"}},
	{"\x89HDF\r\n\x1a\n", Error{"an HDF5 file (TensorFlow's or Keras')", "save the model as safetensors"}},
	{"\x80\x02", Error{"a Python pickle (torch.save)", "save the model as safetensors; a pickle runs code when it is read"}},
	{"\x80\x04\x95", Error{"a Python pickle", "save the model as safetensors; a pickle runs code when it is read"}},
	{"PAR1", Error{"a Parquet file", "give it where a table is read"}},
	{"%PDF-", Error{"a PDF document", again}},
	{"\x7fELF", Error{"a program", again}},
	{"\x00asm", Error{"a WebAssembly program", again}},
}

// answers are beginnings of what a hub or its storage answers in place of a file, in lower case. They
// are short.
var answers = []string{
	"entry not found", "repository not found", "revision not found", "404: not found", "not found",
	"access to model ", "access to dataset ", "invalid username or password", "invalid credentials",
	"unauthorized", "forbidden", "internal error", `{"error":`, `{"error" :`, `{"message":"not found"`,
}

// Mistaken says what a file is if that is nothing that a reader of models or data could mean; nil if
// its first bytes do not say. head is the file's first Head bytes, or all, and size its length.
func Mistaken(head []byte, size int64) *Error {
	if size == 0 {
		return &Error{"empty (0 bytes)", "download it again"}
	}
	head = head[:min(len(head), Head)]
	if len(head) > 0 && len(bytes.Trim(head, "\x00")) == 0 && size >= 16 {
		return &Error{"zero bytes where its beginning should be, as an interrupted download leaves", "download it again"}
	}
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			found := m.Error
			return &found
		}
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		if bytes.Contains(head, []byte("data.pkl")) {
			return &Error{"a PyTorch archive (torch.save)", "save the model as safetensors"}
		}
		return &Error{"a zip archive", "unpack it"}
	case len(head) > 262 && string(head[257:262]) == "ustar":
		return &Error{"a tar archive", "unpack it"}
	}
	return mistakenText(head)
}

// mistakenText is Mistaken of texts.
func mistakenText(head []byte) *Error {
	text := strings.ToLower(strings.TrimSpace(strings.TrimPrefix(string(head), "\xef\xbb\xbf")))
	switch {
	case strings.HasPrefix(text, "version https://git-lfs.github.com/spec/"), strings.HasPrefix(text, "version https://hawser.github.com/spec/"):
		return &Error{"a git-lfs pointer, not the file itself", "run git lfs pull in its folder, or download the file"}
	case strings.HasPrefix(text, "# xet version"):
		return &Error{"a xet pointer, not the file itself", "download the file with hf download"}
	case strings.HasPrefix(text, "<!doctype html"), strings.HasPrefix(text, "<html"), strings.HasPrefix(text, "<head>"), strings.HasPrefix(text, "<body"):
		return &Error{"a web page (HTML), perhaps a login page or an error", again}
	case strings.HasPrefix(text, "<?xml"), strings.HasPrefix(text, "<error>"):
		return &Error{"an XML document, perhaps a storage server's error", again}
	}
	for _, answer := range answers {
		if len(head) < Head && strings.HasPrefix(text, answer) {
			line, _, _ := strings.Cut(strings.TrimSpace(string(head)), "\n")
			return &Error{fmt.Sprintf("an answer of the hub (%.100q)", line), again}
		}
	}
	return nil
}

// Tensors reports whether a file's first bytes are those of safetensors: the length of a JSON
// object, and its brace.
func Tensors(head []byte) bool {
	return len(head) > 8 && head[8] == '{' && binary.LittleEndian.Uint64(head) < 1<<32
}
