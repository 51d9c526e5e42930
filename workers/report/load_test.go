package report_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/report"
	"github.com/reprise-rl/reprise/workers/report/synthetic"
)

// shape is a small run that was rolled back once: iterations 0 to 5 of branch 0, then
// 3 to 7 of branch 1.
func shape() synthetic.Shape {
	s := synthetic.Shape{Iterations: 8, Groups: 3, Members: 4, Turns: 2, Words: 5, States: 3, EvaluateEvery: 2, Instances: 6, Seed: 11}
	s.Rollback.From, s.Rollback.To = 5, 2
	return s
}

func stored(t testing.TB, s synthetic.Shape) *store.Memory {
	t.Helper()
	m := store.NewMemory()
	require.NoError(t, synthetic.Write(context.Background(), m, "run", s))
	return m
}

func TestLoadBranches(t *testing.T) {
	r, err := report.Load(t.Context(), stored(t, shape()), "run")
	require.NoError(t, err)
	require.Empty(t, r.Missing)
	require.Len(t, r.Branches, 2)
	require.Equal(t, []int{2, 7}, []int{r.Branches[0].Kept, r.Branches[1].Kept})
	require.Nil(t, r.Branches[0].Fork)
	require.Equal(t, report.Place{Branch: 0, Iteration: 2}, *r.Branches[1].Fork)
	require.Equal(t, 5, r.Branches[1].Opened.Iteration)
	var line []report.Place
	for _, it := range r.Line() {
		line = append(line, report.Place{Branch: it.Manifest.Branch, Iteration: it.Manifest.Iteration})
	}
	require.Equal(t, []report.Place{{Iteration: 0}, {Iteration: 1}, {Iteration: 2}, {Branch: 1, Iteration: 3}, {Branch: 1, Iteration: 4}, {Branch: 1, Iteration: 5}, {Branch: 1, Iteration: 6}, {Branch: 1, Iteration: 7}}, line)
	newest, ok := r.Newest()
	require.True(t, ok)
	require.Equal(t, 7, newest.Manifest.Iteration)
	require.Equal(t, "synthetic", r.Spec.Environment.Name)
	require.Contains(t, r.Names(), "actor/pg_loss")
	require.NotContains(t, r.Names(), "actor/entropy_ema")
}

// Averages are corrected for their beginning, so that the first value weighs no more than
// its place, and a branch continues the averages of its fork.
func TestLoadSmooths(t *testing.T) {
	r, err := report.Load(t.Context(), stored(t, shape()), "run")
	require.NoError(t, err)
	for _, name := range []string{"reward/mean", "actor/pg_loss"} {
		value := func(it report.Iteration) float64 { return float64(it.Manifest.Metrics[name]) }
		first, second := r.Branches[0].Iterations[0], r.Branches[0].Iterations[1]
		require.InDelta(t, value(first), float64(first.Smoothed[name]), 1e-12)
		require.InDelta(t, (0.9*value(first)+value(second))/1.9, float64(second.Smoothed[name]), 1e-12)
		fork, _ := r.At(report.Place{Iteration: 2})
		after := r.Branches[1].Iterations[0]
		sum := 0.9*float64(fork.Smoothed[name])*(1-0.9*0.9*0.9) + 0.1*value(after)
		require.InDelta(t, sum/(1-0.9*0.9*0.9*0.9), float64(after.Smoothed[name]), 1e-12)
	}
}

