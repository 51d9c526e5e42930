package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// file is the part of a tokenizer.json that this package reads.
type file struct {
	Version       *string            `json:"version"`
	Truncation    json.RawMessage    `json:"truncation"`
	Padding       json.RawMessage    `json:"padding"`
	AddedTokens   []addedJSON        `json:"added_tokens"`
	Normalizer    *normalizerJSON    `json:"normalizer"`
	PreTokenizer  *preTokenizerJSON  `json:"pre_tokenizer"`
	PostProcessor *postProcessorJSON `json:"post_processor"`
	Decoder       *decoderJSON       `json:"decoder"`
	Model         struct {
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

type addedJSON struct {
	ID         int    `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
}

// patternJSON is what a Split or a Replace looks for: a text or a regular expression.
type patternJSON struct {
	Regex  string
	String string
}

type normalizerJSON struct {
	Type        string           `json:"type"`
	Normalizers []normalizerJSON `json:"normalizers"`
	Prepend     string           `json:"prepend"`
	Pattern     patternJSON      `json:"pattern"`
	Content     string           `json:"content"`
	StripLeft   bool             `json:"strip_left"`
	StripRight  bool             `json:"strip_right"`
}

type preTokenizerJSON struct {
	Type           string             `json:"type"`
	PreTokenizers  []preTokenizerJSON `json:"pretokenizers"`
	AddPrefixSpace *bool              `json:"add_prefix_space"`
	UseRegex       *bool              `json:"use_regex"`
	Behavior       string             `json:"behavior"`
	Invert         bool               `json:"invert"`
	Individual     bool               `json:"individual_digits"`
	Pattern        patternJSON        `json:"pattern"`
	Replacement    string             `json:"replacement"`
	PrependScheme  string             `json:"prepend_scheme"`
	Split          *bool              `json:"split"`
}

type decoderJSON struct {
	Type           string        `json:"type"`
	Decoders       []decoderJSON `json:"decoders"`
	Pattern        patternJSON   `json:"pattern"`
	Content        string        `json:"content"`
	Start          int           `json:"start"`
	Stop           int           `json:"stop"`
	Replacement    string        `json:"replacement"`
	PrependScheme  string        `json:"prepend_scheme"`
	AddPrefixSpace *bool         `json:"add_prefix_space"`
}

type postProcessorJSON struct {
	Type       string              `json:"type"`
	Processors []postProcessorJSON `json:"processors"`
	Single     []struct {
		Sequence *struct {
			ID string `json:"id"`
		}
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

// parser reads a tokenizer.json into a Tokenizer, and collects what it cannot follow.
type parser struct {
	t        *Tokenizer
	problems []error
	// metaspaces counts the pre-tokenizers Metaspace so far.
	metaspaces int
	// bytes are what the decoders do to a single token, up to the first that puts tokens together:
	// fused. byteLevels counts the decoders ByteLevel.
	bytes      []func(token string) string
	fused      bool
	byteLevels int
	// growth is how many times longer the replacements so far make a text, at most.
	growth int
	// templates counts the post-processors TemplateProcessing.
	templates int
}

func (p *parser) refuse(format string, args ...any) {
	p.problems = append(p.problems, fmt.Errorf(format, args...))
}

// parse fills the tokenizer from a tokenizer.json.
func (t *Tokenizer) parse(content []byte) error {
	var f file
	if err := json.Unmarshal(content, &f); err != nil {
		return err
	}
	p := &parser{t: t, growth: 1}
	if f.Version != nil && *f.Version != "1.0" {
		p.refuse("version %q is not supported", *f.Version)
	}
	for _, part := range []struct {
		name    string
		content json.RawMessage
	}{{"truncation", f.Truncation}, {"padding", f.Padding}} {
		if len(part.content) > 0 && string(part.content) != "null" {
			t.warnings = append(t.warnings, part.name+" of tokenizer.json is not followed, as in transformers: texts stay whole")
		}
	}
	p.normalizer(f.Normalizer)
	p.preTokenizer(f.PreTokenizer)
	p.growth = 1
	p.decoder(f.Decoder)
	if f.Model.Type != "BPE" {
		p.refuse("model type %q is not supported: only BPE", f.Model.Type)
		return together(p.problems)
	}
	p.model(&f)
	p.postProcessor(f.PostProcessor)
	if f.Decoder != nil && f.Decoder.Type == "ByteLevel" {
		t.decoders = nil
	}
	return together(p.problems)
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

func (p *parser) postProcessor(j *postProcessorJSON) {
	if j == nil {
		return
	}
	t := p.t
	switch j.Type {
	case "ByteLevel": // concerns offsets only
	case "Sequence":
		for i := range j.Processors {
			p.postProcessor(&j.Processors[i])
		}
	case "TemplateProcessing":
		if p.templates++; p.templates > 1 {
			p.refuse("a second post-processor TemplateProcessing is not supported")
			return
		}
		sequences := 0
		for _, item := range j.Single {
			if item.Sequence != nil && item.SpecialToken == nil && (item.Sequence.ID == "A" || item.Sequence.ID == "") {
				sequences++
				continue
			}
			if item.SpecialToken == nil {
				p.refuse("post-processor TemplateProcessing has an item that is neither the sequence A nor a special token")
				return
			}
			special, ok := j.SpecialTokens[item.SpecialToken.ID]
			if !ok {
				p.refuse("post-processor TemplateProcessing names the token %q, which it does not have", item.SpecialToken.ID)
			}
			for _, id := range special.IDs {
				if id < 0 || int(id) >= len(t.known) || !t.known[id] {
					p.refuse("post-processor TemplateProcessing names the unknown id %d", id)
				}
			}
			if sequences == 0 {
				t.before = append(t.before, special.IDs...)
			} else {
				t.after = append(t.after, special.IDs...)
			}
		}
		if sequences != 1 {
			p.refuse("post-processor TemplateProcessing has the text %d times, not once", sequences)
		}
	default:
		p.refuse("post-processor %q is not supported", j.Type)
	}
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
