package environments

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const somePython = `{"version":"3.12.1","packages":{"gymnasium":"1.4.0"},"generation":{"frozenlake 4x4":16000},"steps":{"frozenlake 4x4":2e5}}`

func TestReadPython(t *testing.T) {
	want := pythonRates{
		Version: "3.12.1", Packages: map[string]string{"gymnasium": "1.4.0"},
		Generation: map[string]float64{lakes: 16_000}, Steps: map[string]float64{lakes: 200_000},
	}
	for _, text := range []string{somePython, somePython + "\n", "Gym has been unmaintained\n\n" + somePython + "\r\n"} {
		got, err := readPython([]byte(text))
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, got, "%q", text)
	}
	require.Equal(t, 16_000.0, want.rate("generation", lakes))
	require.Equal(t, 200_000.0, want.rate("steps", lakes))
	require.Zero(t, want.rate("steps", roomsSimple))
	require.Zero(t, want.rate("replays", lakes))
	for text, wrong := range map[string]string{
		"":                               "read Python's figures",
		"{}\ngoodbye":                    "read Python's figures",
		`{"steps":{"frozenlake 4x4":0}}`: "frozenlake 4x4 is 0 a second",
		`{"generation":{"a":-1}}`:        "a is -1 a second",
		`{"steps":{"a":Infinity}}`:       "read Python's figures",
	} {
		_, err := readPython([]byte(text))
		require.ErrorContains(t, err, wrong, "%q", text)
	}
}

func FuzzReadPython(f *testing.F) {
	f.Add([]byte(somePython))
	f.Add([]byte("\n{}"))
	f.Add([]byte(`{"steps":{"a":1e999}}`))
	f.Fuzz(func(t *testing.T, out []byte) {
		got, err := readPython(out)
		if err != nil {
			return
		}
		for _, section := range []map[string]float64{got.Generation, got.Steps} {
			for name, rate := range section {
				require.Greater(t, rate, 0.0, name)
				require.False(t, math.IsInf(rate, 0), name)
			}
		}
	})
}

func TestMissing(t *testing.T) {
	for _, c := range []struct {
		packages map[string]string
		want     string
	}{
		{nil, "it has no gym-sokoban and no gymnasium"},
		{map[string]string{"gymnasium": "1.4.0"}, "it has no gym-sokoban"},
		{map[string]string{"gymnasium": "1.4.0", "gym-sokoban": "0.0.6"}, ""},
	} {
		require.Equal(t, c.want, pythonRates{Packages: c.packages}.missing())
	}
}

// fakePython is a program that does what a shell script says.
func fakePython(t *testing.T, script string) string {
	path := filepath.Join(t.TempDir(), "python")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	return path
}

func TestPythonSide(t *testing.T) {
	some := fakePython(t, `[ "$1" = -c ] && [ "$3" = 0.250 ] && echo '`+somePython+`'`)
	for _, c := range []struct {
		name, python string
		want         Python
		rates        []float64
	}{
		{"none asked for", "", Python{Missing: "not asked for"}, nil},
		{"not there", "no-such-python", Python{Missing: "there is no no-such-python"}, nil},
		{"one package", some, Python{
			Path: some, Version: "3.12.1", Packages: map[string]string{"gymnasium": "1.4.0"}, Missing: "it has no gym-sokoban",
		}, []float64{16_000, 16_000}},
	} {
		side := findPython(c.python)
		for range 2 {
			require.NoError(t, side.round(t.Context(), 250*time.Millisecond), c.name)
		}
		require.Equal(t, c.want, side.Python, c.name)
		require.Equal(t, c.rates, side.rates("generation", lakes), c.name)
		require.Empty(t, side.rates("generation", roomsSimple), c.name)
	}
}

func TestPythonThatFails(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"echo first >&2; echo 'ImportError: no numpy' >&2; exit 3", "exit status 3: ImportError: no numpy"},
		{"echo hello", "read Python's figures"},
	} {
		side := findPython(fakePython(t, c.script))
		require.NoError(t, side.round(t.Context(), 0), "the bench goes on without it")
		require.Contains(t, side.Missing, c.want)
		require.Empty(t, side.rates("steps", lakes))
		before := side.Missing
		require.NoError(t, side.round(t.Context(), 0))
		require.Equal(t, before, side.Missing)
	}
}
