package tokenizer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxSmallFile bounds each file of a folder that is read whole.
const maxSmallFile = 64 << 20

// ReadFolder reads the files of a model folder that are there, but the
// weights. Nothing outside the folder is opened.
func ReadFolder(folder string) (map[string][]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open model folder: %w", err)
	}
	defer root.Close()
	files := make(map[string][]byte)
	for _, name := range FileNames {
		b, err := readSmallFile(root, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read model folder %s: %w", folder, err)
		}
		files[name] = b
	}
	return files, nil
}

func readSmallFile(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSmallFile+1))
	if err == nil && len(b) > maxSmallFile {
		err = fmt.Errorf("%s: more than %d bytes", name, maxSmallFile)
	}
	return b, err
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