// Missing objects of a run are reported, and the rest is loaded.
func TestLoadWhatIsLeft(t *testing.T) {
	remove := func(t *testing.T, s store.Store, keep func(key string) bool) {
		for o, err := range s.List(t.Context(), "") {
			require.NoError(t, err)
			if !keep(o.Key) {
				require.NoError(t, s.Delete(t.Context(), o.Key))
			}
		}
	}
	manifest := func(branch, n int) string { return store.ManifestKey("run", branch, n) }
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, s *store.Memory)
		want   []report.Missing
		line   int // iterations that are kept and readable
	}{
		{"whole", func(*testing.T, *store.Memory) {}, nil, 8},
		{"no spec", func(t *testing.T, s *store.Memory) { require.NoError(t, s.Delete(t.Context(), store.SpecKey("run"))) },
			[]report.Missing{{What: "resolved spec", Why: "missing", Key: "runs/run/spec.json"}, {What: "resolved spec", Why: "missing", Count: 1, Key: "runs/run/spec.json"}}, 8},
		{"a spec that is none", func(t *testing.T, s *store.Memory) {
			require.NoError(t, s.Delete(t.Context(), store.SpecKey("run")))
			require.NoError(t, s.Put(t.Context(), store.SpecKey("run"), []byte("{"), store.PutOptions{}))
		}, []report.Missing{{What: "resolved spec", Why: "no JSON", Key: "runs/run/spec.json"}}, 8},
		{"half of the turn files", func(t *testing.T, s *store.Memory) {
			remove(t, s, func(key string) bool {
				return !strings.Contains(key, "/turn-1.") || !strings.Contains(key, "b1/iterations")
			})
		}, []report.Missing{{What: "turn files", Why: "missing", Count: 10}}, 8},
		{"a manifest in the middle", func(t *testing.T, s *store.Memory) { require.NoError(t, s.Delete(t.Context(), manifest(1, 5))) },
			[]report.Missing{{What: "iteration 5 of branch 1", Why: "not found", Count: 1, Key: manifest(1, 5)}}, 7},
		{"an iteration altogether", func(t *testing.T, s *store.Memory) {
			remove(t, s, func(key string) bool { return !strings.HasPrefix(key, store.IterationDir("run", 1, 5)) })
		}, []report.Missing{{What: "iterations 5 to 5 of branch 1", Why: "missing", Count: 1, Key: manifest(1, 5)}}, 7},
		{"a manifest that is none", func(t *testing.T, s *store.Memory) {
			require.NoError(t, s.Delete(t.Context(), manifest(0, 1)))
			require.NoError(t, s.Put(t.Context(), manifest(0, 1), []byte(`{"format":1}`), store.PutOptions{}))
		}, []report.Missing{{What: "iteration 1 of branch 0", Why: "invalid", Count: 1, Key: manifest(0, 1)}}, 7},
		{"the beginning of the branch", func(t *testing.T, s *store.Memory) {
			remove(t, s, func(key string) bool { return !strings.HasPrefix(key, store.IterationDir("run", 1, 3)) })
		}, []report.Missing{{What: "the beginning of branch 1", Why: "missing", Count: 1, Key: manifest(1, 3)}}, 4},
		{"begun and not committed", func(t *testing.T, s *store.Memory) {
			_, err := store.PutArtifact(t.Context(), s, store.IterationDir("run", 1, 8), "batch", "safetensors", []byte("x"))
			require.NoError(t, err)
		}, []report.Missing{{What: "iteration 8 of branch 1", Why: "begun and not committed"}}, 8},
		{"all but the spec", func(t *testing.T, s *store.Memory) {
			remove(t, s, func(key string) bool { return key == store.SpecKey("run") })
		}, nil, 0},
		{"the base model", func(t *testing.T, s *store.Memory) {
			remove(t, s, func(key string) bool { return !strings.HasPrefix(key, store.ModelPrefix) })
		}, []report.Missing{{What: "base model's files", Why: "missing"}}, 8},
		{"an early batch and a late turn", func(t *testing.T, s *store.Memory) {
			remove(t, s, func(key string) bool {
				return !strings.Contains(key, "b0/iterations/000000/batch.") && !strings.Contains(key, "b1/iterations/000007/turn-1.step.")
			})
		}, []report.Missing{{What: "turn files", Why: "missing", Count: 1}, {What: "batches", Why: "missing", Count: 1}}, 8},
		{"telemetry", func(t *testing.T, s *store.Memory) {
			remove(t, s, func(key string) bool { return !strings.HasPrefix(key, store.TelemetryDir("run")) })
		}, nil, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := stored(t, shape())
			c.damage(t, s)
			r, err := report.Load(t.Context(), s, "run")
			require.NoError(t, err)
			require.Len(t, r.Missing, len(c.want))
			for i, want := range c.want {
				if want.Key == "" {
					want.Key = r.Missing[i].Key
				}
				if want.Count == 0 {
					want.Count = r.Missing[i].Count
				}
				require.Equal(t, want, r.Missing[i])
				require.Contains(t, r.Missing[i].String(), want.What)
			}
			require.Len(t, r.Line(), c.line)
			files := written(t, s)
			require.Contains(t, files, "index.html")
		})
	}
}

func TestLoadNothing(t *testing.T) {
	_, err := report.Load(t.Context(), store.NewMemory(), "run")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = report.Write(t.Context(), store.NewMemory(), "run", nil)
	require.ErrorIs(t, err, store.ErrNotFound)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = report.Load(ctx, stored(t, shape()), "run")
	require.ErrorIs(t, err, context.Canceled)
}

// Objects that retention removed are not damage.
func TestLoadTombstones(t *testing.T) {
	s := stored(t, shape())
	head, err := store.HeadOf(t.Context(), s, "run", 1)
	require.NoError(t, err)
	gone := *head.Manifest.Trajectories
	next := *head.Manifest
	next.Iteration, next.Parent, next.StateBefore, next.StateAfter = 8, &head.Ref, head.Manifest.StateAfter, "state-9"
	next.Evaluations, next.Tombstones = nil, []store.Tombstone{{Key: gone.Key, Digest: gone.Digest, Reason: "trajectories: keep 1"}}
	next.Trajectories, next.Turns = nil, nil
	_, err = store.CommitManifest(t.Context(), s, &next)
	require.NoError(t, err)
	require.NoError(t, s.Delete(t.Context(), gone.Key))
	r, err := report.Load(t.Context(), s, "run")
	require.NoError(t, err)
	require.Equal(t, []report.Missing{{What: "trajectories", Why: "removed by retention", Count: 1, Key: gone.Key}}, r.Missing)
	files := written(t, s)
	require.NotContains(t, files, "data/b1-000007.0.js")
	require.Contains(t, files, "data/b1-000006.0.js")
}

