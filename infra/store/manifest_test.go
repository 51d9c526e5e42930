package store_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

func TestManifestIsStrict(t *testing.T) {
	s := store.NewMemory()
	chain := makeRun(t, s, "r", 2)
	good, err := chain[1].Manifest.Encode()
	require.NoError(t, err)
	_, err = store.DecodeManifest(good)
	require.NoError(t, err)
	edits := map[string]func(string) string{
		"unknown key":   func(s string) string { return strings.Replace(s, `{"base"`, `{"aaa":1,"base"`, 1) },
		"other case":    func(s string) string { return strings.Replace(s, `"batch"`, `"Batch"`, 1) },
		"duplicate key": func(s string) string { return strings.Replace(s, `"branch":0`, `"branch":0,"branch":0`, 1) },
		"space":         func(s string) string { return s + "\n" },
		"null":          func(s string) string { return strings.Replace(s, `"branch":0`, `"branch":null`, 1) },
		"metric":        func(s string) string { return strings.Replace(s, `"loss":0.001`, `"loss":0.002`, 1) },
		"settings":      func(s string) string { return strings.Replace(s, `0.0003`, `0.0004`, 1) },
		"state":         func(s string) string { return strings.Replace(s, `state-0.2`, `state-0.3`, 1) },
		"format":        func(s string) string { return strings.Replace(s, `"format":1`, `"format":2`, 1) },
		"empty":         func(string) string { return "" },
		"array":         func(string) string { return "[]" },
	}
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			bad := edit(string(good))
			require.NotEqual(t, string(good), bad)
			_, err := store.DecodeManifest([]byte(bad))
			require.ErrorIs(t, err, store.ErrInvalid)
		})
	}
	wrong := map[string]func(*store.Manifest){
		"no run":              func(m *store.Manifest) { m.Run = "" },
		"no parent":           func(m *store.Manifest) { m.Parent = nil },
		"negative":            func(m *store.Manifest) { m.Iteration = -1 },
		"settings digest":     func(m *store.Manifest) { m.SettingsDigest = "x" },
		"no settings":         func(m *store.Manifest) { m.Settings = nil },
		"no state":            func(m *store.Manifest) { m.StateAfter = "" },
		"skipped and changed": func(m *store.Manifest) { m.Update.Skipped = true },
		"ref's key":           func(m *store.Manifest) { m.Batch = &store.Ref{Key: "../x", Digest: m.Batch.Digest} },
		"ref's digest":        func(m *store.Manifest) { m.Batch = &store.Ref{Key: "x", Digest: "ABC"} },
		"snapshot's version":  func(m *store.Manifest) { m.Snapshot = &store.SnapshotRef{Version: 1, State: m.StateAfter} },
		"snapshot's state":    func(m *store.Manifest) { m.Snapshot = &store.SnapshotRef{Version: 2, State: "x"} },
	}
	for name, change := range wrong {
		t.Run(name, func(t *testing.T) {
			m := *chain[1].Manifest
			change(&m)
			_, err := m.Encode()
			require.ErrorIs(t, err, store.ErrInvalid)
		})
	}
}

// The chain's bytes are pinned: a change of format must be a decision.
func TestManifestPinned(t *testing.T) {
	chain := makeRun(t, store.NewMemory(), "pinned", 6)
	require.Equal(t, "f0d7443ed8205765e586b66e7e49ecdfbcaa5a2a7ee719c1bcbd265e3cdae520", chain[5].Ref.Digest)
}

func FuzzDecodeManifest(f *testing.F) {
	s := store.NewMemory()
	ctx := context.Background()
	ref, err := store.PutArtifact(ctx, s, "d", "n", "bin", nil)
	require.NoError(f, err)
	m := store.Manifest{Run: "r", Spec: ref, StateBefore: "a", StateAfter: "b"}
	m.Settings, m.SettingsDigest, err = store.NewSettings(nil)
	require.NoError(f, err)
	good, err := m.Encode()
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"format":1,"run":"r","settings":null}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := store.DecodeManifest(b)
		if err != nil {
			return
		}
		again, err := m.Encode()
		require.NoError(t, err)
		require.Equal(t, string(b), string(again))
	})
}
