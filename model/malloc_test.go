package model

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/draw"
)

// mallocChild is set in the process whose page faults are counted.
const mallocChild = "REPRISE_TEST_MALLOC_CHILD"

// The memory that a small model's programs free is that of their next execution: an update
// has hardly a page from the system. It is measured in a process of its own, because a large
// model's programs would change that for the process.
func TestFreedMemoryIsUsedAgain(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("counts page faults")
	}
	if os.Getenv(mallocChild) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), mallocChild+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		t.Logf("%s", out)
		return
	}
	c := benchConfig()
	c.Layers = 1
	p, err := testDevice(t).Programs(c, nil, Shapes{MicroBatch: 32, Sequence: 256})
	require.NoError(t, err)
	s, err := p.NewState(NewParams(c, draw.Address{Purpose: draw.Weights}))
	require.NoError(t, err)
	batch := []batch.MicroBatch{batchOf(randomRows(1, c, 32, 256), 1)}
	least := int64(1 << 62)
	for range 4 {
		before := pageFaults(t)
		s, _, err = p.Learner.Update(bg, s, batch, testSettings())
		require.NoError(t, err)
		least = min(least, pageFaults(t)-before)
	}
	t.Logf("%d MiB come from the system for an update", least*int64(os.Getpagesize())>>20)
	require.Less(t, least*int64(os.Getpagesize()), int64(16<<20))
}

// pageFaults are the process's pages from the system so far.
func pageFaults(t *testing.T) int64 {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return u.Minflt
}
