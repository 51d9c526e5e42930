// Package starter is the tokenizer and the warm-start transcripts of a policy made from
// nothing. The policy is a tiny Qwen2 model that knows the turn protocol and nothing
// about the task, so that a run shows learning on a laptop in a minute.
//
// It has two tokenizers, made by workers/lab/train_tokenizer: every byte, the words of
// the protocol and of environments, three special tokens. Its transcripts are random play
// in the right format.
package starter

//go:generate go run ../../workers/lab/train_tokenizer files second

import (
	"embed"
	"fmt"

	"github.com/reprise-rl/reprise/model/tokenizer"
)

// Vocabulary is one of the starter's tokenizers, by its number in a spec's
// policy.starter.tokenizer. 0, where a spec says nothing, is First.
type Vocabulary int

const (
	// First has the words of our protocol and of the grids, the bandit and countdown.
	First Vocabulary = 1
	// Second continues First: tags of other protocols, claims, tools, roles, WebShop's
	// pages with the words of a small catalogue, and common English. What is one token in
	// First is one in Second.
	Second Vocabulary = 2
)

// Facts of the first tokenizer, for its config.json.
const (
	// VocabSize is the number of tokens: 256 bytes, 509 merges, 3 special tokens.
	VocabSize = 768
	// PadID is <|endoftext|>: pad_token_id.
	PadID = VocabSize - 3
	// StartID is <|im_start|>.
	StartID = VocabSize - 2
	// EndID is <|im_end|>: eos_token_id, the end of a turn.
	EndID = VocabSize - 1
)

// secondSize is the number of tokens of Second.
const secondSize = 2048

//go:embed files second
var embedded embed.FS

var fileNames = [...]string{"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"}

// Size is the number of tokens. The last three are special: PadID, the start of a
// message, EndID.
func (v Vocabulary) Size() int {
	if v == Second {
		return secondSize
	}
	return VocabSize
}

// PadID is <|endoftext|>: pad_token_id.
func (v Vocabulary) PadID() int { return v.Size() - 3 }

// EndID is <|im_end|>: eos_token_id, the end of a turn.
func (v Vocabulary) EndID() int { return v.Size() - 1 }

// Files gives the starter's files of a model folder, all but config.json and
// the weights: tokenizer.json, tokenizer_config.json, chat_template.jinja and
// generation_config.json. The contents are the caller's own.
func (v Vocabulary) Files() map[string][]byte {
	folder := "files/"
	if v == Second {
		folder = "second/"
	}
	files := make(map[string][]byte, len(fileNames))
	for _, name := range fileNames {
		content, err := embedded.ReadFile(folder + name)
		if err != nil {
			panic(fmt.Sprintf("starter: embedded file %s: %v", name, err))
		}
		files[name] = content
	}
	return files
}

// Tokenizer loads the tokenizer.
func (v Vocabulary) Tokenizer() (*tokenizer.Tokenizer, error) {
	t, err := tokenizer.Load(v.Files())
	if err != nil {
		return nil, fmt.Errorf("load the starter's tokenizer: %w", err)
	}
	return t, nil
}

// Files gives First's files.
func Files() map[string][]byte { return First.Files() }

// Tokenizer loads First.
func Tokenizer() (*tokenizer.Tokenizer, error) { return First.Tokenizer() }
