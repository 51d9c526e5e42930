package model

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
)

// A plugin is what its own name says, whatever the folders above it are called: go-xla goes by
// the whole path, and gave a CPU's plugin in a folder named cuda the options of CUDA.
func TestFolderOfPluginDecidesNothing(t *testing.T) {
	d := testDevice(t)
	path, _, err := plugin.Find("", "")
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "cuda", "nvidia")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	moved := filepath.Join(dir, plugin.FileName)
	require.NoError(t, os.Symlink(path, moved))
	other, err := OpenDevice(DeviceOptions{Plugin: moved})
	require.NoError(t, err)
	defer other.Close()
	require.Equal(t, d.Fingerprint(), other.Fingerprint())
	hashes := func(d *Device) map[string]string {
		p, err := d.Programs(tiny(), nil, tinyShapes)
		require.NoError(t, err)
		defer p.Free()
		h, err := p.Hashes()
		require.NoError(t, err)
		return h
	}
	require.Equal(t, hashes(d), hashes(other))
}

func TestMemorySettings(t *testing.T) {
	for _, test := range []struct {
		set         MemorySettings
		environment map[string]string
		says, fails string
	}{
		{says: "memory fraction 0.95, preallocate false, allocator default"},
		{set: MemorySettings{0.75, "true", "bfc"}, says: "memory fraction 0.75, preallocate true, allocator bfc"},
		{
			environment: map[string]string{"REPRISE_MEMORY_FRACTION": "0.5", "REPRISE_PREALLOCATE": "1", "REPRISE_ALLOCATOR": "platform"},
			says:        "memory fraction 0.5, preallocate true, allocator platform",
		},
		{set: MemorySettings{Fraction: 1}, environment: map[string]string{"REPRISE_MEMORY_FRACTION": "0.5"}, says: "memory fraction 1, preallocate false, allocator default"},
		{set: MemorySettings{Fraction: 1.5}, fails: "at most 1"},
		{set: MemorySettings{Fraction: -1}, fails: "above 0"},
		{environment: map[string]string{"REPRISE_MEMORY_FRACTION": "most"}, fails: "REPRISE_MEMORY_FRACTION"},
		{set: MemorySettings{Preallocate: "perhaps"}, fails: "true or false"},
		{set: MemorySettings{Allocator: "malloc"}, fails: "cuda_async"},
	} {
		for _, name := range []string{"REPRISE_MEMORY_FRACTION", "REPRISE_PREALLOCATE", "REPRISE_ALLOCATOR"} {
			t.Setenv(name, test.environment[name])
		}
		m, err := test.set.complete(true)
		if test.fails != "" {
			require.ErrorIs(t, err, ErrInput)
			require.ErrorContains(t, err, test.fails)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, test.says, m.String())
		_, err = test.set.complete(false)
		require.Equal(t, test.set == MemorySettings{} && test.environment == nil, err == nil, "a CPU has none of them")
	}
	require.Equal(t, ",memory_fraction=0.75,preallocate=true,allocator=bfc", MemorySettings{0.75, "true", "bfc"}.config())
	require.Empty(t, MemorySettings{}.config())
	plugintest.Needs(t)
	_, err := OpenDevice(DeviceOptions{Memory: MemorySettings{Allocator: "bfc"}})
	require.ErrorIs(t, err, ErrInput)
}

// The fingerprint does not tell where files lie, and tells what is in those that decide bits.
func TestPortableFlags(t *testing.T) {
	results := filepath.Join(t.TempDir(), "results.pbtxt")
	require.NoError(t, os.WriteFile(results, []byte("tuned"), 0o600))
	got, err := portableFlags("--a=1 --xla_dump_to=/tmp/x --xla_gpu_cuda_data_dir=/usr/local/cuda --xla_gpu_load_autotune_results_from=" + results + " --z")
	require.NoError(t, err)
	require.Equal(t, "--a=1 --xla_gpu_load_autotune_results_from=sha256:aba407b81ed016841ea552feadaf0663c7804a64554ba55d3109b3dc8198cdcb --z", got)
	_, err = portableFlags("--xla_gpu_load_autotune_results_from=" + results + ".none")
	require.ErrorIs(t, err, os.ErrNotExist)
	same, err := portableFlags(pinnedFlags)
	require.NoError(t, err)
	require.Equal(t, pinnedFlags, same)
}

func TestMeasureKernels(t *testing.T) {
	got, err := testDevice(t).MeasureKernels(bg, KernelSizes{Side: 64, Vocabulary: 32, Hidden: 8, Tokens: 64, Repeats: 2})
	require.NoError(t, err)
	require.Len(t, got, 3, "a CPU has one precision")
	for _, k := range got {
		require.Positive(t, k.Seconds, k.Name)
	}
	require.InDelta(t, 2*64*64*64, got[0].Operations, 0)
}
