package tokenizer

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// decoder changes the list of the texts of tokens, as the decode_chain of tokenizers does.
type decoder func(tokens []string) []string

// maxStrip bounds what a decoder Strip takes away.
const maxStrip = 1 << 10

func (p *parser) decoder(j *decoderJSON) {
	if j == nil {
		p.refuse("a file without a decoder is not supported")
		return
	}
	t := p.t
	// each is a decoder of single tokens. Up to the first Fuse such decoders also say what a token's
	// own bytes are.
	each := func(f func(string) string, bytes func(string) string) {
		t.decoders = append(t.decoders, func(tokens []string) []string {
			for i := range tokens {
				tokens[i] = f(tokens[i])
			}
			return tokens
		})
		if bytes != nil && !p.fused {
			p.bytes = append(p.bytes, bytes)
		}
	}
	switch j.Type {
	case "ByteLevel":
		p.byteLevels++
		t.decoders = append(t.decoders, func(tokens []string) []string {
			var out strings.Builder
			for _, token := range tokens {
				out.WriteString(tokenBytes(token))
			}
			return []string{lossyUTF8(out.String())}
		})
		if !p.fused {
			p.bytes = append(p.bytes, tokenBytes)
		}
		p.fused = true
	case "Sequence":
		for i := range j.Decoders {
			p.decoder(&j.Decoders[i])
		}
	case "Replace":
		if replace := p.replacement("decoder", j.Pattern, j.Content); replace != nil {
			each(replace, replace)
		}
	case "ByteFallback":
		t.decoders = append(t.decoders, decodeByteFallback)
		if !p.fused {
			p.bytes = append(p.bytes, func(token string) string {
				if b, ok := fallbackByte(token); ok {
					return string([]byte{b})
				}
				return token
			})
		}
	case "Fuse":
		t.decoders = append(t.decoders, func(tokens []string) []string { return []string{strings.Join(tokens, "")} })
		p.fused = true
	case "Strip":
		if utf8.RuneCountInString(j.Content) != 1 || j.Start < 0 || j.Start > maxStrip {
			p.refuse("decoder Strip of %q, %d at the start, is not supported", j.Content, j.Start)
			return
		}
		if j.Stop != 0 {
			p.refuse("decoder Strip at the end (stop %d) is not supported", j.Stop)
			return
		}
		strip := func(token string) string {
			for range j.Start {
				token = strings.TrimPrefix(token, j.Content)
			}
			return token
		}
		each(strip, strip)
	case "Metaspace":
		mark, scheme, ok := p.metaspaceMark("decoder", j.Replacement, j.PrependScheme, j.AddPrefixSpace)
		if !ok {
			return
		}
		t.decoders = append(t.decoders, func(tokens []string) []string {
			for i, token := range tokens {
				by := " "
				if i == 0 && scheme != "never" {
					by = ""
				}
				tokens[i] = strings.ReplaceAll(token, mark, by)
			}
			return tokens
		})
		if !p.fused {
			p.bytes = append(p.bytes, func(token string) string { return strings.ReplaceAll(token, mark, " ") })
		}
	default:
		p.refuse("decoder %q is not supported", j.Type)
	}
}

// fallbackByte is the byte that a token such as <0x0A> stands for.
func fallbackByte(token string) (byte, bool) {
	if len(token) != 6 || !strings.HasPrefix(token, "<0x") || token[5] != '>' {
		return 0, false
	}
	digits := token[3:5]
	if digits[0] == '+' { // Rust's from_str_radix takes a sign
		digits = digits[1:]
	}
	b, err := strconv.ParseUint(digits, 16, 8)
	return byte(b), err == nil
}

// decodeByteFallback puts the bytes of neighbours such as <0xC3> <0xA9> together. If they are not
// UTF-8, each becomes U+FFFD.
func decodeByteFallback(tokens []string) []string {
	out := make([]string, 0, len(tokens))
	var bytes []byte
	flush := func() {
		switch {
		case len(bytes) == 0:
		case utf8.Valid(bytes):
			out = append(out, string(bytes))
		default:
			for range bytes {
				out = append(out, "\uFFFD")
			}
		}
		bytes = bytes[:0]
	}
	for _, token := range tokens {
		if b, ok := fallbackByte(token); ok {
			bytes = append(bytes, b)
			continue
		}
		flush()
		out = append(out, token)
	}
	flush()
	return out
}

// Decode returns the text of ids, including special tokens. Bytes that are not UTF-8
// become U+FFFD. Ids without a token are omitted. A decoder such as Llama 2's takes the space at the
// start of the text away.
func (t *Tokenizer) Decode(ids []int32) string {
	if t.decoders == nil { // ByteLevel alone
		var out strings.Builder
		for _, id := range ids {
			if id >= 0 && int(id) < len(t.text) {
				out.WriteString(t.text[id])
			}
		}
		return lossyUTF8(out.String())
	}
	tokens := make([]string, 0, len(ids))
	for _, id := range ids {
		if id >= 0 && int(id) < len(t.known) && t.known[id] {
			tokens = append(tokens, t.names[id])
		}
	}
	for _, d := range t.decoders {
		tokens = d(tokens)
	}
	return strings.Join(tokens, "")
}

// Bytes returns the bytes that an id stands for, which need not be UTF-8; none for an id without a
// token. In the vocabularies of SentencePiece, a word has the space before it, which Decode leaves out at
// the start of a text.
func (t *Tokenizer) Bytes(id int32) string {
	if id < 0 || int(id) >= len(t.text) {
		return ""
	}
	return t.text[id]
}
