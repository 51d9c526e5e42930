package chaos

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/human"
	"github.com/reprise-rl/reprise/infra/store"
)

// size is the folder of a model of Qwen2.5-0.5B's shape, which `make size` writes.
var size = flag.String("size", "", "the folder of the model that TestSize trains")

const (
	sizeParameters = 494_032_768
	// sizeAdapters are those of rank 16 on all linear maps.
	sizeAdapters = 8_798_208
	// sizeState is the state of all weights: them and their moments. sizeAdapted is that of
	// adapters, over frozen weights.
	sizeState   = 12 * sizeParameters
	sizeAdapted = 4*sizeParameters + 12*sizeAdapters
)

// sized is a preset of that size: the most that a worker may have resident, at all and when it
// is idle, the bytes of what it holds, the free space of a disk that its stack needs (the model,
// two snapshots and a worker's copies), and where workers die.
type sized struct {
	preset                 string
	peak, rest, held, disk int64
	kills                  []string
}

// TestSize trains a policy of Qwen2.5-0.5B's shape to its end, with a worker's default
// settings: undisturbed, with the memory of its worker measured; and with its worker killed
// in Update, in the Restore after it, and in Snapshot, to the same bytes. One run trains all
// weights, and one adapters.
func TestSize(t *testing.T) {
	if *size == "" {
		t.Skip("it takes half an hour and 25 GB of disk: `make size` runs it")
	}
	folder, err := filepath.Abs(*size)
	require.NoError(t, err)
	require.DirExists(t, folder)
	patience = 30 * time.Minute
	for _, s := range []sized{
		{"size-0.5b", 10e9, sizeState * 12 / 10, sizeState, 25e9, []string{"Update#1/inside/1", "Restore/inside/1", "Snapshot/inside/1"}},
		// The process, the plugin and compiled programs do not shrink with the state.
		{"size-0.5b-lora", 4e9, sizeAdapted + 1.2e9, sizeAdapted, 6e9, []string{"Update#1/inside/1", "Snapshot/inside/1"}},
	} {
		t.Run(s.preset, func(t *testing.T) { s.test(t, preset(t, s.preset, map[string]any{"policy.from": "folder:" + folder})) })
	}
}

func (s sized) test(t *testing.T, spec []byte) {
	enoughDisk(t, os.TempDir(), s.disk)
	var want map[string]string
	t.Run("undisturbed", func(t *testing.T) {
		l := newLane(t, ownStack(t, dev.Options{Ephemeral: true}))
		worker := l.worker(workerOptions{heartbeat: sizeHeartbeat})
		l.start(chaosRun, spec)
		l.completes(chaosRun)
		peak, rest := resident(t, worker)
		t.Logf("the worker had %s resident at most, and has %s at rest; it holds %s", human.Bytes(peak), human.Bytes(rest), human.Bytes(s.held))
		l.verifies(chaosRun)
		want = l.named(chaosRun)
		l.logSteps(chaosRun)
		l.logRestores(l.workers)
		require.LessOrEqual(t, peak, s.peak)
		require.LessOrEqual(t, rest, s.rest)
	})
	t.Run("killed", func(t *testing.T) {
		l := newLane(t, ownStack(t, dev.Options{Ephemeral: true}))
		stop := l.keepWith(workerOptions{heartbeat: sizeHeartbeat}, s.kills...)
		l.start(chaosRun, spec)
		l.completes(chaosRun)
		stop()
		for worker := 1; worker <= l.workers; worker++ {
			l.logRestores(worker)
		}
		l.verifies(chaosRun)
		require.Equal(t, want, l.named(chaosRun))
	})
}

// sizeHeartbeat is the default of `reprise worker`.
const sizeHeartbeat = "20s"

func enoughDisk(t *testing.T, dir string, need int64) {
	t.Helper()
	var fs syscall.Statfs_t
	require.NoError(t, syscall.Statfs(dir, &fs))
	free := int64(fs.Bavail) * int64(fs.Bsize)
	require.GreaterOrEqual(t, free, need, "%s has %s free, and %s are needed: set TMPDIR to a folder with more", dir, human.Bytes(free), human.Bytes(need))
}

// resident is the memory of a process: at most so far, and now.
func resident(t *testing.T, p *process) (peak, now int64) {
	t.Helper()
	proc, err := procfs.NewProc(p.pid)
	require.NoError(t, err)
	status, err := proc.NewStatus()
	require.NoError(t, err)
	return int64(status.VmHWM), int64(status.VmRSS)
}

// named are the digests of all that the run's manifests name, by key, and of the newest
// manifest. `reprise verify` has hashed what is stored.
func (l *lane) named(run string) map[string]string {
	l.t.Helper()
	head, err := store.Head(l.t.Context(), l.store, run)
	require.NoError(l.t, err)
	chain, err := store.LoadChain(l.t.Context(), l.store, head.Ref)
	require.NoError(l.t, err)
	out := map[string]string{head.Ref.Key: head.Ref.Digest}
	for _, link := range chain {
		for _, ref := range link.Manifest.Refs() {
			out[ref.Key] = ref.Digest
		}
	}
	return out
}

// logSteps logs how long the steps of a run took, from its history.
func (l *lane) logSteps(run string) {
	l.t.Helper()
	out, err := l.cli("workflow", "show", "--workflow-id", run)
	if err != nil {
		out = fmt.Sprint(err)
	}
	l.t.Log(out)
}

// logRestores logs what the restores of a worker took their time for, as its log has it.
func (l *lane) logRestores(worker int) {
	l.t.Helper()
	text, err := os.ReadFile(l.logOf(worker))
	require.NoError(l.t, err)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "version restored") {
			l.t.Logf("worker %d: %s", worker, strings.TrimSpace(line))
		}
	}
}
