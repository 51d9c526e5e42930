package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"

	"github.com/reprise-rl/reprise/model/hf/modeldir"
)

// otherTemplates is where transformers looks for chat templates beside chat_template.jinja.
const otherTemplates = "additional_chat_templates"

// Beside looks at what a model's folder has beside the files that Load reads. It returns what a person
// should know of the difference, and an error of kind ErrFiles if transformers would use what is not
// read here. files are those of the folder that Load reads.
func Beside(fsys fs.FS, files map[string][]byte) (warnings []string, err error) {
	if err := checkTemplates(fsys); err != nil {
		return nil, err
	}
	return vocabularyBeside(fsys, files), nil
}

// checkTemplates returns an error if the folder has chat templates that transformers takes before
// chat_template.jinja and tokenizer_config.json.
func checkTemplates(fsys fs.FS) error {
	entries, err := fs.ReadDir(fsys, otherTemplates)
	if err != nil { // there are none
		return nil
	}
	others := 0
	for _, e := range entries {
		if e.Name() == "default.jinja" {
			return fmt.Errorf("%w: transformers takes %s/default.jinja before every other chat template, and it is not read: move it "+
				"to chat_template.jinja",
				ErrFiles, otherTemplates)
		}
		if path.Ext(e.Name()) == ".jinja" {
			others++
		}
	}
	if _, err := fs.Stat(fsys, "chat_template.jinja"); others > 0 && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s has chat templates and none is the default, so that transformers uses none: add chat_template.jinja",
			ErrFiles, otherTemplates)
	}
	return nil
}

// vocabularyBeside compares vocab.json with tokenizer.json.
func vocabularyBeside(fsys fs.FS, files map[string][]byte) []string {
	b, err := modeldir.Read(fsys, "vocab.json", maxFile)
	if err != nil {
		return nil
	}
	var older map[string]int
	var whole struct {
		Model struct {
			Vocab map[string]int `json:"vocab"`
		} `json:"model"`
	}
	if json.Unmarshal(b, &older) != nil || json.Unmarshal(files["tokenizer.json"], &whole) != nil {
		return nil
	}
	if maps.Equal(older, whole.Model.Vocab) {
		return nil
	}
	return []string{"vocab.json and tokenizer.json have different vocabularies: the latter's is used, as transformers does"}
}
