package study

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// RecordsFile is the file of a study's records, one a line, sorted by setting in the order
// of Settings and by seed.
const RecordsFile = "records.jsonl"

// Folder is the folder of a study: RecordsFile and what is drawn from it.
type Folder string

// Records reads all records, sorted as in RecordsFile; the lines may be in any order. The
// error is an ErrRecord if a line is cut off or none, if a run has two records, or if
// records differ in size or fingerprint, so that they cannot be compared.
func (f Folder) Records() ([]Record, error) {
	place := filepath.Join(string(f), RecordsFile)
	text, err := os.ReadFile(place)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the records: %w", err)
	}
	var all []Record
	for line := range bytes.Lines(text) {
		at := fmt.Sprintf("%s, line %d", place, len(all)+1)
		if !bytes.HasSuffix(line, []byte("\n")) {
			return nil, fmt.Errorf("%s is cut off: remove it, and its run is made again: %w", at, ErrRecord)
		}
		r, err := DecodeRecord(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		if _, twice := find(all, r.Setting, r.Seed); twice {
			return nil, fmt.Errorf("%s is a second record of %s: remove one: %w", at, r.Name(), ErrRecord)
		}
		if len(all) > 0 && (r.Size != all[0].Size || r.Fingerprint != all[0].Fingerprint) {
			return nil, fmt.Errorf("%s is of another size or device than %s: use another --out: %w", at, all[0].Name(), ErrRecord)
		}
		all = append(all, r)
	}
	sort(all)
	return all, nil
}

// sort sorts records by setting in the order of Settings and by seed.
func sort(records []Record) {
	order := map[string]int{}
	for n, s := range Settings() {
		order[s.Name()] = n
	}
	slices.SortFunc(records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(order[a.Setting], order[b.Setting]), cmp.Compare(a.Seed, b.Seed))
	})
}

// find returns the record of a run; false if there is none.
func find(records []Record, setting string, seed uint64) (Record, bool) {
	for _, r := range records {
		if r.Setting == setting && r.Seed == seed {
			return r, true
		}
	}
	return Record{}, false
}

// Save adds a record, in place of one of the same run. Processes may save into one folder
// at the same time: each waits for the others and keeps what they saved.
func (f Folder) Save(r Record) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("save record %s: %w", r.Name(), err)
		}
	}()
	if err := os.MkdirAll(string(f), 0o755); err != nil {
		return err
	}
	lock, err := os.Open(string(f))
	if err != nil {
		return err
	}
	defer lock.Close() // which unlocks
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", f, err)
	}
	all, err := f.Records()
	if err != nil {
		return err
	}
	all = append(slices.DeleteFunc(all, func(other Record) bool { return other.Name() == r.Name() }), r)
	sort(all)
	var lines bytes.Buffer
	for _, r := range all {
		line, err := r.Encode()
		if err != nil {
			return err
		}
		lines.Write(line)
	}
	return f.Write(RecordsFile, lines.Bytes())
}

// Write writes a file of the folder atomically.
func (f Folder) Write(name string, body []byte) error {
	place := filepath.Join(string(f), name)
	if err := os.MkdirAll(string(f), 0o755); err != nil {
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
