// Package plugin finds, checks and installs the PJRT plugin: the library that compiles
// and runs XLA's programs.
//
// The plugin is not part of the repository. It comes as a Python wheel pinned by its
// SHA-256, and the library inside is pinned by its own, checked before it is loaded. It
// is at .reprise/plugin/pjrt_c_api_cpu_plugin.so, put there by `make plugin`, or beside the
// program, as in a release.
// REPRISE_PJRT_PLUGIN names another library instead (a CUDA plugin, a build of one's
// own); that one is taken at its owner's word.
package plugin

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Env is the environment variable that names a plugin file to use instead of
// the pinned one.
const Env = "REPRISE_PJRT_PLUGIN"

// Folder is where Install puts the plugin, relative to the repository's root.
const Folder = ".reprise/plugin"

var (
	// ErrMissing: no searched place has a plugin.
	ErrMissing = errors.New("no PJRT plugin")
	// ErrAltered: the file is not the pinned or installed one.
	ErrAltered = errors.New("PJRT plugin altered")
)

// Path returns the absolute path of the plugin to load: the file that
// REPRISE_PJRT_PLUGIN names; else the one beside the program, as in a release; else
// .reprise/plugin/pjrt_c_api_cpu_plugin.so in dir or the nearest folder above it; else the
// same in the program's folder and above. An empty dir is the working directory. It checks that the file is
// there, not what is in it (Verify does). The error is an ErrMissing.
func Path(dir string) (string, error) {
	if named := os.Getenv(Env); named != "" {
		if pin, ok := cudaPin(named); ok {
			return pathOfCUDA(pin, dir)
		}
		path, err := filepath.Abs(named)
		if err != nil {
			return "", fmt.Errorf("resolve %s=%s: %w", Env, named, err)
		}
		if err := regular(path); err != nil {
			return "", fmt.Errorf("%w: %s=%s: %w", ErrMissing, Env, named, err)
		}
		return path, nil
	}
	path, err := below(dir, FileName)
	if err != nil || path != "" {
		return path, err
	}
	return "", fmt.Errorf("%w: neither %s/%s in this folder or above, nor beside the program: "+
		"run `make plugin` in the source, or install the release again, or set %s to a plugin's path",
		ErrMissing, Folder, FileName, Env)
}

// below returns the path of the file of that name: beside the program; else below [Folder] in dir or the nearest folder
// above it; else below it in the program's folder or above; "" if it is in none.
func below(dir, name string) (string, error) {
	starts := []string{dir}
	if program, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(program); err == nil {
			program = real
		}
		beside := filepath.Join(filepath.Dir(program), name)
		if regular(beside) == nil {
			return beside, nil
		}
		starts = append(starts, filepath.Dir(program))
	}
	for _, start := range starts {
		folder, err := filepath.Abs(start)
		if err != nil {
			return "", fmt.Errorf("resolve folder %q: %w", start, err)
		}
		for {
			path := filepath.Join(folder, filepath.FromSlash(Folder), filepath.FromSlash(name))
			if regular(path) == nil {
				return path, nil
			}
			parent := filepath.Dir(folder)
			if parent == folder {
				break
			}
			folder = parent
		}
	}
	return "", nil
}

// Verify hashes the plugin file and returns its SHA-256 (lower-case hex); it takes about
// 0.2 s. A file that REPRISE_PJRT_PLUGIN names may have any digest. Any other file must
// be a pinned plugin, or the plugin that go-xla's installer fetched, unchanged since. The
// error is an ErrAltered, an ErrMissing, or of reading. Nothing is cached: the check is
// of the bytes that are there now.
func Verify(path string) (string, error) {
	digest, err := Hash(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("%w: %w: run `make plugin`", ErrMissing, err)
		}
		return "", err
	}
	if own, err := sameFile(path, os.Getenv(Env)); err != nil {
		return "", err
	} else if own {
		return digest, nil
	}
	for _, pin := range Pins {
		if digest == pin.Digest {
			return digest, nil
		}
	}
	record, err := readRecord(path)
	switch {
	case err != nil:
		return "", err
	case record != nil && record.Digest == digest:
		return digest, nil
	case record != nil:
		return "", fmt.Errorf("%w: %s has SHA-256 %s, but was installed with %s (%s): remove it and run `make plugin`",
			ErrAltered, path, digest, record.Digest, record.Source)
	}
	return "", fmt.Errorf("%w: %s has SHA-256 %s, which is none of the pinned plugins' (the default's is %s): remove it and run `make plugin`, or set %s to use it all the same",
		ErrAltered, path, digest, Pins[0].Digest, Env)
}

// Find returns the absolute path of the plugin to load and its SHA-256: of the one that
// is named, which may have any, else of the one of [Path], as [Verify] checks it. A name of a
// pin for CUDA, such as cuda13, is that plugin where `make plugin` has put it, or that of a
// Python (see [FromPython]). An empty dir is the working directory. Errors: as theirs.
func Find(named, dir string) (path, digest string, err error) {
	if _, ok := cudaPin(os.Getenv(Env)); ok && named == "" {
		named = os.Getenv(Env)
	}
	if named == "" {
		if path, err = Path(dir); err != nil {
			return "", "", err
		}
		digest, err = Verify(path)
		return path, digest, err
	}
	if pin, ok := cudaPin(named); ok {
		path, err = pathOfCUDA(pin, dir)
	} else if path, err = filepath.Abs(named); err != nil {
		err = fmt.Errorf("resolve plugin %s: %w", named, err)
	}
	if err != nil {
		return "", "", err
	}
	digest, err = Hash(path)
	return path, digest, err
}

// record is a file beside a library without a pin. It has the digest of the library when
// it was fetched: enough to find damage, not malice.
type record struct {
	Digest string `json:"digest"`
	Source string `json:"source"`
}

func recordPath(path string) string { return path + ".installed.json" }

// readRecord returns nil if there is no record.
func readRecord(path string) (*record, error) {
	content, err := os.ReadFile(recordPath(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the plugin's record: %w", err)
	}
	var r record
	if err := json.Unmarshal(content, &r); err != nil {
		return nil, fmt.Errorf("%w: decode the record %s: %w", ErrAltered, recordPath(path), err)
	}
	return &r, nil
}

func regular(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	return nil
}

func sameFile(path, other string) (bool, error) {
	if other == "" {
		return false, nil
	}
	a, err := os.Stat(path)
	if err != nil {
		return false, fmt.Errorf("look at the plugin: %w", err)
	}
	b, err := os.Stat(other)
	if err != nil {
		return false, nil // the variable names nothing that is there
	}
	return os.SameFile(a, b), nil
}

// Hash gives the SHA-256 (lower-case hex) of a plugin file that its owner answers for.
func Hash(path string) (string, error) {
	if err := regular(path); err != nil {
		return "", fmt.Errorf("look at the plugin: %w", err)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("open the plugin: %w", err)
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("read the plugin %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
