package tokenizer

import "fmt"

// Differs says where the vocabulary of another tokenizer first differs: a token that only one of them has under its id, or
// another under the same id. It is "" if there is none: then ids of one stand for the same text in the other, however
// each cuts a text into tokens.
func (t *Tokenizer) Differs(other *Tokenizer) string {
	says := func(of *Tokenizer, id int) string {
		if id >= len(of.known) || !of.known[id] {
			return "no token"
		}
		return fmt.Sprintf("%q", clipped(of.text[id]))
	}
	for id := range max(len(t.known), len(other.known)) {
		if there := id < len(t.known) && id < len(other.known); there && t.known[id] == other.known[id] && t.text[id] == other.text[id] {
			continue
		}
		if here, there := says(t, id), says(other, id); here != there || here != "no token" {
			return fmt.Sprintf("id %d is %s in the one, and %s in the other", id, here, there)
		}
	}
	return ""
}

// clipped is a token's beginning, for a message.
func clipped(token string) string {
	const most = 40
	if len(token) > most {
		return token[:most] + "…"
	}
	return token
}
