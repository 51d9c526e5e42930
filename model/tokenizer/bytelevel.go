package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// byteRunes is GPT-2's byte-level alphabet: a printable rune for each byte, so that a
// vocabulary of bytes can be written as JSON strings. runeBytes is the inverse.
var byteRunes, runeBytes = byteAlphabet()

func byteAlphabet() (runes [256]rune, bytes map[rune]byte) {
	bytes = make(map[rune]byte, 256)
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae) {
			r = next
			next++
		}
		runes[b] = r
		bytes[r] = byte(b)
	}
	return runes, bytes
}

// ByteLevel writes bytes in GPT-2's byte-level alphabet, which tokenizer.json uses for its
// tokens: a space becomes "Ġ", a newline "Ċ".
func ByteLevel(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		s.WriteRune(byteRunes[c])
	}
	return s.String()
}

// tokenBytes is the inverse of ByteLevel. A token with a rune outside the alphabet is
// returned unchanged, as in Hugging Face's ByteLevel decoder.
func tokenBytes(token string) string {
	if bytes, ok := alphabetBytes(token); ok {
		return bytes
	}
	return token
}

// alphabetBytes is the inverse of ByteLevel, of a token in the alphabet.
func alphabetBytes(token string) (bytes string, ok bool) {
	out := make([]byte, 0, len(token))
	for _, r := range token {
		b, ok := runeBytes[r]
		if !ok {
			return "", false
		}
		out = append(out, b)
	}
	return string(out), true
}

// lossyUTF8 replaces each maximal invalid part by U+FFFD, as Rust's
// from_utf8_lossy does (strings.ToValidUTF8 joins neighbours).
func lossyUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var out strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && size == 1 {
			size = invalidPrefix(s)
		}
		out.WriteRune(r)
		s = s[size:]
	}
	return out.String()
}

// invalidPrefix is the length of the maximal invalid part at the start of s: a
// truncated but so far well-formed sequence, or else one byte.
func invalidPrefix(s string) int {
	var need int
	low, high := byte(0x80), byte(0xbf)
	switch c := s[0]; {
	case c >= 0xc2 && c <= 0xdf:
		need = 1
	case c >= 0xe0 && c <= 0xef:
		need = 2
		switch c {
		case 0xe0:
			low = 0xa0
		case 0xed:
			high = 0x9f
		}
	case c >= 0xf0 && c <= 0xf4:
		need = 3
		switch c {
		case 0xf0:
			low = 0x90
		case 0xf4:
			high = 0x8f
		}
	}
	n := 1
	for n <= need && n < len(s) && s[n] >= low && s[n] <= high {
		n++
		low, high = 0x80, 0xbf
	}
	return n
}
