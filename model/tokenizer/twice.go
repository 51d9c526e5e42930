package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/infra/filekind"
)

// Files of older folders, which say again what tokenizer_config.json or tokenizer.json says.
const (
	specialTokensFile = "special_tokens_map.json"
	addedTokensFile   = "added_tokens.json"
)

// configFile is the part of a tokenizer_config.json that this package reads.
type configFile struct {
	ChatTemplate json.RawMessage `json:"chat_template"`
	BOS          json.RawMessage `json:"bos_token"`
	EOS          json.RawMessage `json:"eos_token"`
	Pad          json.RawMessage `json:"pad_token"`
	// Added are added tokens by their ids. If there are any, even none, the older files are not read.
	Added map[string]addedEntry `json:"added_tokens_decoder"`
}

// addedEntry is an added token as a file has it. What a file leaves out has a value of its own: see
// settled.
type addedEntry struct {
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized *bool  `json:"normalized"`
	Special    bool   `json:"special"`
}

// settled is the token with all its fields: normalized is by default what special is not.
func (a addedEntry) settled() addedEntry {
	if a.Normalized == nil {
		normalized := !a.Special
		a.Normalized = &normalized
	}
	return a
}

func (a addedEntry) equal(b addedEntry) bool {
	a, b = a.settled(), b.settled()
	same := *a.Normalized == *b.Normalized
	a.Normalized, b.Normalized = nil, nil
	return same && a == b
}

// readJSON reads a file of the folder, if it is there.
func readJSON(files map[string][]byte, name string, into any) error {
	content, ok := files[name]
	if !ok {
		return nil
	}
	err := filekind.JSON(content)
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrFiles, name, err)
	}
	return nil
}

// settle reads tokenizer_config.json and what older files say beside it, as transformers 5 does, and
// returns tokenizer.json with the added tokens that follow. The tokenizer is warned of each
// difference.
//
// With added_tokens_decoder in tokenizer_config.json, its tokens take the place of tokenizer.json's
// of the same content, and new ones are added at the end; special_tokens_map.json and
// added_tokens.json are not read. Without it, special_tokens_map.json takes the place of the special
// tokens in tokenizer_config.json, and the tokens of added_tokens.json that tokenizer.json lacks are
// added at the end. A special token that either names and that is no added token becomes one.
func (t *Tokenizer) settle(files map[string][]byte) (content []byte, config configFile, err error) {
	if err := readJSON(files, "tokenizer_config.json", &config); err != nil {
		return nil, config, err
	}
	content = files["tokenizer.json"]
	var own struct {
		Added []struct {
			ID int `json:"id"`
			addedEntry
		} `json:"added_tokens"`
		Model struct {
			Vocab map[string]int `json:"vocab"`
		} `json:"model"`
	}
	wanted := map[int]addedEntry{}
	for id, a := range config.Added {
		n, err := strconv.Atoi(id)
		if err != nil {
			return nil, config, fmt.Errorf("%w: tokenizer_config.json: added_tokens_decoder has %q, which is no id", ErrFiles, id)
		}
		wanted[n] = a
	}
	if config.Added == nil {
		if err := t.settleOlder(files, &config, wanted); err != nil {
			return nil, config, err
		}
	} else {
		t.warnUnread(files)
	}
	named, err := namedSpecials(files, config.Added == nil)
	if err != nil {
		return nil, config, err
	}
	if len(wanted)+len(named) == 0 {
		return content, config, nil
	}
	if json.Unmarshal(content, &own) != nil { // parse says why
		return content, config, nil
	}
	place, highest := map[string]int{}, -1
	var merged []map[string]any
	for i, a := range own.Added {
		place[a.Content] = i
		highest = max(highest, a.ID)
		merged = append(merged, a.entry(a.ID))
	}
	next := len(own.Model.Vocab)
	if highest >= next {
		next = highest + 1
	}
	// idOf is the id of a token that is added: the vocabulary's, or the next one.
	idOf := func(content string) int {
		if id, ok := own.Model.Vocab[content]; ok {
			return id
		}
		next++
		return next - 1
	}
	changed := false
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		a := wanted[id]
		i, there := place[a.Content]
		if there && (config.Added == nil || own.Added[i].equal(a)) {
			continue
		}
		from, at := addedTokensFile, id
		if config.Added != nil {
			from = "tokenizer_config.json"
		}
		changed = true
		if there {
			t.warnings = append(t.warnings, fmt.Sprintf("%s and tokenizer.json describe the added token %q in two ways: the former's "+
				"is used, as transformers does",
				from, a.Content))
			merged[i] = a.entry(own.Added[i].ID)
			continue
		}
		if at = idOf(a.Content); at != id {
			return nil, config, fmt.Errorf("%w: %s has the added token %q at id %d, which tokenizer.json lacks and transformers would "+
				"give the id %d: save the tokenizer again by transformers' save_pretrained",
				ErrFiles, from, a.Content, id, at)
		}
		t.warnings = append(t.warnings, fmt.Sprintf("%s has the added token %q, which tokenizer.json lacks: it is added, as transformers does",
			from, a.Content))
		merged, place[a.Content] = append(merged, a.entry(at)), len(merged)
	}
	for _, a := range named {
		if _, there := place[a.Content]; there {
			continue
		}
		_, inVocabulary := own.Model.Vocab[a.Content]
		if eos, err := tokenName(config.EOS); err == nil && !inVocabulary && a.Content == eos {
			return nil, config, fmt.Errorf("%w: eos_token %q is no token of tokenizer.json: no turn would end", ErrFiles, eos)
		}
		at := idOf(a.Content)
		changed = true
		t.warnings = append(t.warnings, fmt.Sprintf("the special token %q is no added token of tokenizer.json: it is added, as "+
			"transformers does", a.Content))
		merged, place[a.Content] = append(merged, a.entry(at)), len(merged)
	}
	if !changed {
		return content, config, nil
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(content, &whole); err != nil {
		return content, config, nil
	}
	if whole["added_tokens"], err = json.Marshal(merged); err == nil {
		content, err = json.Marshal(whole)
	}
	return content, config, err
}

