package device

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/model"
)

// The state kept across runs is bounded. The least recently used goes first, and the
// programs that a scan of other runs compiles do not push out each other.
func TestProgramsMakeRoom(t *testing.T) {
	e, err := NewEngine(engine(t).device)
	require.NoError(t, err)
	r := resolved(t, "room", tinySpec(t))
	var cache run.Contexts
	rc, err := cache.Read(t.Context(), r.store, r.Run)
	require.NoError(t, err)
	other := func(i int) programsKey {
		return programsKey{base: "another", shapes: model.Shapes{MicroBatch: 1, Sequence: 2 + i}}
	}
	fill := func(from, to int) {
		for i := from; i < to; i++ {
			_, err := e.prepared(other(i), rc, r.Run)
			require.NoError(t, err)
		}
	}
	t.Cleanup(func() { e.trim(0) })

	fill(0, maxPrograms)
	require.True(t, e.use(other(0)))
	e.BeginScan()
	require.True(t, e.room(rc, r.Run))
	require.Len(t, e.programs, maxPrograms-1)
	require.Contains(t, e.programs, other(0), "used again")
	require.NotContains(t, e.programs, other(1))
	_, err = e.all(rc, r.Run)
	require.NoError(t, err)
	require.Len(t, e.programs, maxPrograms)
	require.False(t, e.room(rc, r.Run), "nothing is missing")

	for key := range e.programs {
		require.True(t, e.use(key))
	}
	second := r.Run
	second.Base.Digest = "second"
	require.False(t, e.room(rc, second), "the look's own programs stay")
	require.Len(t, e.programs, maxPrograms)
	e.BeginScan()
	require.True(t, e.room(rc, second))
	require.Len(t, e.programs, maxPrograms-1)

	fill(100, 104) // a run may take more than the bound while it has the device
	require.Len(t, e.programs, maxPrograms+3)
	e.forget()
	require.Len(t, e.programs, maxPrograms)
	for i := 100; i < 104; i++ {
		require.Contains(t, e.programs, other(i))
	}
}

// Looking ahead leaves the programs of the run that computes, and an idle device to a run
// with more programs than are kept.
func TestLookingAheadLeavesTheOwner(t *testing.T) {
	e, err := NewEngine(engine(t).device)
	require.NoError(t, err)
	var cache run.Contexts
	waits := resolved(t, "waits", tinySpec(t))
	rc, err := cache.Read(t.Context(), waits.store, waits.Run)
	require.NoError(t, err)
	set := func(i int) programsKey {
		return programsKey{base: "another", shapes: model.Shapes{MicroBatch: 1, Sequence: 2 + i}}
	}
	t.Cleanup(func() { e.forget(); e.trim(0) })
	e.owner = activities.Run{ID: "computes"}
	for i := range maxPrograms {
		_, err := e.prepared(set(i), rc, activities.Run{ID: map[bool]string{true: "computes", false: "before"}[i < 3]})
		require.NoError(t, err)
	}
	e.BeginScan()
	require.True(t, e.room(rc, waits.Run))
	for i := range 3 {
		require.Contains(t, e.programs, set(i), "used least recently, and its own")
	}
	require.NotContains(t, e.programs, set(3))

	many := resolved(t, "many", tinySpec(t, `environment.name="`+walkName+`"`, "rollout.turns=18", "evaluation.every=0"))
	rc, err = cache.Read(t.Context(), many.store, many.Run)
	require.NoError(t, err)
	require.Greater(t, len(programKeys(rc, many.Run)), maxPrograms)
	require.False(t, e.room(rc, many.Run), "somebody computes")
	e.forget()
	e.BeginScan()
	require.True(t, e.room(rc, many.Run))
}
