package programcache

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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

// A key has the program, the device and the processor.
func TestKeys(t *testing.T) {
	require.Len(t, string(keyOf("a")), 64)
	require.Equal(t, keyOf("a"), keyOf("a"))
	require.NotEqual(t, keyOf("a"), keyOf("b"))
	require.NotEqual(t, keyOf("a"), KeyOf("a", []byte("another device")))
	t.Log(processor())
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
	old := time.Now().Add(-2 * abandoned)
	for i, name := range []string{"a", "b", "c"} {
		require.NoError(t, c.Put(keyOf(name), program))
		at := old.Add(time.Duration(i) * time.Minute)
		require.NoError(t, os.Chtimes(filepath.Join(dir, keyOf(name).file()), at, at))
	}
	_, err = c.Get(keyOf("a")) // now b is the oldest
	require.NoError(t, err)
	for name, at := range map[string]time.Time{"left.part": old, "written.part": time.Now()} {
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
