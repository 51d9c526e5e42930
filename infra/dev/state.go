package dev

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// StateFile is the file in a stack's folder that says where its servers are.
const StateFile = "stack.json"

// State is what stack.json says; it is there as long as the stack runs.
type State struct {
	// PID is the process that runs the stack.
	PID int `json:"pid"`
	// Temporal is the server's address, host:port; UI the Web UI's URL.
	Temporal  string `json:"temporal"`
	Namespace string `json:"namespace"`
	UI        string `json:"ui"`
	// S3 is the S3 server's address, host:port, plain HTTP, path style.
	S3     string `json:"s3"`
	Region string `json:"region"`
	Bucket string `json:"bucket"`
	// Credentials is the path of the S3 keys' file.
	Credentials string `json:"credentials"`
}

// ErrNoState: no stack runs on the folder.
var ErrNoState = errors.New("no dev stack")

// LoadState reads the state of the stack that runs on dir ("" is DefaultDir in
// the working directory or the nearest folder above that has one). The error is
// an ErrNoState if there is none.
func LoadState(dir string) (State, error) {
	path := filepath.Join(dir, StateFile)
	if dir == "" {
		found, err := findState()
		if err != nil {
			return State{}, err
		}
		path = found
	}
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return State{}, fmt.Errorf("%w runs on %s", ErrNoState, filepath.Dir(path))
	}
	if err != nil {
		return State{}, fmt.Errorf("read the dev stack's state: %w", err)
	}
	var state State
	if err := json.Unmarshal(content, &state); err != nil {
		return State{}, fmt.Errorf("decode the dev stack's state %s: %w", path, err)
	}
	return state, nil
}

// Folder is the folder of the stack that runs on dir, as LoadState finds it. Where none runs, it is where one
// would start, and the error is an ErrNoState.
func Folder(dir string) (string, error) {
	path, err := findState()
	switch {
	case dir != "":
		path = filepath.Join(dir, StateFile)
		if _, err = os.Stat(path); errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w runs on %s", ErrNoState, dir)
		}
	case err != nil:
		path = filepath.Join(filepath.FromSlash(DefaultDir), StateFile)
	}
	return filepath.Dir(path), err
}

func findState() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the dev stack's state: %w", err)
	}
	for {
		path := filepath.Join(folder, filepath.FromSlash(DefaultDir), StateFile)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", fmt.Errorf("%w runs in this folder or above", ErrNoState)
		}
		folder = parent
	}
}

func (s State) save(dir string) error {
	var content bytes.Buffer
	encoder := json.NewEncoder(&content)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(s); err != nil {
		return fmt.Errorf("encode the dev stack's state: %w", err)
	}
	if err := writeFile(filepath.Join(dir, StateFile), content.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write the dev stack's state: %w", err)
	}
	return nil
}
