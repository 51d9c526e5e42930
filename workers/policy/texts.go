// Package policy runs a model folder's tokenizer, scoring and generation for scripts. Each
// function reads one JSON object and returns another.
package policy

import (
	"fmt"
	"io"
	"maps"

	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// Examples of the functions' inputs.
const (
	TextsExample    = `{"texts":["Hello"]}`
	IDsExample      = `{"ids":[[1,2,3]]}`
	MessagesExample = `{"messages":[{"role":"user","content":"Hello"}],"add_generation_prompt":true}`
)

// IDs is {"ids":[[…]]}.
type IDs struct {
	IDs [][]int32 `json:"ids"`
	// Warnings are the tokenizer's. They are no part of the output.
	Warnings []string `json:"-"`
}

// Texts is {"texts":["…"]}.
type Texts struct {
	Texts []string `json:"texts"`
}

// Conversation is {"text":"…","ids":[…]}.
type Conversation struct {
	Text string  `json:"text"`
	IDs  []int32 `json:"ids"`
}

// Encode reads texts and returns their token ids.
func Encode(in io.Reader, folder string) (IDs, error) {
	var texts []string
	if err := readInput(in, TextsExample, inputField{name: "texts", read: readArray(&texts, readText)}); err != nil {
		return IDs{}, err
	}
	t, err := tokenizer.LoadFolder(folder)
	if err != nil {
		return IDs{}, err
	}
	out := IDs{IDs: make([][]int32, len(texts)), Warnings: t.Warnings()}
	for i, text := range texts {
		out.IDs[i] = append([]int32{}, t.Encode(text)...)
	}
	return out, nil
}

// Decode reads token ids and returns their texts.
func Decode(in io.Reader, folder string) (Texts, error) {
	var ids [][]int32
	if err := readInput(in, IDsExample, inputField{name: "ids", read: readArray(&ids, readIDs)}); err != nil {
		return Texts{}, err
	}
	t, err := tokenizer.LoadFolder(folder)
	if err != nil {
		return Texts{}, err
	}
	legal, err := t.Legal(t.VocabSize())
	if err != nil {
		return Texts{}, err
	}
	out := Texts{make([]string, len(ids))}
	for i, row := range ids {
		for j, id := range row {
			if int(id) >= len(legal) || !legal[id] {
				return Texts{}, fmt.Errorf("standard input: ids[%d][%d]: %d is no token of this tokenizer", i, j, id)
			}
		}
		out.Texts[i] = t.Decode(row)
	}
	return out, nil
}

// Template reads a conversation and applies the model's chat template.
func Template(in io.Reader, folder string) (Conversation, error) {
	var messages []tokenizer.Message
	var prompt bool
	variables := tokenizer.Variables{}
	err := readInput(in, MessagesExample,
		inputField{name: "messages", read: readArray(&messages, readMessage)},
		inputField{name: "add_generation_prompt", optional: true, read: readBool(&prompt)},
		inputField{name: "enable_thinking", optional: true, read: func(n strict.Node, path string) error {
			var thinking bool
			err := readBool(&thinking)(n, path)
			variables["enable_thinking"] = thinking
			return err
		}},
		inputField{name: "chat_template_kwargs", optional: true, read: func(n strict.Node, path string) error {
			more, err := chat.ReadVariables(n)
			maps.Copy(variables, more)
			return err
		}})
	if err != nil {
		return Conversation{}, err
	}
	t, err := tokenizer.LoadFolder(folder)
	if err == nil {
		t, err = t.With(variables)
	}
	if err != nil {
		return Conversation{}, err
	}
	text, ids, err := t.Template(messages, prompt)
	if err != nil {
		return Conversation{}, fmt.Errorf("apply the chat template of %s: %w", folder, err)
	}
	return Conversation{text, append([]int32{}, ids...)}, nil
}
