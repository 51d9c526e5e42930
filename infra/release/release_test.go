package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin"
)

const mit = `MIT License

Copyright (c) 2020 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN
THE SOFTWARE.
`

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// measured are entries as contents leaves them.
func measured(t *testing.T, entries ...entry) []entry {
	t.Helper()
	for i := range entries {
		require.NoError(t, entries[i].measure())
	}
	require.NoError(t, sorted(entries))
	return entries
}

// The same files make the same bytes, whatever their times, modes and order; nothing of this machine is in them.
func TestArchiveIsOfItsFilesAlone(t *testing.T) {
	folder := t.TempDir()
	archive := func(modified time.Time, mode os.FileMode, turned bool) []byte {
		program := write(t, filepath.Join(folder, "built"), "a program")
		require.NoError(t, os.Chtimes(program, modified, modified))
		require.NoError(t, os.Chmod(program, mode))
		entries := []entry{{name: "reprise", mode: executable, path: program}, {name: "a/page", mode: plain, body: []byte("text")}}
		if turned {
			entries[0], entries[1] = entries[1], entries[0]
		}
		path := filepath.Join(folder, "out.tar.gz")
		sum, size, err := writeArchive(t.Context(), path, "reprise-1", measured(t, entries...), io.Discard)
		require.NoError(t, err)
		body, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, hashOf(body), sum)
		require.Len(t, body, int(size))
		require.NoFileExists(t, path+".partial")
		return body
	}
	first := archive(time.Unix(1e9, 0), 0o600, false)
	require.Equal(t, first, archive(time.Now(), 0o755, true))

	z, err := gzip.NewReader(bytes.NewReader(first))
	require.NoError(t, err)
	require.Empty(t, z.Name)
	require.True(t, z.ModTime.IsZero())
	var names []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		names = append(names, h.Name)
		require.Zero(t, h.ModTime.Unix())
		require.Zero(t, h.Uid+h.Gid)
		require.Empty(t, h.Uname+h.Gname)
		require.Equal(t, map[string]int64{"reprise-1/reprise": 0o755, "reprise-1/a/page": 0o644}[h.Name], h.Mode)
	}
	require.Equal(t, []string{"reprise-1/a/page", "reprise-1/reprise"}, names)

	require.ErrorContains(t, sorted([]entry{{name: "x"}, {name: "y"}, {name: "x"}}), "x twice")
}

