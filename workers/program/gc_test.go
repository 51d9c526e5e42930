package program

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/command"
)

// leftover writes what a killed attempt at an iteration leaves.
func leftover(t *testing.T, s store.Store, run string, iteration int) string {
	t.Helper()
	ref, err := store.PutArtifact(context.Background(), s, store.IterationDir(run, 0, iteration), "scores", "safetensors", []byte("of a killed attempt"))
	require.NoError(t, err)
	return ref.Key
}

func gone(t *testing.T, s store.Store, key string) bool {
	t.Helper()
	_, err := s.Stat(context.Background(), key)
	if err != nil {
		require.ErrorIs(t, err, store.ErrNotFound)
	}
	return err != nil
}

func TestCollect(t *testing.T) {
	ctx := context.Background()
	s := store.NewMemory()
	storedRun(t, s, "one", 3)
	old, pending := leftover(t, s, "one", 1), leftover(t, s, "one", 3)
	collect := func(c collector, runs ...string) (string, string, error) {
		var out, errOut bytes.Buffer
		c.store, c.out, c.errOut = s, &out, &errOut
		err := c.collect(ctx, runs)
		return out.String(), errOut.String(), err
	}

	out, _, err := collect(collector{grace: time.Hour}, "one")
	require.NoError(t, err)
	require.Equal(t, "one: 0 objects, 0 bytes, that no manifest names; 0 incomplete uploads\nkept: 2 younger than 1h0m0s, 0 of an iteration under way\n", out)

	out, _, err = collect(collector{}, "one")
	require.NoError(t, err)
	require.Contains(t, out, "  19 bytes  ")
	require.Contains(t, out, old)
	require.NotContains(t, out, pending)
	require.Contains(t, out, "one: 1 object, 19 bytes, that no manifest names; 0 incomplete uploads\nkept: 0 younger than 0s, 1 of an iteration under way\nnothing was deleted")
	require.False(t, gone(t, s, old))

	out, _, err = collect(collector{delete: true, asJSON: true}, "one")
	require.NoError(t, err)
	var result struct {
		Run     string
		Objects []struct {
			Key      string
			Size     int64
			Modified time.Time
		}
		Bytes   int64
		Pending int
		Deleted bool
	}
	require.NoError(t, json.Unmarshal([]byte(out), &result))
	require.Equal(t, old, result.Objects[0].Key)
	require.False(t, result.Objects[0].Modified.IsZero())
	require.Equal(t, int64(19), result.Bytes)
	require.Equal(t, 1, result.Pending)
	require.True(t, result.Deleted)
	require.True(t, gone(t, s, old))
	require.False(t, gone(t, s, pending))

	out, _, err = collect(collector{delete: true, ended: true}, "one")
	require.NoError(t, err)
	require.Contains(t, out, pending)
	require.True(t, gone(t, s, pending))
	report, err := store.Verify(ctx, s, "one", nil)
	require.NoError(t, err)
	require.True(t, report.OK())
}

// All runs: a damaged run and a folder that belongs to no run do not keep it from the
// others.
func TestCollectAll(t *testing.T) {
	ctx := context.Background()
	s := store.NewMemory()
	long := strings.Repeat("long", 40)
	for _, run := range []string{"a/b", "damaged", long} {
		storedRun(t, s, run, 2)
	}
	plain, kept, shortened := leftover(t, s, "a/b", 0), leftover(t, s, "damaged", 0), leftover(t, s, long, 0)
	overwrite(t, s, store.ManifestKey("damaged", 0, 0), "{}")
	unknown := store.EscapeSegment(strings.Repeat("none", 40))
	require.NoError(t, s.Put(ctx, store.RunsDir+"/"+unknown+"/spec.json", []byte("{}"), store.PutOptions{}))

	var out, errOut bytes.Buffer
	c := collector{store: s, out: &out, errOut: &errOut, delete: true}
	require.ErrorIs(t, c.collect(ctx, nil), command.ErrSilent)
	require.True(t, gone(t, s, plain))
	require.True(t, gone(t, s, shortened))
	require.False(t, gone(t, s, kept))
	require.Contains(t, out.String(), "a/b: 1 object")
	require.Contains(t, out.String(), long+": 1 object")
	require.Contains(t, errOut.String(), "reprise: damaged: ")
	require.Contains(t, errOut.String(), "repair the run first")
	require.Contains(t, errOut.String(), "reprise: "+unknown+": nothing in this folder tells the run's id")
}

// With all runs go the shared programs that are old, at least as old as --grace.
func TestCollectPrograms(t *testing.T) {
	s := store.NewMemory()
	collect := func(c collector) string {
		var out bytes.Buffer
		c.store, c.out, c.errOut = s, &out, &out
		require.NoError(t, c.collect(t.Context(), nil))
		return out.String()
	}
	require.Empty(t, collect(collector{}))
	old, older := store.ProgramsDir("k")+"/1.program", store.ProgramsDir("k")+"/2.program"
	for key, days := range map[string]int{old: 31, older: 41, store.ProgramsDir("k") + "/3.program": 29} {
		s.SetTime(time.Now().AddDate(0, 0, -days))
		overwrite(t, s, key, "program")
	}
	out := collect(collector{grace: time.Hour})
	require.Contains(t, out, old)
	require.Contains(t, out, "shared programs: 2 objects, 14 bytes, written 30 days ago or more; kept: 1 younger\nnothing was deleted; --delete deletes these\n")
	require.Contains(t, collect(collector{grace: 40 * 24 * time.Hour, delete: true}), "shared programs: 1 object, 7 bytes, written 40 days ago or more; kept: 2 younger\ndeleted\n")
	require.True(t, gone(t, s, older))
	require.False(t, gone(t, s, old))
	var result struct {
		Prefix  string
		Objects []struct{ Key string }
		Young   int
		Deleted bool
	}
	require.NoError(t, json.Unmarshal([]byte(collect(collector{delete: true, asJSON: true})), &result))
	require.Equal(t, "programs/", result.Prefix)
	require.Equal(t, old, result.Objects[0].Key)
	require.Equal(t, 1, result.Young)
	require.True(t, result.Deleted)
	require.True(t, gone(t, s, old))
}

func TestGCFlags(t *testing.T) {
	_, _, err := execute(gcCommand(), "", "--grace", "-1h")
	require.ErrorContains(t, err, "--grace is -1h0m0s")
	_, _, err = execute(gcCommand(), "", "--ended")
	require.ErrorContains(t, err, "gc RUN --ended")
	_, _, err = execute(gcCommand(), "", "a", "b")
	require.Error(t, err)
}
