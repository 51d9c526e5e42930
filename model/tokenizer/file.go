package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// maxIDs bounds token ids, so that a file cannot demand unlimited memory.
const maxIDs = 1 << 22

// file is the part of a tokenizer.json that this package reads.
type file struct {
	AddedTokens []struct {
		ID         int    `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		LStrip     bool   `json:"lstrip"`
		RStrip     bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
	} `json:"added_tokens"`
	Normalizer    *normalizerJSON    `json:"normalizer"`
	PreTokenizer  *preTokenizerJSON  `json:"pre_tokenizer"`
	PostProcessor *postProcessorJSON `json:"post_processor"`
	Decoder       *struct {
		Type string `json:"type"`
	} `json:"decoder"`
	Model struct {
		Type         string         `json:"type"`
		Dropout      *float64       `json:"dropout"`
		Prefix       *string        `json:"continuing_subword_prefix"`
		Suffix       *string        `json:"end_of_word_suffix"`
		UnkToken     *string        `json:"unk_token"`
		FuseUnk      bool           `json:"fuse_unk"`
		ByteFallback bool           `json:"byte_fallback"`
		IgnoreMerges bool           `json:"ignore_merges"`
		Vocab        map[string]int `json:"vocab"`
		Merges       []mergeInFile  `json:"merges"`
	} `json:"model"`
}

type normalizerJSON struct {
	Type        string           `json:"type"`
	Normalizers []normalizerJSON `json:"normalizers"`
}

type preTokenizerJSON struct {
	Type           string             `json:"type"`
	PreTokenizers  []preTokenizerJSON `json:"pretokenizers"`
	AddPrefixSpace bool               `json:"add_prefix_space"`
	UseRegex       *bool              `json:"use_regex"`
	Behavior       string             `json:"behavior"`
	Invert         bool               `json:"invert"`
	Individual     bool               `json:"individual_digits"`
	Pattern        struct {
		Regex  string
		String string
	} `json:"pattern"`
}

type postProcessorJSON struct {
	Type       string              `json:"type"`
	Processors []postProcessorJSON `json:"processors"`
	Single     []struct {
		Sequence     *struct{}
		SpecialToken *struct {
			ID string `json:"id"`
		}
	} `json:"single"`
	SpecialTokens map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
}

// mergeInFile is ["a","b"], or "a b" in older files.
type mergeInFile [2]string

func (m *mergeInFile) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		left, right, ok := strings.Cut(s, " ")
		if !ok {
			return fmt.Errorf("merge %q is not two tokens", s)
		}
		*m = mergeInFile{left, right}
		return nil
	}
	var parts []string
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) != 2 {
		return fmt.Errorf("merge %q is not two tokens", parts)
	}
	*m = mergeInFile(parts)
	return nil
}

// parse fills the tokenizer from a tokenizer.json.
func (t *Tokenizer) parse(content []byte) error {
	var f file
	if err := json.Unmarshal(content, &f); err != nil {
		return err
	}
	var problems []error
	refuse := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	refuse(t.parseModel(&f))
	refuse(t.parseNormalizer(f.Normalizer))
	byteLevel := false
	refuse(t.parsePreTokenizer(f.PreTokenizer, &byteLevel))
	if !byteLevel && !names(f.PreTokenizer, "ByteLevel") {
		refuse(errors.New("pre-tokenizer is not ByteLevel"))
	}
	refuse(t.parsePostProcessor(f.PostProcessor))
	if f.Decoder == nil || f.Decoder.Type != "ByteLevel" {
		refuse(errors.New("decoder is not ByteLevel"))
	}
	return together(problems)
}

// together is one error that lists all problems of a file, so that a person meets them once.
func together(problems []error) error {
	switch len(problems) {
	case 0:
		return nil
	case 1:
		return problems[0]
	}
	var list strings.Builder
	for i, p := range problems {
		if i > 0 {
			list.WriteString("; ")
		}
		list.WriteString(p.Error())
	}
	return fmt.Errorf("%d problems: %s", len(problems), list.String())
}

// names reports whether a pre-tokenizer or a part of it has the type.
func names(p *preTokenizerJSON, typ string) bool {
	if p == nil {
		return false
	}
	if p.Type == typ {
		return true
	}
	for i := range p.PreTokenizers {
		if names(&p.PreTokenizers[i], typ) {
			return true
		}
	}
	return false
}

func (t *Tokenizer) parseModel(f *file) error {
	if f.Model.Type != "BPE" {
		return fmt.Errorf("model type %q is not supported: only byte-level BPE", f.Model.Type)
	}
	var problems []error
	if f.Model.Dropout != nil && *f.Model.Dropout != 0 {
		problems = append(problems, errors.New("BPE dropout is not deterministic"))
	}
	if f.Model.ByteFallback || f.Model.Prefix != nil && *f.Model.Prefix != "" || f.Model.Suffix != nil && *f.Model.Suffix != "" {
		problems = append(problems, errors.New("byte_fallback, continuing_subword_prefix and end_of_word_suffix are not supported"))
	}
	if err := t.parseVocab(f); err != nil {
		problems = append(problems, err)
	} else if err := t.parseMerges(f); err != nil {
		problems = append(problems, err)
	}
	return together(problems)
}

func (t *Tokenizer) parseVocab(f *file) error {
	top := -1
	check := func(token string, id int) error {
		if id < 0 || id >= maxIDs {
			return fmt.Errorf("token %q has id %d: not in [0, %d)", token, id, maxIDs)
		}
		top = max(top, id)
		return nil
	}
	tokens := make([]string, 0, len(f.Model.Vocab))
	for token, id := range f.Model.Vocab {
		if err := check(token, id); err != nil {
			return err
		}
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	for _, a := range f.AddedTokens {
		if err := check(a.Content, a.ID); err != nil {
			return err
		}
	}
	t.text = make([]string, top+1)
	t.known = make([]bool, top+1)
	for _, token := range tokens {
		id := f.Model.Vocab[token]
		if t.known[id] {
			return fmt.Errorf("tokens %q and another have the same id %d", token, id)
		}
		t.known[id], t.text[id] = true, tokenBytes(token)
	}
	seen := map[string]bool{}
	for _, a := range f.AddedTokens {
		if a.Content == "" || seen[a.Content] {
			return fmt.Errorf("added token %q is empty or given twice", a.Content)
		}
		seen[a.Content] = true
		if a.SingleWord || a.LStrip || a.RStrip {
			return fmt.Errorf("added token %q: single_word, lstrip and rstrip are not supported", a.Content)
		}
		if id, ok := f.Model.Vocab[a.Content]; ok && id != a.ID || !ok && t.known[a.ID] {
			return fmt.Errorf("added token %q has the id %d of another token", a.Content, a.ID)
		}
		t.known[a.ID], t.text[a.ID] = true, tokenBytes(a.Content)
		added := addedToken{content: a.Content, id: int32(a.ID)}
		if a.Normalized {
			t.addedNormalized = append(t.addedNormalized, added)
		} else {
			t.added = append(t.added, added)
		}
	}
	return nil
}

func (t *Tokenizer) parseMerges(f *file) error {
	t.bpe.unk, t.bpe.fuse = -1, f.Model.FuseUnk
	if f.Model.UnkToken != nil {
		id, ok := f.Model.Vocab[*f.Model.UnkToken]
		if !ok {
			return fmt.Errorf("unk_token %q is not in the vocabulary", *f.Model.UnkToken)
		}
		t.bpe.unk = int32(id)
	}
	var lacking []byte
	for b := range 256 {
		id, ok := f.Model.Vocab[string(byteRunes[b])]
		if !ok {
			id = -1
			if inUTF8(byte(b)) {
				lacking = append(lacking, byte(b))
			}
		}
		t.bpe.bytes[b] = int32(id)
	}
	if len(lacking) > 0 {
		t.warnings = append(t.warnings, lackingBytes(lacking, f.Model.UnkToken))
	}
	t.bpe.merges = make(map[pair]merge, len(f.Model.Merges))
	for rank, m := range f.Model.Merges {
		left, okLeft := f.Model.Vocab[m[0]]
		right, okRight := f.Model.Vocab[m[1]]
		both, okBoth := f.Model.Vocab[m[0]+m[1]]
		if !okLeft || !okRight || !okBoth {
			return fmt.Errorf("merge %d, %q and %q: a token is not in the vocabulary", rank, m[0], m[1])
		}
		t.bpe.merges[pair{int32(left), int32(right)}] = merge{rank: int32(rank), id: int32(both)}
	}
	if f.Model.IgnoreMerges {
		t.bpe.whole = make(map[string]int32, len(f.Model.Vocab))
		for token, id := range f.Model.Vocab {
			t.bpe.whole[tokenBytes(token)] = int32(id)
		}
	}
	return nil
}

// inUTF8 reports whether a byte occurs in UTF-8.
func inUTF8(b byte) bool { return b < 0xc0 || b > 0xc1 && b < 0xf5 }

// lackingBytes says what becomes of bytes that have no token.
func lackingBytes(lacking []byte, unk *string) string {
	becomes := "they vanish from a text"
	if unk != nil {
		becomes = fmt.Sprintf("%q stands for them", *unk)
	}
	var list strings.Builder
	for i := 0; i < len(lacking); i++ {
		first := lacking[i]
		for i+1 < len(lacking) && lacking[i+1] == lacking[i]+1 {
			i++
		}
		fmt.Fprintf(&list, " 0x%02x", first)
		if lacking[i] != first {
			fmt.Fprintf(&list, "-0x%02x", lacking[i])
		}
	}
	return fmt.Sprintf("the vocabulary has no token for some bytes, and %s, as in Hugging Face's tokenizers:%s", becomes, list.String())
}

func (t *Tokenizer) parseNormalizer(n *normalizerJSON) error {
	if n == nil {
		return nil
	}
	switch n.Type {
	case "NFC":
		t.normalForms = append(t.normalForms, norm.NFC)
	case "NFD":
		t.normalForms = append(t.normalForms, norm.NFD)
	case "NFKC":
		t.normalForms = append(t.normalForms, norm.NFKC)
	case "NFKD":
		t.normalForms = append(t.normalForms, norm.NFKD)
	case "Sequence":
		for i := range n.Normalizers {
			if err := t.parseNormalizer(&n.Normalizers[i]); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("normalizer %q is not supported", n.Type)
	}
	return nil
}

func (t *Tokenizer) parsePreTokenizer(p *preTokenizerJSON, byteLevel *bool) error {
	if p == nil {
		return nil
	}
	if *byteLevel {
		return errors.New("a pre-tokenizer after ByteLevel is not supported")
	}
	split := ""
	switch p.Type {
	case "Sequence":
		for i := range p.PreTokenizers {
			if err := t.parsePreTokenizer(&p.PreTokenizers[i], byteLevel); err != nil {
				return err
			}
		}
		return nil
	case "Split":
		if p.Behavior != "Isolated" || p.Invert || p.Pattern.Regex == "" {
			return errors.New("a Split pre-tokenizer other than by regex, Isolated and not inverted is not supported")
		}
		split = p.Pattern.Regex
	case "Digits": // char::is_numeric is the general category N
		if split = `\p{N}+`; p.Individual {
			split = `\p{N}`
		}
	case "ByteLevel":
		if p.AddPrefixSpace {
			return errors.New("add_prefix_space is not supported")
		}
		*byteLevel = true
		if p.UseRegex != nil && !*p.UseRegex {
			return nil
		}
		split = gpt2Pattern
	default:
		return fmt.Errorf("pre-tokenizer %q is not supported", p.Type)
	}
	compiled, err := compilePattern(split)
	if err != nil {
		return err
	}
	t.patterns = append(t.patterns, compiled)
	return nil
}

func (t *Tokenizer) parsePostProcessor(p *postProcessorJSON) error {
	if p == nil {
		return nil
	}
	switch p.Type {
	case "ByteLevel": // concerns offsets only
	case "Sequence":
		for i := range p.Processors {
			if err := t.parsePostProcessor(&p.Processors[i]); err != nil {
				return err
			}
		}
	case "TemplateProcessing":
		before := true
		for _, item := range p.Single {
			if item.Sequence != nil {
				before = false
				continue
			}
			if item.SpecialToken == nil {
				return errors.New("post-processor has an item that is neither sequence nor special token")
			}
			ids := p.SpecialTokens[item.SpecialToken.ID].IDs
			for _, id := range ids {
				if id < 0 || int(id) >= len(t.known) || !t.known[id] {
					return fmt.Errorf("post-processor names the unknown id %d", id)
				}
			}
			if before {
				t.before = append(t.before, ids...)
			} else {
				t.after = append(t.after, ids...)
			}
		}
	default:
		return fmt.Errorf("post-processor %q is not supported", p.Type)
	}
	return nil
}

// tokenName reads a token of a tokenizer_config.json: a string, an object with
// a "content", or null.
func tokenName(raw json.RawMessage) (string, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return "", nil
	}
	if raw[0] == '{' {
		var object struct {
			Content string `json:"content"`
		}
		err := json.Unmarshal(raw, &object)
		return object.Content, err
	}
	var name string
	err := json.Unmarshal(raw, &name)
	return name, err
}

// tokenIDs reads an eos_token_id: a number, a list of numbers, or null.
func tokenIDs(raw json.RawMessage) ([]int32, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil, nil
	}
	if raw[0] == '[' {
		var ids []int32
		err := json.Unmarshal(raw, &ids)
		return ids, err
	}
	var id int32
	err := json.Unmarshal(raw, &id)
	return []int32{id}, err
}

// templateSource returns the chat template: chat_template.jinja or else the chat_template
// of tokenizer_config.json, which is text or a list of named texts.
func templateSource(file []byte, inConfig json.RawMessage) (string, error) {
	if len(file) > 0 {
		return string(file), nil
	}
	if len(inConfig) == 0 || string(inConfig) == "null" {
		return "", nil
	}
	var source string
	if err := json.Unmarshal(inConfig, &source); err == nil {
		return source, nil
	}
	var named []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	if err := json.Unmarshal(inConfig, &named); err != nil {
		return "", err
	}
	for _, n := range named {
		if n.Name == "default" {
			return n.Template, nil
		}
	}
	return "", errors.New(`no template is named "default"`)
}
