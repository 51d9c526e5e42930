package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/tokenizer"
	"github.com/reprise-rl/reprise/workers/lab/environments"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// repositoryTokenizer is a tiny Qwen tokenizer, relative to the repository's root, where
// `make bench` runs.
const repositoryTokenizer = "model/tokenizer/testdata/qwen2-tiny"

// measuredModels returns the starter and the model of a folder. If folder is empty, it is
// the repository's tokenizer, or none if that does not exist.
func measuredModels(s spec.Starter, folder string, say func(string)) ([]environments.Model, error) {
	files := starter.Vocabulary(s.Tokenizer).Files()
	files[model.ConfigFile] = device.StarterConfig(s).JSON()
	models := []environments.Model{{Name: "starter", Files: files}}
	optional := folder == ""
	if optional {
		folder = repositoryTokenizer
	}
	files, err := tokenizerFiles(folder)
	if optional && errors.Is(err, fs.ErrNotExist) {
		say("no " + folder + " here: the starter's tokenizer alone is measured (--tokenizer names another)")
		return models, nil
	}
	if err != nil {
		return nil, err
	}
	return append(models, environments.Model{Name: filepath.Base(folder), Files: files}), nil
}

// tokenizerFiles reads the tokenizer's files of a model folder. tokenizer.json and
// config.json are required.
func tokenizerFiles(folder string) (map[string][]byte, error) {
	files, err := tokenizer.ReadFolder(folder)
	for _, name := range []string{model.ConfigFile, "tokenizer.json"} {
		if err == nil && files[name] == nil {
			err = fmt.Errorf("%s: %w", name, fs.ErrNotExist)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer of %s: %w", folder, err)
	}
	return files, nil
}

// architecture is the configuration of a model folder. Its weights are not read: a program takes as long with drawn
// ones.
func architecture(folder string) (model.Config, error) {
	text, err := os.ReadFile(filepath.Join(folder, model.ConfigFile))
	if err != nil {
		return model.Config{}, fmt.Errorf("--model: %w", err)
	}
	c, err := model.ParseConfig(text)
	if err != nil {
		return model.Config{}, fmt.Errorf("--model %s: %w", folder, err)
	}
	return c, nil
}
