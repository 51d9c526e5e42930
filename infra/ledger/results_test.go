package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// resultOf is a result with one manifest.
func resultOf(t *testing.T, manifest string) *result {
	t.Helper()
	r := &result{Preset: "p", Spec: "s"}
	require.NoError(t, r.add("runs/p/b0/iterations/000000/manifest.json", []byte(manifest)))
	return r
}

const manifest = `{"batch":{"key":"b"},"metrics":{"a/x":1,"a/y":2},"programs":{"update":"u"},"parent":"p","seal":"1","state_after":"0123456789abcdef"}`

func TestCompare(t *testing.T) {
	one := func() *result { return resultOf(t, manifest) }
	broken := &result{Preset: "p", Error: "the run failed"}
	for _, c := range []struct {
		name       string
		base, here *result
		want       verdict
		bad        bool
		text       string
	}{
		{"equal", one(), one(), equal, false,
			"p                      both  state 0123456789ab  manifest " + short(one().Manifest) + "  programs " + short(one().Programs) + " equal\n"},
		{"another state", one(), resultOf(t, `{"batch":{"key":"b"},"metrics":{"a/x":1,"a/y":2},"programs":{"update":"u"},"state_after":"1"}`), differs, true,
			"first: runs/p/b0/iterations/000000/manifest.json: state_after\n"},
		{"another batch and metric", one(), resultOf(t, `{"batch":{"key":"c"},"metrics":{"a/x":1,"a/y":3},"programs":{"update":"u"},"state_after":"0123456789abcdef"}`), differs, true,
			"first: runs/p/b0/iterations/000000/manifest.json: a/y, batch\n"},
		{"other programs", one(), resultOf(t, `{"batch":{"key":"b"},"metrics":{"a/x":1,"a/y":2},"programs":{"update":"v"},"state_after":"0123456789abcdef"}`), differs, true,
			"first: runs/p/b0/iterations/000000/manifest.json: programs\n"},
		{"a field more", one(), resultOf(t, `{"batch":{"key":"b"},"metrics":{"a/x":1,"a/y":2},"new":1,"programs":{"update":"u"},"state_after":"0123456789abcdef"}`), differs, true,
			"first: runs/p/b0/iterations/000000/manifest.json: new\n"},
		{"fails here", one(), broken, failed, true, "here  the run failed failed\n"},
		{"fails there", broken, one(), failed, true, "base  the run failed\n"},
		{"fails on both sides", broken, broken, failed, true, "here  the run failed failed\n"},
		{"new", nil, one(), added, false, " new\n"},
		{"new and fails", nil, broken, failed, true, "here  the run failed failed\n"},
		{"gone", one(), nil, removed, true, " gone\n"},
	} {
		require.Equal(t, c.want, compare(c.base, c.here), c.name)
		require.Equal(t, c.bad, c.want.bad(), c.name)
		require.Contains(t, describe(c.base, c.here), c.text, c.name)
	}
}

// Each of the three hashes alone makes a difference.
func TestEachHashCounts(t *testing.T) {
	base := result{Preset: "p", State: "s", Manifest: "m", Programs: "g"}
	for _, change := range []func(*result){func(r *result) { r.State = "" }, func(r *result) { r.Manifest = "" }, func(r *result) { r.Programs = "" }} {
		here := base
		change(&here)
		require.Equal(t, differs, compare(&base, &here))
	}
	same := base
	same.Seconds = 9 // a time is no result
	require.Equal(t, equal, compare(&base, &same))
}

func TestFirstDifference(t *testing.T) {
	at := func(key string, fields map[string]string) commit { return commit{Key: key, Fields: fields} }
	first := at("0", map[string]string{"a": "1"})
	require.Equal(t, "1: a, b", firstDifference([]commit{first, at("1", map[string]string{"a": "1"})}, []commit{first, at("1", map[string]string{"b": "1"})}))
	require.Equal(t, "1 manifests in place of 2, or others", firstDifference([]commit{first, first}, []commit{first}))
	require.Equal(t, "1 manifests in place of 1, or others", firstDifference([]commit{first}, []commit{at("0/b1", nil)}))
	require.Equal(t, "no field of a manifest", firstDifference([]commit{first}, []commit{first}))
	many := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		many[name] = "1"
	}
	require.Equal(t, "0: a, b, c, d, e, f, g, h and 2 more", firstDifference([]commit{at("0", nil)}, []commit{at("0", many)}))
}

func TestClosing(t *testing.T) {
	require.Equal(t, "2 presets: 2 equal", closing([]verdict{equal, equal}))
	require.Equal(t, "5 presets: 1 equal, 1 differs, 1 failed, 1 new, 1 gone", closing([]verdict{equal, differs, failed, added, removed}))
}

// A manifest counts as the last one that was read; what is no manifest is an error.
func TestReadManifests(t *testing.T) {
	r := resultOf(t, manifest)
	first := r.Manifest
	require.NoError(t, r.add("1", []byte(`{"state_after":"later"}`)))
	require.Equal(t, "later", r.State)
	require.NotEqual(t, first, r.Manifest)
	require.Len(t, r.Iterations, 2)
	require.NotContains(t, r.Iterations[0].Fields, "seal")
	require.Equal(t, "2", r.Iterations[0].Fields["a/y"])
	require.ErrorContains(t, r.add("2", []byte("{")), "decode 2")
}

// The results of a commit are kept for a device and a spec.
func TestKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	k, err := readKept(path, "device")
	require.NoError(t, err)
	p := preset{"p", []byte(`{}`)}
	require.NoError(t, k.put(path, result{Preset: "p", Spec: p.digest(), State: "s"}))
	require.NoError(t, k.put(path, result{Preset: "broken", Error: "why"}))

	k, err = readKept(path, "device")
	require.NoError(t, err)
	r, ok := k.has(p)
	require.True(t, ok)
	require.Equal(t, "s", r.State)
	_, ok = k.has(preset{"p", []byte(`{"seed":2}`)})
	require.False(t, ok, "another spec")
	_, ok = k.Results["broken"]
	require.False(t, ok, "a failure is tried again")

	k, err = readKept(path, "another device")
	require.NoError(t, err)
	require.Empty(t, k.Results)

	require.NoError(t, os.WriteFile(path, []byte("{"), 0o644))
	_, err = readKept(path, "device")
	require.ErrorContains(t, err, "remove it")
}

func TestNames(t *testing.T) {
	require.Equal(t, []string{"a", "b"}, namesOf("a, b"))
	require.Empty(t, namesOf(""))
}
