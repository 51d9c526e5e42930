package bucket

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// What was written before a time goes, of whatever key; nothing outside the folder does.
func TestOldPrograms(t *testing.T) {
	s := store.NewMemory()
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for key, days := range map[string]int{
		"programs/a/1.program": 0, "programs/a/2.record": 29, "programs/b/3.program": 30, "programs/b/4.program": 31, "programs.json": 0, "runs/r/spec.json": 0,
	} {
		s.SetTime(at.AddDate(0, 0, days))
		put(t, s, key, 10)
	}
	old, err := FindOldPrograms(t.Context(), s, at.AddDate(0, 0, 30))
	require.NoError(t, err)
	require.Equal(t, []int{2, 20, 2}, []int{len(old.Objects), int(old.Bytes), old.Young})
	require.NoError(t, old.Delete(t.Context(), s))
	var left []string
	for _, o := range s.Own() {
		left = append(left, o.Key)
	}
	require.Equal(t, []string{"programs.json", "programs/b/3.program", "programs/b/4.program", "runs/r/spec.json"}, left)
}
