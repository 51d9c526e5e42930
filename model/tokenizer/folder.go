package tokenizer

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/reprise-rl/reprise/model/hf/modeldir"
)

// ReadFolder reads the files of a model folder that are there, but the weights. Nothing outside of
// the model's folder is opened; see modeldir.Open.
func ReadFolder(folder string) (map[string][]byte, error) {
	dir, err := modeldir.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("open model folder: %w", err)
	}
	defer dir.Close()
	files, err := ReadFS(dir)
	if err != nil {
		return nil, fmt.Errorf("read model folder %s: %w", folder, err)
	}
	return files, nil
}

// ReadFS is ReadFolder of an open folder.
func ReadFS(dir fs.FS) (map[string][]byte, error) {
	files := make(map[string][]byte)
	for _, name := range FileNames {
		b, err := modeldir.Read(dir, name, maxFile)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		files[name] = b
	}
	return files, nil
}

// LoadFolder is Load of a model folder.
func LoadFolder(folder string) (*Tokenizer, error) {
	files, err := ReadFolder(folder)
	if err != nil {
		return nil, err
	}
	t, err := Load(files)
	if err != nil {
		return nil, fmt.Errorf("load the tokenizer of %s: %w", folder, err)
	}
	return t, nil
}
