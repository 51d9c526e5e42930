package device

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
)

// memoryChild is set in the process whose memory is measured.
const memoryChild = "REPRISE_TEST_MEMORY_CHILD"

// A state is stored and loaded with one tensor at a time in the host's memory. It is measured in
// a process of its own, as the most memory that it ever had; the device is the CPU, so that
// holds the state too.
func TestHostMemoryIsOneTensor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	if os.Getenv(memoryChild) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), memoryChild+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.Logf("%s", out)
		return
	}
	c := model.Config{
		VocabSize: 20_000, HiddenSize: 512, IntermediateSize: 1536, Layers: 6, Heads: 8, KVHeads: 2, HeadDim: 64,
		MaxPositions: 128, RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.02,
	}
	const largest = 4 * 20_000 * 512
	state := 12 * c.Parameters()
	plugintest.Needs(t)
	d, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer d.Close()
	p, err := d.Programs(c, nil, model.Shapes{})
	require.NoError(t, err)
	s := store.NewMemory()       // large files are on the disk
	const besides = 256 << 20    // buffers, garbage, and what XLA keeps
	before := peakMemory(t)      // of the plugin, mostly
	check := func(what string) { // memory that was held once stays in the peak
		grown := peakMemory(t) - before
		t.Logf("%s: %d MiB more at the peak; the state has %d MiB, its largest tensor %d", what, grown>>20, state>>20, largest>>20)
		require.LessOrEqual(t, grown, state+largest+besides, what)
	}

	base, err := model.DrawnFiles(c, draw.Address{Purpose: draw.Weights})
	require.NoError(t, err)
	stored, err := store.PutFolder(t.Context(), s, "models/", run.Streamed(base))
	require.NoError(t, err)
	require.LessOrEqual(t, peakMemory(t)-before, int64(largest+besides), "the device holds nothing yet")
	folder, err := model.OpenFS(store.FS(t.Context(), s, stored.Files, nil))
	require.NoError(t, err)
	held, err := p.Load(folder.First())
	require.NoError(t, err)
	check("load the base model")

	files, err := held.Files(model.SnapshotFile)
	require.NoError(t, err)
	stored, err = store.PutFolder(t.Context(), s, "snapshots/", run.Streamed(files))
	require.NoError(t, err)
	check("store a snapshot")
	held.Free()

	if folder, err = model.OpenFS(store.FS(t.Context(), s, stored.Files, nil)); err == nil {
		var policy model.Source
		if policy, err = folder.Policy(); err == nil {
			held, err = p.Load(policy)
		}
	}
	require.NoError(t, err)
	check("load a snapshot")
	held.Free()
}

// peakMemory is the most memory that this process ever had, in bytes.
func peakMemory(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(b)
	require.NotNil(t, m)
	kb, err := strconv.ParseInt(string(m[1]), 10, 64)
	require.NoError(t, err)
	return kb << 10
}
