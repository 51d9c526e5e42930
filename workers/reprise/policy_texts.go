package main

import (
	"fmt"
	"io"

	"github.com/reprise-rl/reprise/model/tokenizer"
)

const (
	textsExample    = `{"texts":["Hello"]}`
	idsExample      = `{"ids":[[1,2,3]]}`
	messagesExample = `{"messages":[{"role":"user","content":"Hello"}],"add_generation_prompt":true}`
)

// rowsOfIDs is {"ids":[[…]]}.
type rowsOfIDs struct {
	IDs [][]int32 `json:"ids"`
}

// rowsOfTexts is {"texts":["…"]}.
type rowsOfTexts struct {
	Texts []string `json:"texts"`
}

// conversation is {"text":"…","ids":[…]}.
type conversation struct {
	Text string  `json:"text"`
	IDs  []int32 `json:"ids"`
}

// encode reads texts and gives their token ids.
func encode(in io.Reader, folder string) (rowsOfIDs, error) {
	var texts []string
	if err := readInput(in, textsExample, inputField{name: "texts", read: readArray(&texts, readText)}); err != nil {
		return rowsOfIDs{}, err
	}
	t, err := tokenizer.LoadFolder(folder)
	if err != nil {
		return rowsOfIDs{}, err
	}
	out := rowsOfIDs{make([][]int32, len(texts))}
	for i, text := range texts {
		out.IDs[i] = append([]int32{}, t.Encode(text)...)
	}
	return out, nil
}

// decode reads token ids and gives their texts.
func decode(in io.Reader, folder string) (rowsOfTexts, error) {
	var ids [][]int32
	if err := readInput(in, idsExample, inputField{name: "ids", read: readArray(&ids, readIDs)}); err != nil {
		return rowsOfTexts{}, err
	}
	t, err := tokenizer.LoadFolder(folder)
	if err != nil {
		return rowsOfTexts{}, err
	}
	legal, err := t.Legal(t.VocabSize())
	if err != nil {
		return rowsOfTexts{}, err
	}
	out := rowsOfTexts{make([]string, len(ids))}
	for i, row := range ids {
		for j, id := range row {
			if int(id) >= len(legal) || !legal[id] {
				return rowsOfTexts{}, fmt.Errorf("standard input: ids[%d][%d]: %d is no token of this tokenizer", i, j, id)
			}
		}
		out.Texts[i] = t.Decode(row)
	}
	return out, nil
}

// template reads a conversation and applies the model's chat template.
func template(in io.Reader, folder string) (conversation, error) {
	var messages []tokenizer.Message
	var prompt bool
	err := readInput(in, messagesExample,
		inputField{name: "messages", read: readArray(&messages, readMessage)},
		inputField{name: "add_generation_prompt", optional: true, read: readBool(&prompt)})
	if err != nil {
		return conversation{}, err
	}
	t, err := tokenizer.LoadFolder(folder)
	if err != nil {
		return conversation{}, err
	}
	text, ids, err := t.Template(messages, prompt)
	if err != nil {
		return conversation{}, fmt.Errorf("apply the chat template of %s: %w", folder, err)
	}
	return conversation{text, append([]int32{}, ids...)}, nil
}
