// Package hf makes a Hugging Face model folder of a GGUF file: config.json,
// generation_config.json, tokenizer.json, tokenizer_config.json and model.safetensors.
//
// What is carried over gives the same numbers and the same tokens as the model had before it was
// made a GGUF, apart from the quantisation of its weights. Everything else is refused by its
// name: another architecture, a metadata key of the architecture or the tokenizer that this
// package does not know, a tensor that is missing, misshapen or unknown. The same file gives the
// same bytes.
package hf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/model/gguf"
)

// ErrModel is the kind of errors about a GGUF file that is well formed, and whose model cannot be
// carried over.
var ErrModel = errors.New("GGUF model not supported")

// Names of the folder's files.
const (
	ConfigFile          = "config.json"
	GenerationFile      = "generation_config.json"
	TokenizerFile       = "tokenizer.json"
	TokenizerConfigFile = "tokenizer_config.json"
	WeightsFile         = "model.safetensors"
)

// Model is a GGUF model whose metadata and tensors are all known and fit each other.
type Model struct {
	file    *gguf.File
	arch    *architecture
	shape   shape
	tokens  *vocabulary
	weights []weight // by their names in the folder
}

// New checks a file's model. One error reports all that is wrong or not supported.
func New(f *gguf.File) (*Model, error) {
	p := &problems{metadata: f.Metadata}
	m := &Model{file: f}
	if m.arch = p.architecture(); m.arch == nil {
		return nil, p.err()
	}
	p.refuseKeys(m.arch)
	m.shape = p.shape(m.arch)
	m.tokens = p.vocabulary()
	if len(p.list) > 0 { // the tensors' shapes follow from these
		return nil, p.err()
	}
	m.readTensors(p)
	if len(p.list) > 0 {
		return nil, p.err()
	}
	return m, nil
}

// problems collects what is wrong with a file's model.
type problems struct {
	metadata gguf.Metadata
	list     []string
}

const maxProblems = 20

func (p *problems) add(format string, args ...any) {
	p.list = append(p.list, fmt.Sprintf(format, args...))
}

// note adds an error unless it is nil.
func (p *problems) note(err error) {
	if err != nil {
		p.add("%v", err)
	}
}

func (p *problems) err() error {
	list := p.list
	if len(list) > maxProblems {
		list = append(list[:maxProblems:maxProblems], fmt.Sprintf("and %d more", len(list)-maxProblems))
	}
	return fmt.Errorf("%w: %s", ErrModel, strings.Join(list, "; "))
}
