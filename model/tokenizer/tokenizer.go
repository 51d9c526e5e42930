// Package tokenizer converts text to the token ids of a model and back. It supports BPE tokenizers as
// described by tokenizer.json, of bytes (Qwen, Llama 3, SmolLM2) and of characters with bytes to fall
// back on (Llama 2, Mistral), and their chat templates.
//
// Token ids are the truth of a run (design law 5), so a text is encoded as Hugging Face's tokenizers
// 0.23 does, or Load returns an error that names every construct of the file which is not followed.
//
// Text from outside (an environment's observation, a question) cannot contain special
// tokens, and so cannot imitate the system: EncodePlain recognises none, and EncodeChat
// only those that the chat template itself wrote.
//
// A chat template is a program from outside. Package jinja evaluates it, with bounds on its
// steps, its memory and its nesting.
//
// A Tokenizer is read-only after Load and may be used by several goroutines.
package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/infra/filekind"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Kinds of errors.
var (
	// ErrFiles says that a model folder's tokenizer files are missing or unusable.
	ErrFiles = errors.New("unusable tokenizer files")
	// ErrVocabulary says that the tokenizer has ids that the model lacks.
	ErrVocabulary = errors.New("tokenizer does not match the model's vocabulary")
	// ErrNoTemplate says that the model folder has no chat template.
	ErrNoTemplate = errors.New("no chat template: the folder has no chat_template.jinja, and its tokenizer_config.json has no chat_template, " +
		"as base models are often published. Take the instruct model, or add the chat_template.jinja of one with the same special tokens")
	// ErrTemplate says that a chat template failed, ran too long, wrote too much or needed
	// too much memory.
	ErrTemplate = errors.New("chat template failed")
	// ErrRewritten says that a chat template changes the contents of messages, so
	// that they cannot be distinguished from the template's own text.
	ErrRewritten = errors.New("chat template rewrites the messages")
)

// Message is one message of a conversation.
type Message = chat.Message

// FileNames are the files of a model folder that Load reads; all but
// tokenizer.json may be absent.
var FileNames = []string{
	"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json",
	"config.json", specialTokensFile, addedTokensFile,
}

// maxFile bounds each file: the largest tokenizer.json in use is about 20 MiB.
const maxFile = 64 << 20

// Tokenizer is a model's tokenizer and chat template.
type Tokenizer struct {
	bpe             bpe
	names           []string // by id: the token as tokenizer.json writes it
	text            []string // by id: the bytes of the token
	known           []bool   // by id: whether the token exists
	added           []addedToken
	addedNormalized []addedToken // looked for after normalization
	normalizers     []normalizer
	steps           []step
	byteLevel       bool      // whether the model's characters are bytes
	decoders        []decoder // nil for ByteLevel alone
	before, after   []int32   // added around a text by the post-processor
	warnings        []string

	template *template // nil without a chat template
	eos      []int32
	turns    turns
	answers  *answers // nil without a chat template
}

// Load reads the tokenizer of a model folder from the contents of its files, by
// name (see FileNames). Errors are of kind ErrFiles.
func Load(files map[string][]byte) (*Tokenizer, error) {
	t := &Tokenizer{turns: turns{closing: -1}}
	for _, name := range FileNames {
		if len(files[name]) > maxFile {
			return nil, fmt.Errorf("%w: %s has %d bytes, at most %d are read", ErrFiles, name, len(files[name]), maxFile)
		}
	}
	if err := missing(files); err != nil {
		return nil, err
	}
	content, config, err := t.settle(files)
	if err != nil {
		return nil, err
	}
	if err := filekind.JSON(content); err != nil {
		return nil, fmt.Errorf("%w: tokenizer.json: %w", ErrFiles, err)
	}
	if err := t.parse(content); err != nil {
		return nil, fmt.Errorf("%w: tokenizer.json: %w", ErrFiles, err)
	}
	names := map[string]string{}
	for key, raw := range map[string]json.RawMessage{"bos_token": config.BOS, "eos_token": config.EOS, "pad_token": config.Pad} {
		name, err := tokenName(raw)
		if err != nil {
			return nil, fmt.Errorf("%w: tokenizer_config.json: %s: %w", ErrFiles, key, err)
		}
		if name != "" {
			names[key] = name
		}
	}
	if err := t.loadEOS(files, names["eos_token"]); err != nil {
		return nil, err
	}
	source, err := t.templateOf(files, config.ChatTemplate)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFiles, err)
	}
	if source == "" {
		return t, nil
	}
	if t.template, err = newTemplate(source, names); err != nil {
		return nil, fmt.Errorf("%w: chat template: %w", ErrFiles, err)
	}
	t.learn()
	return t, nil
}

