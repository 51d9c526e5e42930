package programcache

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/cpuid/v2"
	"github.com/stretchr/testify/require"
)

func testCache(t *testing.T) *Cache {
	t.Helper()
	c, err := Open(filepath.Join(t.TempDir(), "a", "programs"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func keyOf(name string) Key { return KeyOf(name, []byte("device")) }

func TestPutAndGet(t *testing.T) {
	c := testCache(t)
	_, err := c.Get(keyOf("a"))
	require.ErrorIs(t, err, ErrMissing)
	require.NoError(t, c.Put(keyOf("a"), []byte("code")))
	require.NoError(t, c.Put(keyOf("empty"), nil))
	got, err := c.Get(keyOf("a"))
	require.NoError(t, err)
	require.Equal(t, "code", string(got))
	got, err = c.Get(keyOf("empty"))
	require.NoError(t, err)
	require.Empty(t, got)
	programs, bytes, err := c.Size()
	require.NoError(t, err)
	require.Equal(t, 2, programs)
	require.EqualValues(t, len("code")+2*len(keyOf("a").header(nil)), bytes)
	info, err := os.Stat(filepath.Join(c.Dir(), keyOf("a").file()))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	c.Remove(keyOf("a"))
	c.Remove(keyOf("a"))
	_, err = c.Get(keyOf("a"))
	require.ErrorIs(t, err, ErrMissing)
}

// Whatever a program's code depends on, changed alone, gives another key.
func TestKeys(t *testing.T) {
	seen := map[Key]string{}
	for what, args := range map[string][3]string{
		"nothing else":      {"processor", "program", "device"},
		"another processor": {"processor 2", "program", "device"},
		"another program":   {"processor", "program 2", "device"},
		"another device":    {"processor", "program", "device 2"},
		"exchanged":         {"processor", "device", "program"},
	} {
		k := keyOn(args[0], args[1], []byte(args[2]))
		require.Regexp(t, "^[0-9a-f]{64}$", string(k))
		require.Empty(t, seen[k], what)
		seen[k] = what
	}
	require.Equal(t, Key("feb123bb0cedd1284f59a23805289d81832a97c1882c3765674b24c9080b8af0"), keyOn("processor", "program", []byte("device")), "programs of before stay valid")
	require.Equal(t, keyOn(processor(), "a", []byte("b")), KeyOf("a", []byte("b")), "the processor is this one")
}

// Whatever XLA generates code by, changed alone, gives another processor.
func TestProcessors(t *testing.T) {
	var base cpuid.CPUInfo
	base.VendorString, base.Family, base.Model = "GenuineIntel", 6, 85
	base.Enable(cpuid.AVX2, cpuid.FMA3)
	require.Equal(t, "GenuineIntel 6 85, 4 cores, AVX2 FMA3", described(base, 4))
	seen := map[string]string{described(base, 4): "nothing else"}
	for what, change := range map[string]func(c *cpuid.CPUInfo, cores *int){
		"another vendor": func(c *cpuid.CPUInfo, _ *int) { c.VendorString = "AuthenticAMD" },
		"another family": func(c *cpuid.CPUInfo, _ *int) { c.Family = 25 },
		"another model":  func(c *cpuid.CPUInfo, _ *int) { c.Model = 143 },
		"more cores":     func(_ *cpuid.CPUInfo, cores *int) { *cores = 8 },
		"a feature more": func(c *cpuid.CPUInfo, _ *int) { c.Enable(cpuid.AVX512F) },
		"a feature less": func(c *cpuid.CPUInfo, _ *int) { c.Disable(cpuid.AVX2) },
	} {
		c, cores := base, 4
		change(&c, &cores)
		is := described(c, cores)
		require.Empty(t, seen[is], what)
		seen[is] = what
	}
	t.Log(processor())
	require.Equal(t, described(cpuid.CPU, runtime.NumCPU()), processor())
	require.Greater(t, len(cpuid.CPU.FeatureSet()), 3)
}

func TestDamagedFilesAreRemoved(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"a flipped byte of the program": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"a flipped byte of the header":  func(b []byte) []byte { b[0] ^= 1; return b },
		"cut short":                     func(b []byte) []byte { return b[:len(b)-1] },
		"longer":                        func(b []byte) []byte { return append(b, 0) },
		"half a header":                 func(b []byte) []byte { return b[:20] },
		"empty":                         func([]byte) []byte { return nil },
		"another key's": func([]byte) []byte {
			return append(keyOf("b").header([]byte("code")), "code"...)
		},
	} {
		c := testCache(t)
		require.NoError(t, c.Put(keyOf("a"), []byte("code")))
		path := filepath.Join(c.Dir(), keyOf("a").file())
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, damage(b), 0o600))
		_, err = c.Get(keyOf("a"))
		require.ErrorIs(t, err, ErrDamaged, name)
		require.ErrorContains(t, err, string(keyOf("a")), name)
		require.NoFileExists(t, path, name)
		_, err = c.Get(keyOf("a"))
		require.ErrorIs(t, err, ErrMissing, name)
	}
}

// A folder that somebody else may write is refused, and so is one of somebody else's.
func TestFoldersOfOthersAreRefused(t *testing.T) {
	for _, mode := range []os.FileMode{0o755, 0o777, 0o770, 0o701} {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, mode))
		_, err := Open(dir)
		require.ErrorIs(t, err, ErrRefused, mode)
		require.ErrorContains(t, err, dir)
		require.ErrorContains(t, err, fmt.Sprintf("%#o", mode))
		require.ErrorContains(t, err, "--program-cache")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	_, err := open(dir, os.Getuid()+1, Limit)
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, fmt.Sprintf("belongs to user %d, not to user %d", os.Getuid(), os.Getuid()+1))
	c, err := Open(dir)
	require.NoError(t, err)
	require.EqualValues(t, 4294967296, c.limit, "4 GiB, as the docs say")
	require.NoError(t, c.Close())
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Open(file)
	require.ErrorContains(t, err, file)
}

