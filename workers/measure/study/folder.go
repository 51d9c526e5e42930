package study

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Folder is the folder of the records: FOLDER/runs/SETTING-sSEED.json.
type Folder string

func (f Folder) runs() string { return filepath.Join(string(f), "runs") }

func (f Folder) place(setting string, seed uint64) string {
	return filepath.Join(f.runs(), RunName(setting, seed)+".json")
}

// Find reads the record of a run; false if there is none.
func (f Folder) Find(setting string, seed uint64) (Record, bool, error) {
	place := f.place(setting, seed)
	text, err := os.ReadFile(place)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("find a record: %w", err)
	}
	r, err := DecodeRecord(text)
	if err != nil {
		return r, false, fmt.Errorf("%s: %w", place, err)
	}
	if r.Setting != setting || r.Seed != seed {
		return r, false, fmt.Errorf("%s is the record of %s: %w", place, r.Name(), ErrRecord)
	}
	return r, true, nil
}

// Save writes a record atomically.
func (f Folder) Save(r Record) error {
	b, err := r.Encode()
	if err != nil {
		return err
	}
	return f.Write(filepath.Join("runs", r.Name()+".json"), b)
}

// Write writes a file of the folder atomically.
func (f Folder) Write(name string, body []byte) error {
	place := filepath.Join(string(f), name)
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", place, err)
	}
	if err := os.WriteFile(place+".part", body, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", place, err)
	}
	if err := os.Rename(place+".part", place); err != nil {
		return fmt.Errorf("write %s: %w", place, err)
	}
	return nil
}

// Records reads all records, sorted by setting in the order of Settings and by seed. If
// they differ in size or fingerprint, so that they cannot be compared, the error is an
// ErrRecord.
func (f Folder) Records() ([]Record, error) {
	entries, err := os.ReadDir(f.runs())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the records: %w", err)
	}
	var all []Record
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		place := filepath.Join(f.runs(), e.Name())
		text, err := os.ReadFile(place)
		if err != nil {
			return nil, fmt.Errorf("read a record: %w", err)
		}
		r, err := DecodeRecord(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		if len(all) > 0 && (r.Size != all[0].Size || r.Fingerprint != all[0].Fingerprint) {
			return nil, fmt.Errorf("%s is of another size or device than %s: %w", place, all[0].Name(), ErrRecord)
		}
		all = append(all, r)
	}
	order := map[string]int{}
	for n, s := range Settings() {
		order[s.Name()] = n
	}
	slices.SortFunc(all, func(a, b Record) int {
		if a.Setting != b.Setting {
			return order[a.Setting] - order[b.Setting]
		}
		return int(a.Seed) - int(b.Seed)
	})
	return all, nil
}
