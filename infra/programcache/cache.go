// Package programcache keeps compiled programs in a folder of the user's, so that a machine
// compiles a program once. What is in the folder is native code: a folder that somebody else may write is refused.
//
// Workers may share programs through a bucket as well (see [Shared]). Whoever may write to a bucket may put anything there, so
// native code from a bucket is never loaded unsigned: an entry counts only if it has a valid Ed25519 signature by the key
// that the worker was given, over the entry's name and content. Any other is not there. Without a key no bucket is looked at.
//
// A file is named by its key and carries the key and the SHA-256 of its program. It is
// written aside and then renamed, so that processes may share a folder. A file that is
// damaged is removed. The folder is bounded: the files that were used least recently go
// first.
//
// Beside the programs are records of what this machine has found with them, such as a test
// that its device has passed (see [Cache.Record]).
package programcache

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/cpuid/v2"
)

// Limit is how many bytes a folder may have.
const Limit = 4 << 30

var (
	// ErrMissing: the folder does not have the program.
	ErrMissing = errors.New("program is not in the cache")
	// ErrDamaged: the file is not what was written under its key. It was removed.
	ErrDamaged = errors.New("program in the cache is damaged")
)

const (
	magic  = "reprise program 1\n"
	suffix = ".program"
	// aside ends the names of files that are being written.
	aside = ".part"
	// abandoned is the age of a file that its writer has left unfinished.
	abandoned = time.Hour
)

// Key addresses a compiled program: 64 hex digits.
type Key string

// KeyOf is the key of a program, by the SHA-256 of its lowered text, compiled on a device with
// a fingerprint by a processor such as this one.
func KeyOf(program string, fingerprint []byte) Key { return keyOn(processor(), program, fingerprint) }

// keyOn is KeyOf for a processor.
func keyOn(processor, program string, fingerprint []byte) Key {
	h := sha256.New()
	fmt.Fprintf(h, "%s%s\n%s\n%s\n", magic, program, fingerprint, processor)
	return Key(hex.EncodeToString(h.Sum(nil)))
}

// processor describes the real processor, whatever XLA's flags switch off.
func processor() string { return described(cpuid.CPU, runtime.NumCPU()) }

// described has a processor's features, on which it depends whether the code runs; its model, for
// which XLA tunes the code; and the cores of this process, among which XLA splits the work.
func described(c cpuid.CPUInfo, cores int) string {
	features := c.FeatureSet()
	slices.Sort(features)
	return fmt.Sprintf("%s %d %d, %d cores, %s", c.VendorString, c.Family, c.Model, cores, strings.Join(features, " "))
}

// Cache is an open folder of programs. Its methods may be called concurrently, and several
// processes may have the folder open.
type Cache struct {
	dir   string
	root  *os.Root
	limit int64
	write func(w io.Writer, b []byte) (int, error) // a test's writer fails
	// here tells this machine from others: see machine.
	here func() (string, bool)
}

// Open opens a folder and makes it where it is missing. It must have the mode 0700 and
// belong to the user; if not, the error is an ErrRefused.
func Open(dir string) (*Cache, error) { return open(dir, os.Getuid(), Limit) }

func open(dir string, user int, limit int64) (*Cache, error) {
	root, err := openFolder(dir, user)
	if err != nil {
		return nil, err
	}
	return &Cache{dir: dir, root: root, limit: limit, write: io.Writer.Write, here: thisMachine}, nil
}

// Close closes the folder.
func (c *Cache) Close() error { return c.root.Close() }

// Dir is the folder's path.
func (c *Cache) Dir() string { return c.dir }

func (k Key) file() string { return string(k) + suffix }

func (k Key) header(program []byte) []byte {
	sum := sha256.Sum256(program)
	return fmt.Appendf(nil, "%s%s\n%x\n", magic, k, sum)
}

// Get reads a program. Errors: ErrMissing; ErrDamaged, after which the file is gone; of
// reading.
func (c *Cache) Get(k Key) ([]byte, error) {
	content, err := c.root.ReadFile(k.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrMissing
	}
	if err != nil {
		return nil, fmt.Errorf("read program cache %s: %w", c.dir, err)
	}
	header := len(k.header(nil))
	if len(content) < header || !bytes.Equal(content[:header], k.header(content[header:])) {
		c.Remove(k)
		return nil, fmt.Errorf("%w: %s in %s", ErrDamaged, k.file(), c.dir)
	}
	c.touch(k.file())
	return content[header:], nil
}

// touch notes that a file is used. The time of use only decides which file is removed first.
func (c *Cache) touch(name string) {
	now := time.Now()
	_ = c.root.Chtimes(name, now, now)
}

// Remove removes a program, for instance one that cannot be loaded.
func (c *Cache) Remove(k Key) {
	// Somebody else may have removed it, and what stays is found again.
	_ = c.root.Remove(k.file())
}

// Put stores a program, and removes the least recently used ones beyond the limit. If it
// fails, the folder has the files that it had before, or fewer.
func (c *Cache) Put(k Key, program []byte) error {
	header := k.header(program)
	if int64(len(header)+len(program)) > c.limit {
		return nil // it would be removed at once
	}
	if err := c.put(k.file(), header, program); err != nil {
		return fmt.Errorf("write program cache %s: %w", c.dir, err)
	}
	if err := c.trim(); err != nil {
		return fmt.Errorf("trim program cache %s: %w", c.dir, err)
	}
	return nil
}

// put writes a file aside, in parts, and then gives it its name.
func (c *Cache) put(name string, parts ...[]byte) error {
	part := fmt.Sprintf("%s.%s%s", name, rand.Text(), aside)
	f, err := c.root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	for _, b := range parts {
		if err == nil {
			_, err = c.write(f, b)
		}
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = c.root.Rename(part, name)
	}
	if err != nil {
		_ = c.root.Remove(part) // the first error says more
	}
	return err
}

// Size counts the programs and their bytes.
func (c *Cache) Size() (programs int, bytes int64, err error) {
	files, err := c.files()
	for _, f := range files {
		if strings.HasSuffix(f.Name(), suffix) {
			programs++
			bytes += f.Size()
		}
	}
	return programs, bytes, err
}

// files are the programs and the records, those that were used last first. Files that a killed
// process has left unfinished are removed.
func (c *Cache) files() ([]fs.FileInfo, error) {
	entries, err := fs.ReadDir(c.root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var files []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process has removed it
		}
		if err != nil {
			return nil, err
		}
		switch {
		case strings.HasSuffix(e.Name(), suffix), strings.HasSuffix(e.Name(), recordSuffix):
			files = append(files, info)
		case strings.HasSuffix(e.Name(), aside) && time.Since(info.ModTime()) > abandoned:
			_ = c.root.Remove(e.Name())
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		if d := b.ModTime().Compare(a.ModTime()); d != 0 {
			return d
		}
		return strings.Compare(a.Name(), b.Name())
	})
	return files, nil
}

// trim removes what was used least recently until the folder is within its limit.
func (c *Cache) trim() error {
	files, err := c.files()
	if err != nil {
		return err
	}
	var sum int64
	for _, f := range files {
		if sum += f.Size(); sum <= c.limit {
			continue
		}
		if err := c.root.Remove(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
