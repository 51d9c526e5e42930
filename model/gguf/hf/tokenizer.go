package hf

import "strconv"

// preTokenizer is what the hub's tokenizer.json has for a value of tokenizer.ggml.pre. A GGUF holds
// nothing of it but this name.
type preTokenizer struct {
	normalizer any
	steps      list
	// post is the post-processor without the token that begins a text; decoder turns tokens into
	// text.
	post         any
	decoder      object
	ignoreMerges bool
	// addBOS says that a text begins with bos unless the metadata say otherwise.
	addBOS bool
}

// byteLevel is a ByteLevel step, decoder or post-processor.
func byteLevel(addPrefixSpace, trimOffsets, useRegex bool) object {
	return object{{"type", "ByteLevel"}, {"add_prefix_space", addPrefixSpace}, {"trim_offsets", trimOffsets}, {"use_regex", useRegex}}
}

// split is a Split step by a pattern.
func split(pattern string) object {
	return object{{"type", "Split"}, {"pattern", object{{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}}
}

// The patterns of Qwen2 and Llama 3 differ in how many digits stand together.
const (
	words        = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|`
	marks        = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	qwen2Pattern = words + `\p{N}` + marks
	llama3       = words + `\p{N}{1,3}` + marks
)

// preTokenizers are the values of tokenizer.ggml.pre that are carried over.
var preTokenizers = map[string]*preTokenizer{
	"smollm": {
		steps:   list{object{{"type", "Digits"}, {"individual_digits", true}}, byteLevel(false, true, true)},
		decoder: byteLevel(true, true, true),
	},
	"qwen2": {
		normalizer: object{{"type", "NFC"}},
		steps:      list{split(qwen2Pattern), byteLevel(false, false, false)},
		post:       byteLevel(false, false, false),
		decoder:    byteLevel(false, false, false),
	},
	"llama-bpe": {
		steps:        list{split(llama3), byteLevel(false, true, false)},
		post:         byteLevel(true, false, true),
		decoder:      byteLevel(true, true, true),
		ignoreMerges: true,
		addBOS:       true,
	},
}

// tokenizer is tokenizer.json.
func (m *Model) tokenizer() object {
	v := m.tokens
	var vocab object
	for id, token := range v.tokens {
		if !v.unused(id) {
			vocab = vocab.with(token, id)
		}
	}
	merges := make(list, len(v.merges))
	for i, pair := range v.merges {
		merges[i] = list{pair[0], pair[1]}
	}
	var added list
	for _, id := range v.added() {
		added = append(added, append(object{{"id", id}}, v.addedToken(id)...))
	}
	return object{
		{"version", "1.0"}, {"truncation", nil}, {"padding", nil}, {"added_tokens", added}, {"normalizer", v.pre.normalizer},
		{"pre_tokenizer", object{{"type", "Sequence"}, {"pretokenizers", v.pre.steps}}},
		{"post_processor", v.postProcessor()}, {"decoder", v.pre.decoder},
		{"model", object{
			{"type", "BPE"}, {"dropout", nil}, {"unk_token", nil}, {"continuing_subword_prefix", nil}, {"end_of_word_suffix", nil},
			{"fuse_unk", false}, {"byte_fallback", false}, {"ignore_merges", v.pre.ignoreMerges}, {"vocab", vocab}, {"merges", merges},
		}},
	}
}

// added are the ids of tokens that are found in a text before it is split.
func (v *vocabulary) added() (ids []int) {
	for id, t := range v.types {
		if t == tokenControl || t == tokenUserDefined {
			ids = append(ids, id)
		}
	}
	return ids
}

// addedToken describes an added token. Control tokens are special: they are no text.
func (v *vocabulary) addedToken(id int) object {
	return object{
		{"content", v.tokens[id]}, {"single_word", false}, {"lstrip", false}, {"rstrip", false}, {"normalized", false},
		{"special", v.types[id] == tokenControl},
	}
}

// postProcessor puts bos before a text if that is wanted.
func (v *vocabulary) postProcessor() any {
	if !v.addBOS {
		return v.pre.post
	}
	bos := v.tokens[v.bos]
	special := func(kind int) object { return object{{"SpecialToken", object{{"id", bos}, {"type_id", kind}}}} }
	sequence := func(id string, kind int) object { return object{{"Sequence", object{{"id", id}, {"type_id", kind}}}} }
	template := object{
		{"type", "TemplateProcessing"},
		{"single", list{special(0), sequence("A", 0)}},
		{"pair", list{special(0), sequence("A", 0), special(1), sequence("B", 1)}},
		{"special_tokens", object{{bos, object{{"id", bos}, {"ids", list{v.bos}}, {"tokens", list{bos}}}}}},
	}
	if v.pre.post == nil {
		return template
	}
	return object{{"type", "Sequence"}, {"processors", list{v.pre.post, template}}}
}

// tokenizerConfig is tokenizer_config.json.
func (m *Model) tokenizerConfig() object {
	v := m.tokens
	o := object{
		{"tokenizer_class", "PreTrainedTokenizerFast"}, {"model_max_length", m.shape.context}, {"clean_up_tokenization_spaces", false},
		{"add_prefix_space", false},
	}
	for _, of := range []struct {
		key string
		id  int
	}{{"bos_token", v.bos}, {"eos_token", v.eos}, {"pad_token", v.pad}, {"unk_token", v.unknown}} {
		if of.id >= 0 {
			o = o.with(of.key, v.tokens[of.id])
		}
	}
	if v.template != "" {
		o = o.with("chat_template", v.template)
	}
	var added object
	for _, id := range v.added() {
		added = added.with(strconv.Itoa(id), v.addedToken(id))
	}
	return o.with("added_tokens_decoder", added)
}