// A link in the folder does not lead out of it.
func TestLinksAreNotFollowed(t *testing.T) {
	c := testCache(t)
	outside := filepath.Join(t.TempDir(), "outside")
	content := append(keyOf("a").header([]byte("code")), "code"...)
	require.NoError(t, os.WriteFile(outside, content, 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(c.Dir(), keyOf("a").file())))
	_, err := c.Get(keyOf("a"))
	require.Error(t, err)
	require.NoError(t, c.Put(keyOf("a"), []byte("own")))
	got, err := c.Get(keyOf("a"))
	require.NoError(t, err)
	require.Equal(t, "own", string(got))
	kept, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, content, kept)
}

// noSpace writes half of what it is given: the disk is full then.
func noSpace(w io.Writer, b []byte) (int, error) {
	n, _ := w.Write(b[:len(b)/2])
	return n, syscall.ENOSPC
}

// Without space nothing is stored, and what is stored stays.
func TestNoSpace(t *testing.T) {
	c := testCache(t)
	require.NoError(t, c.Put(keyOf("a"), []byte("code")))
	c.write = noSpace
	for _, k := range []Key{keyOf("a"), keyOf("b")} {
		err := c.Put(k, []byte("more"))
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, c.Dir())
	}
	got, err := c.Get(keyOf("a"))
	require.NoError(t, err)
	require.Equal(t, "code", string(got))
	_, err = c.Get(keyOf("b"))
	require.ErrorIs(t, err, ErrMissing)
	entries, err := os.ReadDir(c.Dir())
	require.NoError(t, err)
	require.Len(t, entries, 1, "what was half written is removed")
}

// Several caches of one folder store, read and damage the same programs: whoever gets
// a program gets a whole one.
func TestSeveralAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "programs")
	var wait sync.WaitGroup
	failed := make(chan error, 8)
	for worker := range 8 {
		c, err := Open(dir)
		require.NoError(t, err)
		defer c.Close()
		wait.Go(func() {
			for i := range 50 {
				k := keyOf(fmt.Sprint(i % 5))
				want := strings.Repeat(fmt.Sprint(i%5), 10_000)
				if got, err := c.Get(k); err == nil && string(got) != want || err != nil && !errors.Is(err, ErrMissing) && !errors.Is(err, ErrDamaged) {
					failed <- fmt.Errorf("worker %d, program %d: %d bytes, %w", worker, i%5, len(got), err)
					return
				}
				if err := c.Put(k, []byte(want)); err != nil {
					failed <- fmt.Errorf("worker %d: %w", worker, err)
					return
				}
				if worker == 0 {
					_ = os.Truncate(filepath.Join(dir, k.file()), 100)
				}
			}
		})
	}
	wait.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 5)
}

// What was used least recently makes room, and what killed processes have left unfinished is
// removed.
func TestTheOldestMakeRoom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "programs")
	size := int64(len(keyOf("a").header(nil)) + 100)
	c, err := open(dir, os.Getuid(), 3*size)
	require.NoError(t, err)
	defer c.Close()
	program := make([]byte, 100)
	old := time.Now().Add(-2 * time.Hour)
	for i, name := range []string{"a", "b", "c"} {
		require.NoError(t, c.Put(keyOf(name), program))
		at := old.Add(time.Duration(i) * time.Minute)
		require.NoError(t, os.Chtimes(filepath.Join(dir, keyOf(name).file()), at, at))
	}
	_, err = c.Get(keyOf("a")) // now b is the oldest
	require.NoError(t, err)
	for name, at := range map[string]time.Time{"left.part": time.Now().Add(-61 * time.Minute), "written.part": time.Now().Add(-59 * time.Minute)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), program, 0o600))
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), at, at))
	}
	require.NoError(t, c.Put(keyOf("d"), program))
	for name, there := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		_, err := c.Get(keyOf(name))
		require.Equal(t, there, err == nil, "%s: %v", name, err)
	}
	require.NoFileExists(t, filepath.Join(dir, "left.part"))
	require.FileExists(t, filepath.Join(dir, "written.part"))
	require.NoError(t, c.Put(keyOf("large"), make([]byte, 4*size)), "there is no room for it")
	programs, _, err := c.Size()
	require.NoError(t, err)
	require.Equal(t, 3, programs)
}

func TestFolder(t *testing.T) {
	t.Setenv("HOME", "/home/somebody")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv(Env, "")
	for named, want := range map[string]string{"": "", None: "", "/a/b": "/a/b"} {
		got, err := Folder(named)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := Folder("relative")
	require.NoError(t, err)
	require.True(t, filepath.IsAbs(got))
	got, err = Folder(Default)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(got, "/home/somebody/") && strings.HasSuffix(got, "/reprise/programs"), got)
	t.Setenv(Env, "/from/env")
	got, err = Folder(Default)
	require.NoError(t, err)
	require.Equal(t, "/from/env", got)
	got, err = Folder("/a/b")
	require.NoError(t, err)
	require.Equal(t, "/a/b", got, "a flag is above the environment")
	t.Setenv(Env, None)
	got, err = Folder(Default)
	require.NoError(t, err)
	require.Empty(t, got)
	t.Setenv(Env, "")
	t.Setenv("HOME", "")
	_, err = Folder(Default)
	require.ErrorContains(t, err, "cache folder")
}
