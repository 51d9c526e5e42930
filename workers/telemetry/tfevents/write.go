package tfevents

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts each branch into dir/bN/[FileName]. If an existing file is the beginning of
// the new one, the rest is appended, so that a TensorBoard that follows it sees what was
// added. Otherwise the file is replaced.
func Write(dir string, branches []Branch) error {
	for _, b := range branches {
		folder := filepath.Join(dir, fmt.Sprintf("b%d", b.Number))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
		if err := put(filepath.Join(folder, FileName), b.File); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
	}
	return nil
}

func put(path string, content []byte) error {
	have, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !bytes.HasPrefix(content, have) {
		// Not called "tfevents": nobody should read half of it.
		part := filepath.Join(filepath.Dir(path), ".part")
		if err := os.WriteFile(part, content, 0o644); err != nil {
			return err
		}
		return os.Rename(part, path)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(content[len(have):])
	return errors.Join(err, f.Close())
}