// written is a report in memory.
func written(t testing.TB, s store.Store) map[string]string {
	t.Helper()
	files := map[string]string{}
	_, err := report.Write(context.Background(), s, "run", func(name string, body []byte) error {
		require.NotContains(t, files, name, "each file is written once")
		require.NotContains(t, files, "index.html", "which comes last")
		files[name] = string(body)
		return nil
	})
	require.NoError(t, err)
	return files
}

func TestWrite(t *testing.T) {
	s := stored(t, shape())
	files := written(t, s)
	require.Equal(t, files, written(t, s), "the same store gives the same bytes")
	names := slices.Sorted(maps.Keys(files))
	require.Len(t, names, 11+6+2)
	require.Contains(t, names, "data/b0-e000002-0.0.js")
	require.Contains(t, names, "data/b1-e000008-0.0.js")
	var index struct {
		Rollouts []struct {
			ID    string
			Kept  bool
			Flags string `json:"f"`
			K     []int  `json:"k"`
		}
		Suites []string
		States int
	}
	value := strings.TrimSuffix(strings.TrimPrefix(files["data/index.js"], "reprise("), ")\n")
	require.NoError(t, json.Unmarshal([]byte(value), &index))
	require.Len(t, index.Rollouts, 17)
	require.Equal(t, []string{"in-distribution"}, index.Suites)
	require.Equal(t, 3, index.States, "evaluations meet the same states as training")
	require.Len(t, index.Rollouts[0].Flags, 12)
	require.Len(t, index.Rollouts[0].K, 3)
	var abandoned []string
	for _, r := range index.Rollouts {
		if !r.Kept {
			abandoned = append(abandoned, r.ID)
		}
	}
	require.Equal(t, []string{"b0-000003", "b0-e000004-0", "b0-000004", "b0-000005", "b0-e000006-0"}, abandoned)
}

// Iterations that learn from one rollout show it once, with the advantages of all.
func TestWriteSharedRollout(t *testing.T) {
	s := stored(t, shape())
	head, err := store.HeadOf(t.Context(), s, "run", 1)
	require.NoError(t, err)
	next := *head.Manifest
	next.Iteration, next.Parent, next.StateBefore, next.StateAfter = 8, &head.Ref, head.Manifest.StateAfter, "state-9"
	next.Evaluations, next.Turns = nil, nil
	next.Rollout = &store.RolloutRef{Branch: 1, Iteration: 7, Update: 1, Updates: 2, Rows: []int{8, 8}}
	_, err = store.CommitManifest(t.Context(), s, &next)
	require.NoError(t, err)
	files := written(t, s)
	require.Contains(t, files, "data/b1-000007.0.js")
	require.NotContains(t, files, "data/b1-000008.0.js")
}

// A large rollout is in several parts.
func TestWriteParts(t *testing.T) {
	large := synthetic.Shape{Iterations: 1, Groups: 2, Members: 40, Turns: 3, Words: 900, States: 2, Seed: 3}
	files := written(t, stored(t, large))
	require.Contains(t, files, "data/b0-000000.1.js")
	most := 0
	for name, body := range files {
		if strings.HasPrefix(name, "data/b0") {
			most = max(most, len(body))
		}
	}
	require.Less(t, most, 1<<20)
	var index struct {
		Rollouts []struct {
			First []int `json:"first"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimPrefix(files["data/index.js"], "reprise("), ")\n")), &index))
	require.Len(t, index.Rollouts[0].First, len(files)-2)
	require.Zero(t, index.Rollouts[0].First[0])
	require.IsIncreasing(t, index.Rollouts[0].First)
}

// A sink's error ends the report, before its page is there.
func TestWriteSinkFails(t *testing.T) {
	full := &store.Error{Op: "put", Kind: store.ErrUnavailable}
	n := 0
	_, err := report.Write(t.Context(), stored(t, shape()), "run", func(name string, _ []byte) error {
		require.NotEqual(t, "index.html", name)
		if n++; n == 3 {
			return full
		}
		return nil
	})
	require.ErrorIs(t, err, store.ErrUnavailable)
}

// Rewards in parts have curves after success, and episodes show them by turn.
func TestWriteRewardsInParts(t *testing.T) {
	s := shape()
	s.Rewards = []string{"progress"}
	files := written(t, stored(t, s))
	page := files["index.html"]
	order := []string{`"title":"Success"`, `"title":"Reward with parts"`, `"title":"Part: progress"`, `"title":"In-group reward deviation"`}
	for i, title := range order {
		require.Contains(t, page, title)
		if i > 0 {
			require.Less(t, strings.Index(page, order[i-1]), strings.Index(page, title))
		}
	}
	require.Contains(t, page, `times 2 in the reward with parts`)
	require.Contains(t, files["data/b0-000000.0.js"], `,2,0.5]}`, "weight and value")
	require.NotContains(t, written(t, stored(t, shape()))["index.html"], "Reward with parts")
}