// entry is the token as tokenizer.json has it.
func (a addedEntry) entry(id int) map[string]any {
	a = a.settled()
	return map[string]any{
		"id": id, "content": a.Content, "single_word": a.SingleWord, "lstrip": a.LStrip, "rstrip": a.RStrip,
		"normalized": *a.Normalized, "special": a.Special,
	}
}

// settleOlder reads the files that stand for added_tokens_decoder in older folders.
func (t *Tokenizer) settleOlder(files map[string][]byte, config *configFile, wanted map[int]addedEntry) error {
	var special map[string]json.RawMessage
	if err := readJSON(files, specialTokensFile, &special); err != nil {
		return err
	}
	own := config.special()
	for _, key := range slices.Sorted(maps.Keys(own)) {
		in := own[key]
		raw, ok := special[key]
		if !ok {
			continue
		}
		if differ(*in, raw) {
			t.warnings = append(t.warnings, fmt.Sprintf("%s and tokenizer_config.json name different tokens as %s: the former's is "+
				"used, as transformers does",
				specialTokensFile, key))
		}
		*in = raw
	}
	var ids map[string]int
	if err := readJSON(files, addedTokensFile, &ids); err != nil {
		return err
	}
	named := map[string]bool{}
	for _, in := range own {
		if name, err := tokenName(*in); err == nil {
			named[name] = true
		}
	}
	for content, id := range ids {
		wanted[id] = addedEntry{Content: content, Special: named[content]}
	}
	return nil
}

// warnUnread warns of special tokens in a file that is not read.
func (t *Tokenizer) warnUnread(files map[string][]byte) {
	var config configFile
	var special map[string]json.RawMessage
	if readJSON(files, "tokenizer_config.json", &config) != nil || readJSON(files, specialTokensFile, &special) != nil {
		return
	}
	own := config.special()
	for _, key := range slices.Sorted(maps.Keys(own)) {
		if raw, ok := special[key]; ok && differ(*own[key], raw) {
			t.warnings = append(t.warnings, fmt.Sprintf("%s and tokenizer_config.json name different tokens as %s: the latter's is "+
				"used, as transformers does",
				specialTokensFile, key))
		}
	}
}

// warnEOS warns of end tokens in config.json that are others than generation_config.json's.
func (t *Tokenizer) warnEOS(name string, ids []int32) {
	if len(ids) == 0 {
		return
	}
	a, b := slices.Sorted(slices.Values(t.eos)), slices.Sorted(slices.Values(ids))
	if !slices.Equal(slices.Compact(a), slices.Compact(b)) {
		t.warnings = append(t.warnings, fmt.Sprintf("generation_config.json and %s have different eos_token_id, %v and %v: the "+
			"former's end a turn, as in transformers",
			name, t.eos, ids))
	}
}

// missing returns an error if there is no tokenizer.json.
func missing(files map[string][]byte) error {
	if _, ok := files["tokenizer.json"]; ok {
		return nil
	}
	return fmt.Errorf("%w: tokenizer.json is missing: save the tokenizer by transformers' save_pretrained (tokenizer.model, or "+
		"vocab.json and merges.txt, are not read in its place)",
		ErrFiles)
}

// templateOf is the chat template of a folder, "" if there is none: chat_template.jinja, else the one
// in tokenizer_config.json.
func (t *Tokenizer) templateOf(files map[string][]byte, inConfig json.RawMessage) (string, error) {
	file, ok := files["chat_template.jinja"]
	if ok {
		if found := filekind.Mistaken(file, int64(len(file))); found != nil {
			return "", fmt.Errorf("chat_template.jinja: %w", found)
		}
	}
	source, err := templateSource(file, inConfig)
	if err != nil {
		return "", fmt.Errorf("tokenizer_config.json: chat_template: %w", err)
	}
	if !ok {
		return source, nil
	}
	// Jinja takes the last line's end away.
	if other, err := templateSource(nil, inConfig); err == nil && other != "" &&
		strings.TrimSuffix(other, "\n") != strings.TrimSuffix(source, "\n") {
		t.warnings = append(t.warnings, "chat_template.jinja and tokenizer_config.json have different chat templates: the former is used, as transformers does")
	}
	return source, nil
}

// special are the special tokens that a template may read.
func (c *configFile) special() map[string]*json.RawMessage {
	return map[string]*json.RawMessage{"bos_token": &c.BOS, "eos_token": &c.EOS, "pad_token": &c.Pad}
}

// differ reports whether two files name different tokens.
func differ(a, b json.RawMessage) bool {
	x, errX := tokenName(a)
	y, errY := tokenName(b)
	return errX == nil && errY == nil && x != y
}
