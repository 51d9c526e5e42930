package program

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/programcache"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/train"
)

// cachedDevice opens a device that shares the package's cache of programs.
func cachedDevice() (*model.Device, error) {
	return model.OpenDevice(model.DeviceOptions{ProgramCache: programcache.Default})
}

// smallRun is a run of two iterations with a snapshot of the last version alone.
func smallRun(t *testing.T) store.Store {
	t.Helper()
	plugintest.Needs(t)
	opened, err := cachedDevice()
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	s := store.NewMemory()
	_, err = train.New(engine, s).Train(t.Context(), "run", []byte(`{
		"seed": 1, "iterations": 2,
		"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 64, "heads": 2, "kv_heads": 1},
			"warm_start": {"steps": 1, "rows": 4}},
		"environment": {"name": "bandit"},
		"rollout": {"groups": 2, "group_size": 2, "turns": 1, "max_new_tokens": 8, "think": false},
		"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 2}, "evaluation": {"every": 0}
	}`))
	require.NoError(t, err)
	return s
}

// A version is copied from its snapshot, or rebuilt to its recorded state; either way
// the folder is a model, and nothing is written to the store.
func TestExportPolicy(t *testing.T) {
	s := smallRun(t)
	before := keys(t, s)
	noDevice := func() (*model.Device, error) { return nil, os.ErrNotExist }
	export := func(version int, dir string, open func() (*model.Device, error)) (string, string, error) {
		var out, progress bytes.Buffer
		err := exportPolicy(t.Context(), s, exportOptions{run: "run", version: version, dir: dir}, open, &out, &progress)
		return out.String(), progress.String(), err
	}
	root := t.TempDir()
	base, last, between := filepath.Join(root, "base"), filepath.Join(root, "last"), filepath.Join(root, "between")
	out, _, err := export(0, base, noDevice)
	require.NoError(t, err)
	require.Contains(t, out, "version 0 of run (the base model): ")
	out, _, err = export(2, last, noDevice)
	require.NoError(t, err)
	require.Contains(t, out, "version 2 of run (its snapshot): ")
	_, _, err = export(1, between, noDevice)
	require.ErrorIs(t, err, os.ErrNotExist, "which no snapshot holds")
	out, progress, err := export(1, between, cachedDevice)
	require.NoError(t, err)
	require.Contains(t, out, "version 1 of run (rebuilt): ")
	require.Contains(t, progress, "rebuilt from version 0 by 1 recorded update")

	for _, dir := range []string{base, last, between} {
		folder, err := model.OpenFolder(dir)
		require.NoError(t, err)
		require.NoError(t, folder.Close())
		require.Contains(t, namesIn(t, dir), "tokenizer.json")
		require.NotContains(t, namesIn(t, dir), model.OptimizerFile)
	}
	require.Equal(t, namesIn(t, last), namesIn(t, between))
	weights := func(dir string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, model.WeightsFile))
		require.NoError(t, err)
		return b
	}
	require.NotEqual(t, weights(base), weights(between))
	require.NotEqual(t, weights(last), weights(between))
	require.Equal(t, before, keys(t, s), "nothing is written to the store")

	// The same again is fine; another version does not go over it.
	_, _, err = export(2, last, noDevice)
	require.NoError(t, err)
	_, _, err = export(0, last, noDevice)
	require.ErrorContains(t, err, "holds something else (model.safetensors)")
	_, _, err = export(3, filepath.Join(root, "none"), noDevice)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, "the newest is 2")
}

func keys(t *testing.T, s store.Store) (out []string) {
	t.Helper()
	for o, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		out = append(out, o.Key)
	}
	return out
}

// namesIn are the names of a folder's entries.
func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