// A file that changed after it was measured does not get into an archive whose sums it contradicts.
func TestArchiveRefusesChangedFiles(t *testing.T) {
	folder := t.TempDir()
	program := write(t, filepath.Join(folder, "built"), "a program")
	entries := measured(t, entry{name: "reprise", path: program})
	write(t, program, "a longer program")
	out := filepath.Join(folder, "out.tar.gz")
	_, _, err := writeArchive(t.Context(), out, "r", entries, io.Discard)
	require.Error(t, err)
	left, err := filepath.Glob(out + "*")
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestSums(t *testing.T) {
	entries := measured(t, entry{name: "b", body: []byte("hello\n")}, entry{name: "a", body: nil})
	require.Equal(t, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\n"+
		"5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03  b\n", string(sums(entries)))
}

// Licences are those beside a module's go.mod, and those above linked packages; not those of packages that are not linked.
func TestLicenceFiles(t *testing.T) {
	m := module{path: "example.com/m", version: "v1.0.0", dir: t.TempDir()}
	for _, name := range []string{"LICENSE", "PATENTS", "third_party_notices.txt", "in/COPYING.md", "licenses/own.txt", "other/LICENSE", "license.go", "README.md"} {
		write(t, filepath.Join(m.dir, filepath.FromSlash(name)), mit)
	}
	m.packages = []string{m.dir, filepath.Join(m.dir, "in", "deep")}
	require.NoError(t, os.MkdirAll(m.packages[1], 0o755))
	files, err := licenceFiles(m)
	require.NoError(t, err)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	require.ElementsMatch(t, []string{"LICENSE", "PATENTS", "third_party_notices.txt", "in/COPYING.md", "licenses/own.txt"}, names)
	require.Equal(t, []string{"MIT"}, identify(files))
	require.Empty(t, identify(map[string][]byte{"LICENSE": []byte("Ask us.")}))

	bare := module{path: "example.com/bare", version: "v1.0.0", dir: t.TempDir()}
	_, err = licenceFiles(bare)
	require.ErrorContains(t, err, "example.com/bare@v1.0.0 has no file with its licence")
	for at := range without {
		bare.path, bare.version, _ = strings.Cut(at, "@")
		files, err := licenceFiles(bare)
		require.NoError(t, err)
		require.Contains(t, files, "NOTE", "somebody looked at this version")
	}
}

// A program that was built of other modules than the source pins is not released.
func TestProgramsAreOfTheirPins(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	p := program{name: "release", file: self, folder: ".", pkg: "."}
	require.NoError(t, p.read(t.Context()))
	require.NotEmpty(t, p.modules[0].sum)
	p.pkg = "../build"
	require.ErrorContains(t, p.read(t.Context()), "which the source does not pin: build it again")
	pinned := []module{{path: "a", version: "v1"}, {path: "b", version: "v2"}}
	require.NoError(t, compare(map[string]string{"a@v1": "", "b@v2": ""}, pinned))
	require.ErrorContains(t, compare(map[string]string{"a@v1": "", "b@v1": ""}, pinned), "without b@v2")
	require.ErrorContains(t, compare(map[string]string{"a@v1": "", "b@v2": "", "c@v3": ""}, pinned), "with c@v3")
	modules, err := linked(t.Context(), ".", ".")
	require.NoError(t, err)
	found := map[string]bool{}
	for _, m := range modules {
		found[m.path] = true
		require.DirExists(t, m.dir)
		require.NotEmpty(t, m.packages)
		files, err := licenceFiles(m)
		require.NoError(t, err)
		require.NotEmpty(t, identify(files), m.String())
	}
	require.True(t, found["github.com/google/licensecheck"])
	require.False(t, found[ownModule])
}

// The bill of materials is the same each time, and names what there is.
func TestBill(t *testing.T) {
	lib := module{path: "example.com/lib/v2", version: "v2.0.0+incompatible", sum: "h1:abc="}
	programs := []part{
		{program{name: "temporal", main: "v1.5.1", compiler: "go1.26", modules: []module{lib}}, strings.Repeat("a", 64)},
		{program{name: "reprise", compiler: "go1.26", modules: []module{lib}}, strings.Repeat("b", 64)},
	}
	pin, err := plugin.PinOf("")
	require.NoError(t, err)
	licences := map[string][]string{lib.String(): {"MIT", "GooglePatentsFile"}}
	text, err := bill(programs, pin, licences)
	require.NoError(t, err)
	for range 10 {
		again, err := bill(programs, pin, licences)
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
	}
	var read struct {
		BOMFormat, SpecVersion, SerialNumber string
		Metadata                             struct{ Timestamp string }
		Components                           []struct {
			Name, Version, Purl string
			Hashes              []struct{ Content string }
			Licenses            []struct{ License struct{ ID, Name string } }
		}
		Dependencies []struct {
			Ref       string
			DependsOn []string
		}
	}
	require.NoError(t, json.Unmarshal(text, &read))
	require.Equal(t, "CycloneDX 1.6", read.BOMFormat+" "+read.SpecVersion)
	require.Empty(t, read.SerialNumber+read.Metadata.Timestamp)
	names := map[string]string{}
	for _, c := range read.Components {
		names[c.Name] = c.Version
		if c.Name == lib.path {
			require.Equal(t, "pkg:golang/example.com/lib/v2@v2.0.0+incompatible", c.Purl)
			require.Equal(t, "MIT", c.Licenses[0].License.ID)
			require.Equal(t, "GooglePatentsFile", c.Licenses[1].License.Name, "no identifier of SPDX's")
		}
	}
	require.Equal(t, map[string]string{
		"temporal": "1.5.1", "reprise": names["reprise"], lib.path: lib.version, "std": "1.26", plugin.FileName: pin.Version,
	}, names)
	require.Equal(t, []string{"example.com/lib/v2@v2.0.0+incompatible", "std@go1.26"}, read.Dependencies[0].DependsOn)
}
