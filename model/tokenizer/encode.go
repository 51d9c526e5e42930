package tokenizer

import "slices"

// extent is a part of a text by bytes, from the first to before the second.
type extent struct{ from, to int }

// Encode returns the ids of text, as transformers' tokenizer(text) does: it recognises
// special tokens in the text and adds the tokens of the post-processor.
func (t *Tokenizer) Encode(text string) []int32 {
	ids := slices.Clone(t.before)
	ids = t.encodeSpecial(ids, text)
	return append(ids, t.after...)
}

// EncodePlain returns the ids of text without recognising special tokens: "<|im_end|>" is
// ten characters. It adds no tokens.
func (t *Tokenizer) EncodePlain(text string) []int32 {
	return t.encode(nil, lossyUTF8(text), nil, piece{first: true})
}

// EncodeTag returns the ids of a protocol's tag ("<think>") that goes on from a text. It recognises
// special tokens, because a tag is one token in some models, and adds no tokens, nor the space that some
// tokenizers put before a text.
func (t *Tokenizer) EncodeTag(tag string) []int32 {
	tag = lossyUTF8(tag)
	return t.encode(nil, tag, whole(tag), piece{inside: true})
}

// encodeSpecial appends text's ids, with added tokens recognised.
func (t *Tokenizer) encodeSpecial(ids []int32, text string) []int32 {
	text = lossyUTF8(text)
	return t.encode(ids, text, whole(text), piece{first: true})
}

// encodeParts encodes a conversation, which begins with the parts or goes on with them. It recognises
// special tokens only in the template's own parts.
func (t *Tokenizer) encodeParts(parts []part, first bool) []int32 {
	var text []byte
	var own []extent
	for _, p := range parts {
		from := len(text)
		text = append(text, lossyUTF8(p.text)...)
		if p.own {
			own = append(own, extent{from, len(text)})
		}
	}
	return t.encode([]int32{}, string(text), own, piece{first: first})
}

func whole(text string) []extent { return []extent{{0, len(text)}} }

// encode appends text's ids. Added tokens are recognised inside of each extent of own. at says where
// the text stands.
func (t *Tokenizer) encode(ids []int32, text string, own []extent, at piece) []int32 {
	cut(text, own, t.added, func(id int32, from, to int) {
		if id >= 0 {
			ids = append(ids, id)
			return
		}
		at := piece{text[from:to], at.first && from == 0, at.inside && from == 0}
		normalized, own := t.normalizeOwn(at, within(own, from, to))
		cut(normalized, own, t.addedNormalized, func(id int32, from, to int) {
			if id >= 0 {
				ids = append(ids, id)
				return
			}
			p := piece{normalized[from:to], at.first && from == 0, at.inside && from == 0}
			words(t.steps, p, func(word string) { ids = t.bpe.encode(ids, word) })
		})
	})
	return ids
}

// within is what extents have of a part of their text.
func within(own []extent, from, to int) []extent {
	var out []extent
	for _, e := range own {
		if e = (extent{max(e.from, from) - from, min(e.to, to) - from}); e.from < e.to {
			out = append(out, e)
		}
	}
	return out
}

// normalizeOwn normalizes a piece, and finds its extents in the normalized text.
func (t *Tokenizer) normalizeOwn(p piece, own []extent) (string, []extent) {
	normalized := t.normalize(p.text, p.inside)
	switch {
	case len(t.addedNormalized) == 0 || len(own) == 0:
		return normalized, nil
	case own[0] == extent{0, len(p.text)}:
		return normalized, whole(normalized)
	}
	// Each extent and each text between two is normalized alone, to know where it begins. That differs
	// from the whole only if one begins with a mark that combines with the text before.
	var alone []byte
	var out []extent
	at := 0
	add := func(to int, isOwn bool) {
		from := len(alone)
		alone = append(alone, t.normalize(p.text[at:to], p.inside || at > 0)...)
		if isOwn {
			out = append(out, extent{from, len(alone)})
		}
		at = to
	}
	for _, e := range own {
		add(e.from, false)
		add(e.to, true)
	}
	add(len(p.text), false)
	if string(alone) == normalized {
		return normalized, out
	}
	found := false
	find(normalized, t.addedNormalized, func(*addedToken, int, int) { found = true })
	if !found {
		return normalized, nil
	}
	return string(alone), out
}

// Words returns the words of a text, which tokens never cross. Merges are trained on them.
func (t *Tokenizer) Words(text string) []string {
	var out []string
	text = t.normalize(lossyUTF8(text), false)
	words(t.steps, piece{text: text, first: true}, func(word string) { out = append(out, word) })
	return out
}

// specials lists the added tokens in text.
func (t *Tokenizer) specials(text string) []int32 {
	var ids []int32
	list := func(id int32, _, _ int) {
		if id >= 0 {
			ids = append(ids, id)
		}
	}
	cut(text, whole(text), t.added, list)
	text = t.normalize(text, true)
	cut(text, whole(text), t.addedNormalized, list)
	return ids
}
