// Package starter is the tokenizer and the warm-start transcripts of a policy made from
// nothing. The policy is a tiny Qwen2 model that knows the turn protocol and nothing
// about the task, so that a run shows learning on a laptop in a minute.
//
// Its tokenizer (768 tokens: every byte, the words of the protocol and of the
// shipped environments, three special tokens) was made by train_tokenizer, in this folder. Its
// transcripts are random play in the right format.
package starter

//go:generate go run ./train_tokenizer files

import (
	"embed"
	"fmt"

	"github.com/reprise-rl/reprise/model/tokenizer"
)

// Facts of the starter's tokenizer, for its config.json.
const (
	// VocabSize is the number of tokens: 256 bytes, 509 merges, 3 special tokens.
	VocabSize = 768
	// PadID is <|endoftext|>: pad_token_id.
	PadID = 765
	// StartID is <|im_start|>.
	StartID = 766
	// EndID is <|im_end|>: eos_token_id, the end of a turn.
	EndID = 767
)

//go:embed files
var embedded embed.FS

var fileNames = [...]string{"tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"}

// Files gives the starter's files of a model folder, all but config.json and
// the weights: tokenizer.json, tokenizer_config.json, chat_template.jinja and
// generation_config.json. The contents are the caller's own.
func Files() map[string][]byte {
	files := make(map[string][]byte, len(fileNames))
	for _, name := range fileNames {
		content, err := embedded.ReadFile("files/" + name)
		if err != nil {
			panic(fmt.Sprintf("starter: embedded file %s: %v", name, err))
		}
		files[name] = content
	}
	return files
}

// Tokenizer loads the starter's tokenizer.
func Tokenizer() (*tokenizer.Tokenizer, error) {
	t, err := tokenizer.Load(Files())
	if err != nil {
		return nil, fmt.Errorf("load the starter's tokenizer: %w", err)
	}
	return t, nil
}
