package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Special tokens that a folder's files name become added tokens, as in transformers 5, also where
// tokenizer.json has them in its vocabulary alone, or not at all.

// specialKeys name the special tokens that every tokenizer may have, in the order in which
// transformers adds them.
var specialKeys = []string{"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}

// The keys with further special tokens: those of both files, or without them those of the first file
// that has the second key.
const (
	extraTokens      = "extra_special_tokens"
	additionalTokens = "additional_special_tokens"
)

// member is a key of a JSON object with its value.
type member struct {
	key   string
	value json.RawMessage
}

// members are those of an object, in the file's order.
func members(object []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	var out []member
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: fmt.Sprint(key)}
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// namedSpecials are the special tokens that tokenizer_config.json names, and special_tokens_map.json
// if it is read, in the order in which transformers adds them: those of every tokenizer, those of this
// model, whose keys end in _token, and further ones.
func namedSpecials(files map[string][]byte, older bool) ([]addedEntry, error) {
	config, err := membersOf(files, "tokenizer_config.json")
	if err != nil {
		return nil, err
	}
	var special []member
	if older {
		if special, err = membersOf(files, specialTokensFile); err != nil {
			return nil, err
		}
	}
	both := append(config[:len(config):len(config)], special...)
	values := map[string]json.RawMessage{} // of the last file that has the key
	for _, m := range both {
		values[m.key] = m.value
	}
	var named []member
	for _, key := range specialKeys {
		named = append(named, member{key, values[key]})
	}
	for _, m := range both {
		if strings.HasSuffix(m.key, "_token") && !slices.Contains(specialKeys, m.key) && isToken(m.value) {
			named = append(named, m)
		}
	}
	_, extra := values[extraTokens]
	further := both
	if extra {
		further = append(special[:len(special):len(special)], config...) // in this order
	}
	for _, m := range further {
		if m.key != extraTokens && (m.key != additionalTokens || extra) {
			continue
		}
		more, err := elements(m.value)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrFiles, m.key, err)
		}
		for _, value := range more {
			named = append(named, member{m.key, value})
		}
		if m.key == additionalTokens {
			break // the first file's stay
		}
	}
	var out []addedEntry
	for _, m := range named {
		var a addedEntry
		switch value := bytes.TrimSpace(m.value); {
		case !isToken(value):
			continue
		case value[0] == '"':
			err = json.Unmarshal(value, &a.Content)
		default:
			err = json.Unmarshal(value, &a)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrFiles, m.key, err)
		}
		if a.Special = true; a.Content != "" {
			out = append(out, a)
		}
	}
	return out, nil
}

// membersOf are those of a file, none if it is not there.
func membersOf(files map[string][]byte, name string) ([]member, error) {
	content, ok := files[name]
	if !ok {
		return nil, nil
	}
	out, err := members(content)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFiles, name, err)
	}
	return out, nil
}

// isToken reports whether a value can be a token: a text, or an object.
func isToken(value json.RawMessage) bool {
	value = bytes.TrimSpace(value)
	return len(value) > 0 && (value[0] == '"' || value[0] == '{')
}

// elements are the values of a list or of an object; none of anything else.
func elements(value json.RawMessage) ([]json.RawMessage, error) {
	value = bytes.TrimSpace(value)
	if len(value) == 0 {
		return nil, nil
	}
	var out []json.RawMessage
	switch value[0] {
	case '[':
		err := json.Unmarshal(value, &out)
		return out, err
	case '{':
		of, err := members(value)
		for _, m := range of {
			out = append(out, m.value)
		}
		return out, err
	}
	return nil, nil
}
