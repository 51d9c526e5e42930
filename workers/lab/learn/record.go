package learn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/workers/stack"
)

// recordsFolder is the folder of the records in Options.Dir.
const recordsFolder = "records"

// record is the file of a run that has ended.
type record struct {
	// Spec is the SHA-256 of the run's spec.
	Spec string `json:"spec"`
	Outcome
}

// ErrOtherSpec says that a record was made by another spec.
var ErrOtherSpec = errors.New("the record was made by another spec")

// recorded returns the record of a run, or trains and records it. Nothing is recorded if dir is
// empty.
func recorded(ctx context.Context, dir string, on stack.Servers, s Setting, seed int, progress io.Writer) (Outcome, error) {
	if dir == "" {
		return train(ctx, on, s, seed, progress)
	}
	text, err := specOf(s, seed)
	if err != nil {
		return Outcome{}, err
	}
	file := filepath.Join(dir, recordsFolder, runOf(s, seed)+".json")
	out, found, err := readRecord(file, text)
	if err != nil {
		return Outcome{}, err
	}
	if found {
		out.Broken = s.broken(out)
		fmt.Fprintf(progress, "%-22s recorded in %s\n", out.Run, file)
		return out, nil
	}
	if out, err = train(ctx, on, s, seed, progress); err != nil {
		return out, err
	}
	return out, writeRecord(file, text, out)
}

// readRecord reads the record of a run with this spec; found is false where there is none. An error
// of kind ErrOtherSpec says that its spec was another.
func readRecord(file string, text []byte) (out Outcome, found bool, err error) {
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return Outcome{}, false, nil
	}
	var r record
	if err == nil {
		err = json.Unmarshal(content, &r)
	}
	if err == nil && r.Spec != canon.Digest(text) {
		err = fmt.Errorf("%w: delete it, or name another --dir", ErrOtherSpec)
	}
	if err != nil {
		return Outcome{}, false, fmt.Errorf("read record %s: %w", file, err)
	}
	return r.Outcome, true, nil
}

// writeRecord writes the record of a run, whole or not at all.
func writeRecord(file string, text []byte, out Outcome) error {
	content, err := json.MarshalIndent(record{Spec: canon.Digest(text), Outcome: out}, "", "  ")
	if err != nil {
		return fmt.Errorf("record of run %s: %w", out.Run, err)
	}
	return writeFile(file, append(content, '\n'))
}

// writeFile writes a file and its folder, the file whole or not at all.
func writeFile(file string, content []byte) error {
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if err == nil {
		err = renameio.WriteFile(file, content, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
