package bucket

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// put writes an object of so many bytes.
func put(t *testing.T, s store.Store, key string, size int) {
	t.Helper()
	require.NoError(t, s.Put(context.Background(), key, make([]byte, size), store.PutOptions{}))
}

// define writes a sweep's definition with trials; specs are those of the trials that have one.
func define(t *testing.T, s store.Store, id string, specs map[string]string, labels ...string) {
	t.Helper()
	d := definition{Sweep: id}
	for _, label := range labels {
		trial := sweep.Trial{Label: label}
		if text := specs[label]; text != "" {
			trial.Spec = json.RawMessage(text)
		}
		d.Trials = append(d.Trials, trial)
	}
	b, err := json.Marshal(d)
	require.NoError(t, err)
	_, err = store.PutArtifact(context.Background(), s, store.SweepDir(id), "definition", "json", b)
	require.NoError(t, err)
}

// Every object of a run has one kind, by where it is and what its name says before the digest.
func TestKinds(t *testing.T) {
	for key, want := range map[string]string{
		"spec.json": Manifests, "removed.json": Other, "telemetry/b0/000001.json": Other, "report/index.html": Other, "stray": Other, "b0/stray": Other,
		"b0/iterations/000001/manifest.json":                              Manifests,
		"b0/iterations/000001/batch.0123456789ab.safetensors":             Batches,
		"b12/iterations/1000000/pass-2.batch.0123456789ab.safetensors":    Batches,
		"b0/iterations/000001/corrections.0123456789ab.parquet":           Batches,
		"b0/iterations/000001/trajectories.0123456789ab.parquet":          Trajectories,
		"b0/iterations/000001/everything.0123456789ab.parquet":            Trajectories,
		"b0/iterations/000001/scores.0123456789ab.parquet":                Scores,
		"b0/iterations/000001/turn-1.generate.0123456789ab.parquet":       Turns,
		"b0/iterations/000001/round-2.wave-3.turn-1.step.01234567.pq":     Turns,
		"b0/iterations/000001/round-2.wave-3.forks.0123456789ab.parquet":  Turns,
		"b0/iterations/000001/sampler.0123456789ab/model.safetensors":     Other,
		"b0/snapshots/000010.0123456789ab/optimizer.safetensors":          Snapshots,
		"b0/evaluations/000010/suite/trajectories.0123456789ab.parquet":   Evaluations,
		"b0/evaluations/000010/suite/result.0123456789ab.json":            Evaluations,
		"b0/iterations/000001/thoughts.scores-of-a-kind.0123456789ab.bin": Scores,
	} {
		require.Equal(t, want, placeOf("runs/r/"+key).kindOf(), key)
	}
	require.Equal(t, Evaluations, placeOf("evaluations/e/spec.0123456789ab.json").kindOf())
	require.Equal(t, Other, placeOf("sweeps/s/table.0123456789ab.json").kindOf())
}

// All that is under the prefix is in one row, and each row's kinds sum to its size.
func TestMeasure(t *testing.T) {
	s := store.NewMemory()
	long := strings.Repeat("long", 40)
	put(t, s, "runs/a/spec.json", 10)
	put(t, s, "runs/a/b0/snapshots/000010.x/model.safetensors", 5000)
	put(t, s, "runs/a/b0/iterations/000000/batch.x.safetensors", 300)
	put(t, s, store.SpecKey("fig/1"), 7000)
	put(t, s, store.SpecKey("fig/"+long), 1)
	put(t, s, store.SpecKey("fig/stray"), 2)
	put(t, s, store.ApartDir("e")+"/spec.x.json", 40)
	put(t, s, "models/0123/model.safetensors", 9000)
	put(t, s, "models/4567/model.safetensors", 1000)
	put(t, s, "programs/99e0d04d85bd/0123.program", 300)
	put(t, s, "programs/0123456789ab/4567.record", 50)
	put(t, s, "programs/stray", 1)
	put(t, s, "reprise.json", 5)
	put(t, s, "doctor/probe", 5)
	define(t, s, "fig", nil, "1", long, "not begun")
	define(t, s, "fig", nil, "1") // before trials were added
	_, err := store.MarkRemoved(t.Context(), s, store.RunDir("gone"), store.Removed{Kind: "run", ID: "gone"})
	require.NoError(t, err)

	listed := 0
	all, err := Measure(t.Context(), s, nil, func(n int) { listed = n })
	require.NoError(t, err)
	var names []string
	var total Size
	for _, u := range all {
		names = append(names, u.What+" "+u.ID)
		total.add(u.Size)
		var kinds Size
		for _, kind := range Kinds {
			kinds.add(u.Kinds[kind])
		}
		if u.What != OfModels && u.What != OfPrograms && u.What != OfRest {
			require.Equal(t, u.Size, kinds, u.ID)
		}
		require.Equal(t, u.ID == "gone", u.Removed)
	}
	require.Equal(t, []string{"models ", "sweep fig", "run a", "programs ", "run gone", "evaluation e", "rest ", "run fig/stray"}, names, "the largest first")
	require.Equal(t, Size{Objects: 2, Bytes: 10000}, all[0].Size)
	require.Len(t, all[1].Trials, 2)
	require.Equal(t, "fig/1", all[1].Trials[0].ID)
	require.Equal(t, "fig/"+long, all[1].Trials[1].ID, "the folder's name is shortened")
	require.Equal(t, Size{Objects: 4, Bytes: all[1].Bytes}, all[1].Size, "two definitions and two specs")
	require.Equal(t, Size{Objects: 2, Bytes: 350}, all[3].Size)
	require.Equal(t, map[string]Size{Snapshots: {1, 5000}, Batches: {1, 300}, Manifests: {1, 10}}, all[2].Kinds)
	count := 0
	for o, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		count++
		total.Bytes -= o.Size
	}
	require.Equal(t, Size{Objects: count}, total)
	require.Equal(t, count, listed)

	some, err := Measure(t.Context(), s, []string{"a", "fig"}, nil)
	require.NoError(t, err)
	require.Equal(t, []Usage{all[1], all[2]}, some, "the same as in the list of all")
	_, err = Measure(t.Context(), s, []string{"a", "nobody"}, nil)
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, `"nobody"`)
}

// A damaged definition leaves the trials as runs.
func TestMeasureDamagedSweep(t *testing.T) {
	s := store.NewMemory()
	put(t, s, store.SpecKey("fig/1"), 7)
	put(t, s, store.SweepDir("fig")+"/definition.x.json", 5)
	all, err := Measure(t.Context(), s, nil, nil)
	require.NoError(t, err)
	require.Len(t, all, 2)
}
