package programcache

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const passed = "This device has passed.\nprogram: 1234\n"

// onMachine gives the machine a number of its start.
func onMachine(t *testing.T, name string, ok bool) {
	t.Helper()
	before := thisMachine
	t.Cleanup(func() { thisMachine = before })
	thisMachine = func() (string, bool) { return "started as: " + name + "\n", ok }
}

func recordFiles(t *testing.T, c *Cache) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.Dir(), "*"+recordSuffix))
	require.NoError(t, err)
	return files
}

// A record is of one statement on one machine since its start, and says what it vouches for.
func TestRecords(t *testing.T) {
	c := testCache(t)
	onMachine(t, "one", true)
	require.False(t, c.Recorded(passed))
	require.NoError(t, c.Put(keyOf("a"), []byte("code")))
	require.NoError(t, c.Record(passed))
	require.NoError(t, c.Record(passed))
	require.True(t, c.Recorded(passed))
	require.False(t, c.Recorded(passed+"program: 5678\n"))

	files := recordFiles(t, c)
	require.Len(t, files, 1)
	content, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Contains(t, string(content), passed)
	require.Contains(t, string(content), processor())
	require.Contains(t, string(content), "started as: one")
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	programs, _, err := c.Size()
	require.NoError(t, err)
	require.Equal(t, 1, programs, "a record is no program")

	onMachine(t, "another", true)
	require.False(t, c.Recorded(passed))
	onMachine(t, "one", true)
	require.True(t, c.Recorded(passed))
	onMachine(t, "one", false)
	require.False(t, c.Recorded(passed))
	require.NoError(t, c.Record("Another.\n"))
	require.Len(t, recordFiles(t, c), 1, "nothing is recorded where the machine is not known")
}

// A damaged record is a missing one, and is removed.
func TestDamagedRecords(t *testing.T) {
	onMachine(t, "one", true)
	for name, damage := range map[string]func([]byte) []byte{
		"a flipped bit": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"cut short":     func(b []byte) []byte { return b[:len(b)-1] },
		"longer":        func(b []byte) []byte { return append(b, '\n') },
		"empty":         func([]byte) []byte { return nil },
	} {
		c := testCache(t)
		require.NoError(t, c.Record(passed))
		file := recordFiles(t, c)[0]
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, damage(b), 0o600))
		require.False(t, c.Recorded(passed), name)
		require.NoFileExists(t, file, name)
		require.NoError(t, c.Record(passed))
		require.True(t, c.Recorded(passed), name)
	}
}

// A record that cannot be written is not there; those of before stay.
func TestRecordsWithoutSpace(t *testing.T) {
	onMachine(t, "one", true)
	c := testCache(t)
	require.NoError(t, c.Record(passed))
	c.write = noSpace
	require.Error(t, c.Record("Another.\n"))
	require.False(t, c.Recorded("Another.\n"))
	require.True(t, c.Recorded(passed))
	parts, err := filepath.Glob(filepath.Join(c.Dir(), "*"+aside))
	require.NoError(t, err)
	require.Empty(t, parts)
}

// Records make room as programs do: those that were used least recently go first.
func TestRecordsAreBounded(t *testing.T) {
	onMachine(t, "one", true)
	c := testCache(t)
	require.NoError(t, c.Record(passed))
	before := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(recordFiles(t, c)[0], before, before))
	c.limit = int64(len(keyOf("a").header(nil)) + 100)
	require.NoError(t, c.Put(keyOf("a"), []byte(strings.Repeat("a", 100))))
	require.False(t, c.Recorded(passed))
}

// The machine has a number of its start on Linux, and the cards that a process sees.
func TestThisMachine(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "3")
	first, ok := thisMachine()
	if !ok {
		t.Skip("this system has no number of its start")
	}
	t.Log(first)
	again, _ := thisMachine()
	require.Equal(t, first, again)
	t.Setenv("CUDA_VISIBLE_DEVICES", "4")
	other, _ := thisMachine()
	require.NotEqual(t, first, other)
	require.Contains(t, other, fmt.Sprintf("CUDA_VISIBLE_DEVICES=%q", "4"))
}
