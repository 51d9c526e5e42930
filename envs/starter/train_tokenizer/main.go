// Command train_tokenizer makes the starter policy's tokenizer files: a small byte-level
// BPE tokenizer. Its merges are trained on the texts the policy meets, so that a prompt
// is short and each word of the protocol is one token.
//
//	go run ./envs/starter/train_tokenizer envs/starter/files
//
// It is deterministic, and a test compares what it makes with the files in the
// repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: train_tokenizer FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "train_tokenizer:", err)
		os.Exit(1)
	}
}

func write(folder string) error {
	files, err := build()
	if err != nil {
		return err
	}
	for _, name := range fileNames {
		if err := os.WriteFile(filepath.Join(folder, name), files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
