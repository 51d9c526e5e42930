package model

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
)

// A plugin that was looked for, and that is not one of the pinned ones, is refused
// by its hash and never loaded. A plugin that its owner names is trusted: this one is
// refused only because it is not a library.
func TestOpenDeviceRefusesAnUnpinnedPlugin(t *testing.T) {
	testDevice(t)
	t.Setenv(plugin.Env, "")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	folder := filepath.Join(dir, filepath.FromSlash(plugin.Folder))
	require.NoError(t, os.MkdirAll(folder, 0o700))
	path := filepath.Join(folder, plugin.FileName)
	below := filepath.Join(dir, "a", "b")
	require.NoError(t, os.MkdirAll(below, 0o700))
	t.Chdir(below)

	refused := func(o DeviceOptions) {
		t.Helper()
		_, err := OpenDevice(o)
		require.ErrorIs(t, err, plugin.ErrAltered)
		require.ErrorIs(t, err, ErrPlugin)
		require.ErrorContains(t, err, path)
		require.NotContains(t, err.Error(), "load PJRT plugin", "it was loaded first")
		require.NotContains(t, opened.plugins, path, "it was opened first")
	}
	// One of unknown origin, and one whose record is of other bytes.
	require.NoError(t, os.WriteFile(path, []byte("not a library"), 0o600))
	refused(DeviceOptions{})
	require.NoError(t, os.WriteFile(path+".installed.json", []byte(`{"digest":"`+plugin.Pins[0].Digest+`","source":"a test"}`), 0o600))
	refused(DeviceOptions{})
	require.NoError(t, os.Remove(path+".installed.json"))

	// A pinned one in its place is found, and what comes after it is looked at again.
	kept := plugin.Pins
	t.Cleanup(func() { plugin.Pins = kept })
	digest, err := plugin.Hash(path)
	require.NoError(t, err)
	plugin.Pins = append(slices.Clone(kept), plugin.Pin{Name: "test", Digest: digest})
	found, is, err := plugin.Find("", "")
	require.NoError(t, err)
	require.Equal(t, path, found)
	require.Equal(t, digest, is)
	require.NoError(t, os.WriteFile(path, []byte("not a library either"), 0o600))
	refused(DeviceOptions{})

	// Named by its owner, in either way, it is loaded whatever its hash.
	_, err = OpenDevice(DeviceOptions{Plugin: path})
	require.ErrorIs(t, err, ErrPlugin)
	require.NotErrorIs(t, err, plugin.ErrAltered)
	require.ErrorContains(t, err, "load PJRT plugin "+path)
	other := filepath.Join(dir, "other.so")
	require.NoError(t, os.WriteFile(other, []byte("not a library"), 0o600))
	t.Setenv(plugin.Env, other)
	_, err = OpenDevice(DeviceOptions{})
	require.NotErrorIs(t, err, plugin.ErrAltered)
	require.ErrorContains(t, err, "load PJRT plugin "+other)

	// It must not change once it was opened: its bits would be another's.
	require.NoError(t, os.WriteFile(other, []byte("another library"), 0o600))
	_, err = OpenDevice(DeviceOptions{})
	require.ErrorIs(t, err, ErrPlugin)
	require.ErrorContains(t, err, "was changed since this process loaded it")
}

// The fingerprint has the hash of the very file that was loaded.
func TestFingerprintHasThePluginsHash(t *testing.T) {
	path := plugintest.Needs(t)
	digest, err := plugin.Hash(path)
	require.NoError(t, err)
	require.Equal(t, digest, testDevice(t).Fingerprint().Plugin)
}
