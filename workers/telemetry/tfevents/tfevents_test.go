package tfevents

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers/telemetry/iterations"
)

// forked is a run of two branches: b0 0–2, b1 from 1 on.
var forked = iterations.Table{
	Columns: []iterations.Column{
		{Name: "run", Kind: iterations.Text, Required: true},
		{Name: "branch", Kind: iterations.Integer, Required: true},
		{Name: "iteration", Kind: iterations.Integer, Required: true},
		{Name: "abandoned", Kind: iterations.Truth, Required: true},
		{Name: "update.skipped", Kind: iterations.Truth, Required: true},
		{Name: "update.tokens", Kind: iterations.Integer, Required: true},
		{Name: "snapshot.version", Kind: iterations.Integer},
		{Name: "actor/loss", Kind: iterations.Number},
		{Name: "evaluation/own/success/mean", Kind: iterations.Number},
		{Name: "evaluation_before/own/success/mean", Kind: iterations.Number},
		{Name: "reward/mean", Kind: iterations.Number},
	},
	Rows: [][]any{
		{"r", int64(0), int64(0), false, false, int64(10), nil, -0.5, 0.25, 0.125, 0.1},
		{"r", int64(0), int64(1), true, true, int64(20), int64(2), math.NaN(), nil, nil, 0.2},
		{"r", int64(0), int64(2), true, false, int64(30), nil, math.Inf(1), 0.75, nil, 0.3},
		{"r", int64(1), int64(1), false, false, int64(40), nil, 0.5, nil, nil, 0.4},
	},
}

func TestBranches(t *testing.T) {
	branches := Branches(forked)
	require.Len(t, branches, 2)
	require.Equal(t, []int{0, 1}, []int{branches[0].Number, branches[1].Number})
	events, err := read(branches[0].File)
	require.NoError(t, err)
	require.True(t, math.IsNaN(float64(events[3].Scalars[2].Value)))
	events[3].Scalars[2].Value = 0
	const success = "evaluation/own/success/mean"
	require.Equal(t, []Event{
		{FileVersion: "brain.Event:2"},
		{Scalars: []Scalar{{success, 0.125}, {"update.skipped", 0}, {"update.tokens", 10}, {"actor/loss", -0.5}, {"reward/mean", 0.1}}},
		{WallTime: 1, Step: 1, Scalars: []Scalar{{success, 0.25}}},
		{WallTime: 1, Step: 1, Scalars: []Scalar{{"update.skipped", 1}, {"update.tokens", 20}, {"actor/loss", 0}, {"reward/mean", 0.2}}},
		{WallTime: 2, Step: 2, Scalars: []Scalar{{"update.skipped", 0}, {"update.tokens", 30}, {"actor/loss", float32(math.Inf(1))}, {"reward/mean", 0.3}}},
		{WallTime: 3, Step: 3, Scalars: []Scalar{{success, 0.75}}},
	}, events)
	events, err = read(branches[1].File)
	require.NoError(t, err)
	require.Equal(t, []Event{
		{WallTime: 1, FileVersion: "brain.Event:2"},
		{WallTime: 1, Step: 1, Scalars: []Scalar{{"update.skipped", 0}, {"update.tokens", 40}, {"actor/loss", 0.5}, {"reward/mean", 0.4}}},
	}, events)
	require.Equal(t, branches, Branches(forked))
}

// TestFraming: the first record that TensorFlow itself writes into a file, except for the
// time, and a masked checksum from the RFC's.
func TestFraming(t *testing.T) {
	require.Equal(t, "1800000000000000a37f4b22"+
		"09"+"0000000000000000"+"1a0d"+hex.EncodeToString([]byte("brain.Event:2")),
		hex.EncodeToString(Append(nil, Event{FileVersion: "brain.Event:2"}))[:2*(12+9+15)])
	// RFC 3720, B.4: 32 zero bytes have the CRC-32C 8a9136aa.
	crc := uint32(0x8a9136aa)
	require.Equal(t, (crc>>15|crc<<17)+0xa282ead8, masked(make([]byte, 32)))
	for _, damaged := range []int{0, 9, 14, 37} {
		file := Append(nil, Event{FileVersion: "brain.Event:2"})
		file[damaged] ^= 1
		_, err := read(file)
		require.Error(t, err)
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "b0", FileName)
	shorter := forked
	shorter.Rows = forked.Rows[:1]
	require.NoError(t, Write(dir, Branches(shorter)))
	follower, err := os.Open(path)
	require.NoError(t, err)
	defer follower.Close()

	branches := Branches(forked)
	for range 2 {
		require.NoError(t, Write(dir, branches))
		have, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, branches[0].File, have, "a run that went on is one file, without doubles")
	}
	info, err := follower.Stat()
	require.NoError(t, err)
	require.EqualValues(t, len(branches[0].File), info.Size(), "who follows the file sees what was added")

	// A file of another run, or a cut one, is replaced.
	require.NoError(t, os.WriteFile(path, append([]byte("x"), branches[0].File...), 0o644))
	require.NoError(t, Write(dir, branches))
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, branches[0].File, have)
	entries, err := os.ReadDir(filepath.Join(dir, "b0"))
	require.NoError(t, err)
	require.Len(t, entries, 1)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "taken"), nil, 0o644))
	require.ErrorContains(t, Write(filepath.Join(dir, "taken"), branches), "write events")
}

// pythonEnv names a Python that has tensorboard; python3 by default.
const pythonEnv = "REPRISE_PYTHON"

// tensorBoardReads gives {tag: [[step, wall time, value]]} as TensorBoard sees a folder.
const tensorBoardReads = `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
a.Reload()
print(json.dumps({t: [[e.step, e.wall_time, repr(e.value)] for e in a.Scalars(t)] for t in a.Tags()["scalars"]}))
`

// TestTensorBoardReads: TensorBoard's own reader, which checks the checksums, sees
// every scalar once. It needs a Python with tensorboard.
func TestTensorBoardReads(t *testing.T) {
	python := os.Getenv(pythonEnv)
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import tensorboard").CombinedOutput(); err != nil {
		t.Skipf("%s has no tensorboard (name another with %s): %v\n%s", python, pythonEnv, err, out)
	}
	dir := t.TempDir()
	require.NoError(t, Write(dir, Branches(forked)))
	seen := func(branch string) map[string][][3]any {
		out, err := exec.Command(python, "-c", tensorBoardReads, filepath.Join(dir, branch)).Output()
		require.NoError(t, err)
		var read map[string][][3]any
		require.NoError(t, json.Unmarshal(out, &read))
		return read
	}
	require.Equal(t, map[string][][3]any{
		"evaluation/own/success/mean": {{0.0, 0.0, "0.125"}, {1.0, 1.0, "0.25"}, {3.0, 3.0, "0.75"}},
		"update.skipped":              {{0.0, 0.0, "0.0"}, {1.0, 1.0, "1.0"}, {2.0, 2.0, "0.0"}},
		"update.tokens":               {{0.0, 0.0, "10.0"}, {1.0, 1.0, "20.0"}, {2.0, 2.0, "30.0"}},
		"actor/loss":                  {{0.0, 0.0, "-0.5"}, {1.0, 1.0, "nan"}, {2.0, 2.0, "inf"}},
		"reward/mean":                 {{0.0, 0.0, "0.10000000149011612"}, {1.0, 1.0, "0.20000000298023224"}, {2.0, 2.0, "0.30000001192092896"}},
	}, seen("b0"))
	require.Equal(t, [][3]any{{1.0, 1.0, "0.4000000059604645"}}, seen("b1")["reward/mean"])
}
