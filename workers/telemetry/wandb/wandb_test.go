package wandb

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers/telemetry/curves"
)

var small = curves.Branch{Settings: "s", Manifest: "m", Steps: []curves.Step{
	{Number: 0, Values: []curves.Value{{Name: "reward/mean", Number: 0.5}}},
	{Number: 3, Values: []curves.Value{{Name: "reward/mean", Number: math.NaN()}}},
}}

// TestFileGolden pins the bytes of the file that wandb's reader accepted (TestWandbReads).
func TestFileGolden(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "small.hex"))
	require.NoError(t, err)
	require.Equal(t, strings.ReplaceAll(strings.TrimSpace(string(golden)), "\n", ""), hex.EncodeToString(File("r", small)))
}

func TestRecordsAreSplitAtBlocks(t *testing.T) {
	f := newFile()
	for _, n := range []int{blockSize - 7 - headerSize - 3, 1, 3 * blockSize, 0} {
		f.append(make([]byte, n))
	}
	var kinds []byte
	at := 7
	for at < len(f.bytes) {
		if left := blockSize - at%blockSize; left < headerSize {
			require.Equal(t, make([]byte, left), f.bytes[at:at+left])
			at += left
			continue
		}
		kinds = append(kinds, f.bytes[at+6])
		at += headerSize + int(f.bytes[at+4]) + int(f.bytes[at+5])<<8
	}
	require.Equal(t, len(f.bytes), at)
	require.Equal(t, []byte{whole, whole, first, middle, middle, last, whole}, kinds)
}

func TestWriteTwice(t *testing.T) {
	dir := t.TempDir()
	branches := []curves.Branch{small, {Number: 1, Steps: small.Steps[1:]}}
	for range 2 {
		folders, err := Write(dir, "a/b", branches)
		require.NoError(t, err)
		require.Len(t, folders, 2)
		for i, folder := range folders {
			entries, err := os.ReadDir(folder)
			require.NoError(t, err)
			require.Len(t, entries, 1)
			have, err := os.ReadFile(filepath.Join(folder, "run-"+ID("a/b", i)+".wandb"))
			require.NoError(t, err)
			require.Equal(t, File("a/b", branches[i]), have)
		}
	}
	require.NotEqual(t, ID("a", 0), ID("b", 0))
}

// reader prints the history of a file as wandb's own reader gives it.
const reader = `
import sys, json
from wandb.sdk.internal.datastore import DataStore
from wandb.proto import wandb_internal_pb2 as pb
d = DataStore(); d.open_for_scan(sys.argv[1])
kinds, rows, ids = [], [], []
while True:
    data = d.scan_data()
    if data is None: break
    r = pb.Record(); r.ParseFromString(data)
    kinds.append(r.WhichOneof("record_type"))
    if kinds[-1] == "history":
        rows.append([r.history.step.num, {i.key: str(json.loads(i.value_json)) for i in r.history.item}])
    if kinds[-1] == "run": ids.append(r.run.run_id)
print(json.dumps({"kinds": kinds, "rows": rows, "ids": ids}))
`

func TestWandbReads(t *testing.T) {
	python := os.Getenv("REPRISE_WANDB")
	if python == "" {
		t.Skip("REPRISE_WANDB names no Python with wandb 0.19: its reader is not asked")
	}
	b := curves.Branch{}
	for step := range int64(40) { // more than a block
		s := curves.Step{Number: step}
		for i := range 30 {
			s.Values = append(s.Values, curves.Value{Name: fmt.Sprintf("actor/metric_%d", i), Number: float64(step) / 3})
		}
		b.Steps = append(b.Steps, s)
	}
	for _, b := range []curves.Branch{small, b} {
		folders, err := Write(t.TempDir(), "r", []curves.Branch{b})
		require.NoError(t, err)
		cmd := exec.Command(python, "-c", reader, filepath.Join(folders[0], "run-"+ID("r", 0)+".wandb"))
		cmd.Env = append(os.Environ(), "WANDB_MODE=offline")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		var read struct {
			Kinds []string
			IDs   []string
			Rows  [][2]any
		}
		require.NoError(t, json.Unmarshal(out, &read), string(out))
		require.Equal(t, []string{ID("r", 0)}, read.IDs)
		require.Len(t, read.Kinds, len(b.Steps)+4)
		require.Len(t, read.Rows, len(b.Steps))
		for i, row := range read.Rows {
			require.EqualValues(t, b.Steps[i].Number, row[0])
			require.Equal(t, fmt.Sprint(b.Steps[i].Number), row[1].(map[string]any)["_step"])
			require.Len(t, row[1], len(b.Steps[i].Values)+1)
		}
	}
}