// loadEOS reads the ids that end a generation from the same place as transformers:
// generation_config.json, else config.json, else the tokenizer's eos_token.
func (t *Tokenizer) loadEOS(files map[string][]byte, eosToken string) error {
	for _, name := range []string{"generation_config.json", "config.json"} {
		var config struct {
			EOS json.RawMessage `json:"eos_token_id"`
		}
		if err := readJSON(files, name, &config); err != nil {
			return err
		}
		ids, err := tokenIDs(config.EOS)
		if err != nil {
			return fmt.Errorf("%w: %s: eos_token_id: %w", ErrFiles, name, err)
		}
		if t.eos != nil {
			t.warnEOS(name, ids)
			return nil
		}
		for _, id := range ids {
			if id < 0 || int(id) >= len(t.known) || !t.known[id] {
				return fmt.Errorf("%w: %s: eos_token_id %d is not a token of tokenizer.json", ErrFiles, name, id)
			}
		}
		if len(ids) > 0 {
			t.eos = ids
		}
	}
	if t.eos != nil || eosToken == "" {
		return nil
	}
	id, ok := t.addedID(eosToken)
	if !ok {
		return fmt.Errorf("%w: tokenizer_config.json: eos_token %q is not an added token of tokenizer.json", ErrFiles, eosToken)
	}
	t.eos = []int32{id}
	return nil
}

func (t *Tokenizer) addedID(content string) (int32, bool) {
	for _, list := range [][]addedToken{t.added, t.addedNormalized} {
		for _, a := range list {
			if a.content == content {
				return a.id, true
			}
		}
	}
	return 0, false
}

// Warnings says what a person should know of the tokenizer's files although they are followed
// exactly, such as bytes that no token stands for. None is usual.
func (t *Tokenizer) Warnings() []string { return slices.Clone(t.warnings) }

// VocabSize is the smallest vocabulary that a model needs for this tokenizer: its highest
// id plus one.
func (t *Tokenizer) VocabSize() int { return len(t.known) }

// Legal reports for each id of a model with vocab ids whether the tokenizer has it:
// [vocab]. Other ids must never be sampled. It returns an error of kind ErrVocabulary if
// the tokenizer has ids that the model lacks.
func (t *Tokenizer) Legal(vocab int) ([]bool, error) {
	if len(t.known) > vocab {
		last := len(t.known) - 1
		return nil, fmt.Errorf("%w: its ids go up to %d (%q), the model has %d rows in its embedding",
			ErrVocabulary, last, t.Decode([]int32{int32(last)}), vocab)
	}
	legal := make([]bool, vocab)
	copy(legal, t.known)
	return legal, nil
}

// EOS returns the ids at which transformers' generate stops: eos_token_id of
// generation_config.json, else of config.json, else the tokenizer's eos_token.
func (t *Tokenizer) EOS() []int32 { return slices.Clone(t.eos) }

// EndOfTurn returns the ids that end a sampled turn: first the token with which the chat
// template closes an assistant's message, if it has one, then EOS.
func (t *Tokenizer) EndOfTurn() []int32 {
	var ids []int32
	if t.turns.closing >= 0 {
		ids = append(ids, t.turns.closing)
	}
	for _, id := range t.eos {
		if id != t.turns.closing {
			ids = append(ids, id)
		}
	}
	return ids
}
