package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

var specials = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}

// fileNames are the files made, in the order they are written.
var fileNames = []string{"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"}

// qwen2Pattern is Qwen2's pre-tokenizer: each digit is a piece of its own.
const qwen2Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// chatTemplate is ChatML without a default system message.
const chatTemplate = `{% for message in messages %}<|im_start|>{{ message['role'] }}
{{ message['content'] }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// object is a JSON object whose keys keep their order.
type object []field

type field struct {
	key   string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		key, err := plainJSON(f.key)
		if err != nil {
			return nil, err
		}
		value, err := plainJSON(f.value)
		if err != nil {
			return nil, err
		}
		b.Write(key)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plainJSON leaves <, > and & as they are.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func indented(v any) ([]byte, error) {
	plain, err := plainJSON(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, plain, "", " "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// firstMerges are the merges of the first tokenizer, from the texts of environments.
func firstMerges() ([][2]string, error) {
	bare, err := tokenizerJSON(nil)
	if err != nil {
		return nil, err
	}
	// A tokenizer without merges cuts the corpus into words.
	cutter, err := tokenizer.Load(map[string][]byte{"tokenizer.json": bare})
	if err != nil {
		return nil, err
	}
	texts, questions, err := corpus()
	if err != nil {
		return nil, err
	}
	// A word's weight does not grow with its occurrences: what is rare in the
	// corpus is not rare in a run.
	counts := map[string]int{}
	for _, text := range questions {
		for _, word := range cutter.Words(text) {
			counts[word] = 1
		}
	}
	for _, text := range texts {
		for _, word := range cutter.Words(text) {
			counts[word] = 1000
		}
	}
	return train(counts, nil, starter.First.Size()-256-len(specials)), nil
}

// build makes the files of a vocabulary.
func build(v starter.Vocabulary) (map[string][]byte, error) {
	make := map[starter.Vocabulary]func() ([][2]string, error){starter.First: firstMerges, starter.Second: secondMerges}[v]
	merges, err := make()
	if err != nil {
		return nil, err
	}
	if got := 256 + len(merges) + len(specials); got != v.Size() {
		return nil, fmt.Errorf("vocabulary %d has %d tokens, must have %d", v, got, v.Size())
	}
	files := map[string][]byte{"chat_template.jinja": []byte(chatTemplate)}
	if files["tokenizer.json"], err = tokenizerJSON(merges); err != nil {
		return nil, err
	}
	files["tokenizer_config.json"], err = indented(object{
		{"add_prefix_space", false},
		{"bos_token", nil},
		{"clean_up_tokenization_spaces", false},
		{"eos_token", "<|im_end|>"},
		{"model_max_length", 32768},
		{"pad_token", "<|endoftext|>"},
		{"tokenizer_class", "PreTrainedTokenizerFast"},
		{"unk_token", nil},
	})
	if err != nil {
		return nil, err
	}
	files["generation_config.json"], err = indented(object{
		{"do_sample", true},
		{"eos_token_id", v.EndID()},
		{"pad_token_id", v.PadID()},
	})
	return files, err
}

// tokenizerJSON writes a Hugging Face tokenizer.json: the bytes in GPT-2's
// order, the merges, the special tokens.
func tokenizerJSON(merges [][2]string) ([]byte, error) {
	var vocab object
	add := func(token string) { vocab = append(vocab, field{token, len(vocab)}) }
	// Bytes in the order of their runes, as Hugging Face's trainers have them.
	for r := rune(0); len(vocab) < 256; r++ {
		for b := range 256 {
			if tokenizer.ByteLevel([]byte{byte(b)}) == string(r) {
				add(string(r))
			}
		}
	}
	pairs := make([][2]string, len(merges))
	for i, m := range merges {
		pairs[i] = [2]string{tokenizer.ByteLevel([]byte(m[0])), tokenizer.ByteLevel([]byte(m[1]))}
		add(pairs[i][0] + pairs[i][1])
	}
	added := make([]object, len(specials))
	for i, s := range specials {
		added[i] = object{
			{"id", len(vocab) + i}, {"content", s}, {"single_word", false}, {"lstrip", false},
			{"rstrip", false}, {"normalized", false}, {"special", true},
		}
	}
	byteLevel := func(useRegex bool) object {
		return object{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", useRegex}}
	}
	return indented(object{
		{"version", "1.0"},
		{"truncation", nil},
		{"padding", nil},
		{"added_tokens", added},
		{"normalizer", object{{"type", "NFC"}}},
		{"pre_tokenizer", object{{"type", "Sequence"}, {"pretokenizers", []object{
			{{"type", "Split"}, {"pattern", object{{"Regex", qwen2Pattern}}}, {"behavior", "Isolated"}, {"invert", false}},
			byteLevel(false),
		}}}},
		{"post_processor", byteLevel(false)},
		{"decoder", byteLevel(true)},
		{"model", object{
			{"type", "BPE"}, {"dropout", nil}, {"unk_token", nil}, {"continuing_subword_prefix", nil},
			{"end_of_word_suffix", nil}, {"fuse_unk", false}, {"byte_fallback", false}, {"ignore_merges", false},
			{"vocab", vocab}, {"merges", pairs},
		}},
	})
}
