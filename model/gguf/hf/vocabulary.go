package hf

import (
	"fmt"
	"slices"
	"strings"
)

// Types of tokens, as numbered in the file.
const (
	tokenNormal      = 1
	tokenControl     = 3
	tokenUserDefined = 4
	tokenUnused      = 5
)

// vocabulary is the tokenizer as the metadata give it.
type vocabulary struct {
	tokens []string // by id
	types  []int64
	merges [][2]string
	pre    *preTokenizer
	// bos, eos, pad and unknown are ids, -1 if there is none. The file has an eos.
	bos, eos, pad, unknown int
	// ends are the ids that end a turn: eos first, and others that the file names.
	ends []int
	// addBOS says that a text begins with bos.
	addBOS   bool
	template string // chat template, "" if there is none
}

// tokenizerKeys are the keys, after "tokenizer.ggml.", that are read.
var tokenizerKeys = []string{
	"model", "pre", "tokens", "token_type", "merges", "bos_token_id", "eos_token_id", "padding_token_id", "unknown_token_id",
	"eot_token_id", "eom_token_id", "add_bos_token", "add_eos_token", "add_sep_token", "add_space_prefix",
}

// unusedKeys are the keys, after "tokenizer.ggml.", that concern neither the encoding of texts nor
// the end of a turn.
var unusedKeys = []string{
	"scores", "token_type_count", "seperator_token_id", "separator_token_id", "cls_token_id", "mask_token_id",
	"prefix_token_id", "suffix_token_id", "middle_token_id",
	"fim_pre_token_id", "fim_suf_token_id", "fim_mid_token_id", "fim_pad_token_id", "fim_rep_token_id", "fim_sep_token_id",
}

const templateKey = "tokenizer.chat_template"

// knownTokenizerKey reports whether a key of the tokenizer is read, or may be left.
func knownTokenizerKey(key string) bool {
	of, ok := strings.CutPrefix(key, "tokenizer.ggml.")
	return key == templateKey || ok && (slices.Contains(tokenizerKeys, of) || slices.Contains(unusedKeys, of))
}

// vocabulary reads the tokenizer; nil, with problems, if it is not one that can be carried over.
func (p *problems) vocabulary() *vocabulary {
	before := len(p.list)
	v := &vocabulary{}
	of := func(key string) string { return "tokenizer.ggml." + key }
	kind, err := p.metadata.String(of("model"))
	if err == nil && kind != "gpt2" {
		err = fmt.Errorf("tokenizer.ggml.model is %.40q, only \"gpt2\" (byte-level BPE) is supported", kind)
	}
	p.note(err)
	p.readPre(v)
	v.tokens, err = p.metadata.Strings(of("tokens"))
	p.note(err)
	v.types, err = p.metadata.Ints(of("token_type"))
	p.note(err)
	merges, err := p.metadata.Strings(of("merges"))
	p.note(err)
	if len(p.list) > before {
		return nil
	}
	p.checkTokens(v)
	p.readMerges(v, merges)
	v.bos, v.eos = p.tokenID(v, of("bos_token_id")), p.tokenID(v, of("eos_token_id"))
	v.pad, v.unknown = p.tokenID(v, of("padding_token_id")), p.tokenID(v, of("unknown_token_id"))
	if v.eos < 0 {
		p.add("the metadata lack %q", of("eos_token_id"))
	}
	for _, key := range []string{"eos_token_id", "eot_token_id", "eom_token_id"} {
		if id := p.tokenID(v, of(key)); id >= 0 && !slices.Contains(v.ends, id) {
			v.ends = append(v.ends, id)
		}
	}
	v.addBOS = p.flag(of("add_bos_token"), v.pre.addBOS)
	if v.addBOS && v.bos < 0 {
		p.add("tokenizer.ggml.add_bos_token without bos_token_id")
	}
	for _, key := range []string{of("add_eos_token"), of("add_sep_token"), of("add_space_prefix")} {
		if p.flag(key, false) {
			p.add("%s is true: it is not carried over", key)
		}
	}
	if p.metadata.Has(templateKey) {
		v.template, err = p.metadata.String(templateKey)
		p.note(err)
	}
	return v
}

// readPre finds the pre-tokenizer.
func (p *problems) readPre(v *vocabulary) {
	const key = "tokenizer.ggml.pre"
	name, err := p.metadata.String(key)
	if err != nil {
		p.note(err)
		return
	}
	if v.pre = preTokenizers[name]; v.pre == nil {
		p.add("%s is %.40q: supported are llama-bpe, qwen2, smollm", key, name)
	}
}

// flag reads a boolean that may be absent.
func (p *problems) flag(key string, absent bool) bool {
	if !p.metadata.Has(key) {
		return absent
	}
	v, err := p.metadata.Bool(key)
	p.note(err)
	return v
}

// tokenID reads an id that may be absent, -1 then.
func (p *problems) tokenID(v *vocabulary, key string) int {
	if !p.metadata.Has(key) {
		return -1
	}
	id, err := p.metadata.Int(key)
	if err == nil && (id >= len(v.tokens) || v.unused(id)) {
		err = fmt.Errorf("%s is %d, which is no token of the %d", key, id, len(v.tokens))
	}
	if err != nil {
		p.note(err)
		return -1
	}
	return id
}

// unused reports whether an id has no token: llama.cpp fills a vocabulary up with names for such ids.
func (v *vocabulary) unused(id int) bool { return id < len(v.types) && v.types[id] == tokenUnused }

// checkTokens checks that every token has a type and its own text.
func (p *problems) checkTokens(v *vocabulary) {
	if len(v.tokens) == 0 || len(v.tokens) != len(v.types) {
		p.add("tokenizer.ggml.tokens has %d tokens, and tokenizer.ggml.token_type %d types", len(v.tokens), len(v.types))
		return
	}
	ids := make(map[string]int, len(v.tokens))
	for id, token := range v.tokens {
		switch v.types[id] {
		case tokenNormal, tokenControl, tokenUserDefined:
		case tokenUnused:
			continue
		default:
			p.add("token %d, %.40q, has type %d: only normal (1), control (3), user-defined (4) and unused (5) tokens are supported",
				id, token, v.types[id])
			return
		}
		if other, twice := ids[token]; twice || token == "" {
			p.add("token %d, %.40q, is empty or has the text of token %d", id, token, other)
			return
		}
		ids[token] = id
	}
}

// readMerges splits the merges, and checks that their tokens exist.
func (p *problems) readMerges(v *vocabulary, merges []string) {
	known := make(map[string]bool, len(v.tokens))
	for id, token := range v.tokens {
		known[token] = !v.unused(id)
	}
	for i, m := range merges {
		left, right, ok := strings.Cut(m, " ")
		if !ok || !known[left] || !known[right] || !known[left+right] {
			p.add("merge %d, %.40q, is not two tokens that make a third", i, m)
			return
		}
		v.merges = append(v.merges, [2]string{left, right})
	}
}

// appendIDs appends the ids of special tokens as config.json has them; eos is one id or a list.
func (v *vocabulary) appendIDs(o object, eos any) object {
	if v.bos >= 0 {
		o = o.with("bos_token_id", v.bos)
	}
	o = o.with("eos_token_id", eos)
	if v.pad >= 0 {
		o = o.with("pad_token_id", v.pad)
	}
	return o
}
