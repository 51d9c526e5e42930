package programcache

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const passed = "This device has passed.\nprogram: 1234\n"

// onMachine makes a cache take this machine for another.
func onMachine(c *Cache, name string, ok bool) {
	c.here = func() (string, bool) { return "started as: " + name + "\n", ok }
}

// recordCache is a cache of a machine called one.
func recordCache(t *testing.T) *Cache {
	t.Helper()
	c := testCache(t)
	onMachine(c, "one", true)
	return c
}

func recordFiles(t *testing.T, c *Cache) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(c.Dir(), "*"+recordSuffix))
	require.NoError(t, err)
	return files
}

// A record is of one statement on one machine since its start, and says what it vouches for.
func TestRecords(t *testing.T) {
	c := recordCache(t)
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

	onMachine(c, "another", true)
	require.False(t, c.Recorded(passed))
	onMachine(c, "one", true)
	require.True(t, c.Recorded(passed))
	onMachine(c, "one", false)
	require.False(t, c.Recorded(passed))
	require.NoError(t, c.Record("Another.\n"))
	require.Len(t, recordFiles(t, c), 1, "nothing is recorded where the machine is not known")
}

// A damaged record is a missing one, and is removed.
func TestDamagedRecords(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"a flipped bit": func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
		"cut short":     func(b []byte) []byte { return b[:len(b)-1] },
		"longer":        func(b []byte) []byte { return append(b, '\n') },
		"empty":         func([]byte) []byte { return nil },
	} {
		c := recordCache(t)
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
	c := recordCache(t)
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
	c := recordCache(t)
	require.NoError(t, c.Record(passed))
	before := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(recordFiles(t, c)[0], before, before))
	c.limit = int64(len(keyOf("a").header(nil)) + 100)
	require.NoError(t, c.Put(keyOf("a"), []byte(strings.Repeat("a", 100))))
	require.False(t, c.Recorded(passed))

	// One that is asked for is used: an older program makes room instead.
	c.limit = 1 << 20
	require.NoError(t, c.Record(passed))
	file, program := recordFiles(t, c)[0], filepath.Join(c.Dir(), keyOf("a").file())
	require.NoError(t, os.Chtimes(file, before, before))
	require.NoError(t, os.Chtimes(program, before.Add(time.Minute), before.Add(time.Minute)))
	require.True(t, c.Recorded(passed))
	info, err := os.Stat(file)
	require.NoError(t, err)
	c.limit = info.Size() + int64(len(keyOf("b").header(nil))+100)
	require.NoError(t, c.Put(keyOf("b"), []byte(strings.Repeat("b", 100))))
	require.FileExists(t, file)
	require.NoFileExists(t, program)
}

// Whatever a record depends on, changed alone, gives another record.
func TestRecordsDependOnAll(t *testing.T) {
	seen := map[string]string{}
	for what, args := range map[string][3]string{
		"nothing else":      {"processor", "machine\n", "It has passed.\n"},
		"another processor": {"processor 2", "machine\n", "It has passed.\n"},
		"another machine":   {"processor", "machine 2\n", "It has passed.\n"},
		"another statement": {"processor", "machine\n", "It has passed 2.\n"},
	} {
		name, content := recordOn(args[0], args[1], args[2])
		require.Empty(t, seen[name], what)
		require.Empty(t, seen[string(content)], what)
		seen[name], seen[string(content)] = what, what
	}
	name, content := recordOn("processor", "machine\n", "It has passed.\n")
	require.Equal(t, "5ff4e5988943d629aeb6ce276ea0868fbf185fe562a52df334d6846949214208.record", name, "records of before stay valid")
	require.Equal(t, "reprise record 1\nIt has passed.\nprocessor: processor\nmachine\n", string(content))

	c := testCache(t)
	for _, here := range []string{"machine", "machine 2"} {
		c.here = func() (string, bool) { return here, true }
		name, content, ok := c.record(passed)
		require.True(t, ok)
		want, text := recordOn(processor(), here, passed)
		require.Equal(t, want, name)
		require.Equal(t, text, content)
	}
}

// Whatever tells a machine from another, changed alone, gives another machine.
func TestMachines(t *testing.T) {
	seen := map[string]bool{}
	for what, m := range map[string]machine{
		"a machine":         {boot: "1", cards: []string{"/dev/nvidia0", "/dev/nvidia1"}, chosen: []string{"A=1", "B=2"}},
		"started again":     {boot: "2", cards: []string{"/dev/nvidia0", "/dev/nvidia1"}, chosen: []string{"A=1", "B=2"}},
		"another card":      {boot: "1", cards: []string{"/dev/nvidia0", "/dev/nvidia2"}, chosen: []string{"A=1", "B=2"}},
		"a card less":       {boot: "1", cards: []string{"/dev/nvidia0"}, chosen: []string{"A=1", "B=2"}},
		"another choice":    {boot: "1", cards: []string{"/dev/nvidia0", "/dev/nvidia1"}, chosen: []string{"A=1", "B=3"}},
		"the choices apart": {boot: "1", cards: []string{"/dev/nvidia0", "/dev/nvidia1"}, chosen: []string{"A=2", "B=2"}},
	} {
		require.False(t, seen[m.text()], what)
		seen[m.text()] = true
	}
}

// The machine is what its files and the environment of this process say.
func TestThisMachine(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	names := []string{"CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"}
	for _, name := range names {
		t.Setenv(name, "3")
	}
	_, ok := machineAt(root)
	require.False(t, ok, "it has no number of its start")
	const boot = "proc/sys/kernel/random/boot_id"
	write(boot, "abc\n")
	write("dev/nvidia0", "")
	write("dev/nvidiactl", "")
	is := func() string {
		text, ok := machineAt(root)
		require.True(t, ok)
		return text
	}
	first := is()
	require.Equal(t, strings.ReplaceAll(`started as: abc
cards: ROOT/dev/nvidia0 CUDA_DEVICE_ORDER="3" CUDA_VISIBLE_DEVICES="3" NVIDIA_VISIBLE_DEVICES="3"
`, "ROOT", root), first)
	seen := map[string]bool{first: true}
	other := func(what string) {
		t.Helper()
		require.False(t, seen[is()], what)
		seen[is()] = true
	}
	for _, name := range names {
		t.Setenv(name, "4")
		other(name)
		t.Setenv(name, "3")
	}
	require.Equal(t, first, is())
	write("dev/nvidia1", "")
	other("another card")
	write(boot, "abd\n")
	other("started again")

	here, ok := thisMachine()
	if !ok {
		t.Skip("this system has no number of its start")
	}
	t.Log(here)
	name, _, ok := testCache(t).record(passed)
	require.True(t, ok)
	want, _ := recordOn(processor(), here, passed)
	require.Equal(t, want, name)
}
