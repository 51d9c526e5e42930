package learn

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/workers/lab/twins"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Of nine kills two each are in Generate, Update, Snapshot and Commit, and one in Restore, which
// follows another kill; the second in an activity that writes is at another place of it.
func TestNineKills(t *testing.T) {
	in := map[string][]string{}
	for n := range 9 {
		f := planned(n, 3)
		in[f.Kind] = append(in[f.Kind], f.Phase)
		want := 3
		if f.Kind == "Restore" || f.Kind == "Snapshot" {
			want = 1
		}
		require.Equal(t, want, f.Nth, f.String())
	}
	require.Equal(t, map[string][]string{
		"Generate": {"inside", "written"}, "Update": {"inside", "written"}, "Snapshot": {"inside", "inside"}, "Commit": {"inside", "written"},
		"Restore": {"inside"},
	}, in)
	require.Equal(t, planned(0, 2), planned(9, 2), "they begin again")
}

func TestTwins(t *testing.T) {
	s := settings[0]
	undisturbed, killed, text, err := twinSpecs(s, 1)
	require.NoError(t, err)
	require.Equal(t, "learn-p25-keep25-s1-killed", killed)
	require.Equal(t, "learn-p25-keep25-undisturbed-s1", runOf(undisturbed, 1))
	same, err := specOf(undisturbed, 1)
	require.NoError(t, err)
	require.NotEqual(t, string(text), "")
	decoded, err := spec.Decode(text, run.Known())
	require.NoError(t, err)
	other, err := spec.Decode(same, run.Known())
	require.NoError(t, err)
	require.Equal(t, decoded.Snapshot, other.Snapshot)
	require.Equal(t, 5, decoded.Snapshot.Every)
	require.Equal(t, map[string]any{"every": 30}, s.Fields["snapshot"], "the setting itself is left alone")
}

func TestPicture(t *testing.T) {
	k := Killed{
		Setting: "bandit", Undisturbed: []twins.Committed{{Success: 0.25, State: "a"}, {Success: 0.5, State: "b"}}, Killed: []twins.Committed{{Success: 0.25, State: "a"}, {Success: 0.5, State: "b"}},
		Kills: []twins.Kill{{Activity: "Update", Phase: "inside", Iteration: 1, Witness: "event 3, ActivityTaskTimedOut"}}, Equal: true,
	}
	one, err := k.Picture()
	require.NoError(t, err)
	again, err := k.Picture()
	require.NoError(t, err)
	require.Equal(t, one, again)
	require.Contains(t, string(one), "all 2 state fingerprints equal")
	require.Contains(t, string(one), "kill -9 in Update")
	require.Contains(t, k.String(), "event 3")
	k.Equal = false
	other, err := k.Picture()
	require.NoError(t, err)
	require.Contains(t, string(other), "STATE FINGERPRINTS DIFFER")
}

func TestRecords(t *testing.T) {
	file := filepath.Join(t.TempDir(), "records", "learn-x-s1.json")
	_, found, err := readRecord(file, []byte("spec"))
	require.NoError(t, err)
	require.False(t, found)
	out := Outcome{Run: "learn-x-s1", Seed: 1, Rise: 3.5, State: "abc", Curve: []float64{0.25, 0.5}}
	require.NoError(t, writeRecord(file, []byte("spec"), out))
	got, found, err := readRecord(file, []byte("spec"))
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, out, got)
	_, _, err = readRecord(file, []byte("another spec"))
	require.ErrorIs(t, err, ErrOtherSpec)
	require.ErrorContains(t, err, file)
}
