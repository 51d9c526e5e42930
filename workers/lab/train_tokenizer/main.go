// Command train_tokenizer makes the files of the starter policy's two tokenizers: small
// byte-level BPE tokenizers. The first is trained on the texts that the first environments
// show a policy, so that a prompt is short and each word of the protocol is one token. The
// second continues it with the list in words.go.
//
//	go run ./workers/lab/train_tokenizer FIRST SECOND
//
// The arguments are folders. It is deterministic, and a test compares what it makes with the
// files in the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/reprise-rl/reprise/envs/starter"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: train_tokenizer FIRST SECOND")
		os.Exit(2)
	}
	for i, v := range []starter.Vocabulary{starter.First, starter.Second} {
		if err := write(v, os.Args[i+1]); err != nil {
			fmt.Fprintln(os.Stderr, "train_tokenizer:", err)
			os.Exit(1)
		}
	}
}

func write(v starter.Vocabulary, folder string) error {
	files, err := build(v)
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
