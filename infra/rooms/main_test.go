package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDeleteRoom(t *testing.T) {
	w := work{dir: t.TempDir()}
	write := func(path, text string) {
		path = filepath.Join(w.dir, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write(rooms+"/one/one.go", "package one\n\nvar Entry = credit.Algorithm{\n\tName: \"first\", By: \"luck\",\n}\n")
	write(rooms+"/other/other.go", "package other\n\nvar Entry = credit.Algorithm{\n\tName: \"second\", By: \"luck\",\n}\n")
	const of = "\t\"x/model/methods/other\"\n)\n\nvar Algorithms = []credit.Algorithm{\n"
	write(table, "import (\n\t\"x/model/methods/one\"\n"+of+"\tone.Entry,\n\tother.Entry,\n\tone.EntryTwo,\n}\n")
	names, err := w.methodsOf("one")
	require.NoError(t, err)
	require.Equal(t, []method{{"credit.algorithm", "first"}}, names)
	require.NoError(t, w.deleteRoom("one"))
	text, err := os.ReadFile(filepath.Join(w.dir, table))
	require.NoError(t, err)
	require.Equal(t, "import (\n"+of+"\tother.Entry,\n}\n", string(text))
	names, err = w.methodsOf("*")
	require.NoError(t, err)
	require.Equal(t, []method{{"credit.algorithm", "second"}}, names)
	left, err := roomsOf(w.dir, "")
	require.NoError(t, err)
	require.Equal(t, []string{"other"}, left)
	_, err = roomsOf(w.dir, "one")
	require.EqualError(t, err, "no room one in model/methods: there are other")
}

func TestSaysWhatThereIs(t *testing.T) {
	const text = "spec.json: 2 problems:\n  credit.algorithm: found \"a\"; allowed: one of \"c\", \"b\" (did you mean \"b\"?)\n  environment.name: found nothing\n" +
		"  update.passes.order: found \"a\"; allowed: nothing: no method has it\n"
	of := func(names ...string) []method {
		all := []method{{"rollout.search", "s"}}
		for _, name := range names {
			all = append(all, method{"credit.algorithm", name})
		}
		return all
	}
	require.True(t, saysWhatThereIs(text, method{"credit.algorithm", "a"}, of("b", "c")))
	require.False(t, saysWhatThereIs(text, method{"credit.algorithm", "a"}, of("b", "c", "d")))
	require.False(t, saysWhatThereIs(text, method{"credit.algorithm", "a"}, of("b")))
	require.False(t, saysWhatThereIs(text, method{"credit.algorithm", "x"}, of("b", "c")))
	require.True(t, saysWhatThereIs(text, method{"update.passes.order", "a"}, of("b")))
	require.Equal(t, `{"update": {"passes": {"order": "a"}}}`, method{"update.passes.order", "a"}.spec())
}

func TestFailure(t *testing.T) {
	const text = "ok  \ta/b\t0.1s\n--- FAIL: TestOne (0.00s)\n    --- FAIL: TestOne/two (0.00s)\nFAIL\nFAIL\ta/c\t0.2s\nFAIL\ta/d [build failed]\nFAIL\n"
	require.Equal(t, "go test: a/c TestOne\n  a/d [build failed]", failure(text))
	require.Equal(t, "go test: a/d [build failed]", failure("FAIL\ta/d [build failed]\nFAIL\n"))
	require.Equal(t, "x.go:1:2: undefined: y", first("# a/b\nx.go:1:2: undefined: y\n"))
}
