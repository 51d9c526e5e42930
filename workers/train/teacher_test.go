package train_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
	"github.com/reprise-rl/reprise/workers/train"
)

// A run learns from another's snapshot: on a device that is tested with the teacher's program too, to the same manifest twice, and
// its chain is whole as long as the teacher is.
func TestTrainWithATeacher(t *testing.T) {
	methodstest.Needs(t, "distill")
	plugintest.Needs(t)
	e, err := engine()
	require.NoError(t, err)
	s := store.NewMemory()
	_, err = train.New(e, s).Train(t.Context(), "teacher", []byte(everything))
	require.NoError(t, err)
	student := strings.Replace(everything, `"selection"`, `"credit": {"algorithm": "distill", "task_weight": 0.5}, "teacher": {"from": "run:teacher@1"}, "selection"`, 1)
	var heads []store.Ref
	var over store.Store
	for range 2 {
		over = store.NewOverlay(s)
		_, err := train.New(e, over).Train(t.Context(), "student", []byte(student))
		require.NoError(t, err)
		head, err := store.Head(t.Context(), over, "student")
		require.NoError(t, err)
		require.Contains(t, head.Manifest.Metrics, "actor/teacher_kl")
		require.Contains(t, head.Manifest.Programs, "teacher.forward")
		heads = append(heads, head.Ref)
	}
	require.Equal(t, heads[0], heads[1])

	verified, err := store.Verify(t.Context(), over, "student", nil)
	require.NoError(t, err)
	require.True(t, verified.OK())
	m, err := store.ReadManifest(t.Context(), over, heads[1])
	require.NoError(t, err)
	weights := m.Teacher.Files["model.safetensors"]
	body, err := store.GetArtifact(t.Context(), over, weights)
	require.NoError(t, err)
	body[len(body)-1] ^= 1
	require.NoError(t, over.Put(t.Context(), weights.Key, body, store.PutOptions{}))
	verified, err = store.Verify(t.Context(), over, "student", nil)
	require.NoError(t, err)
	require.False(t, verified.OK())
}

// A run whose policy is its own teacher ends in the same manifest twice, and no model but its own has to be whole.
func TestTrainItsOwnTeacher(t *testing.T) {
	methodstest.Needs(t, "sdar")
	plugintest.Needs(t)
	e, err := engine()
	require.NoError(t, err)
	document := strings.Replace(everything, `"selection"`, `"credit": {"algorithm": "sdar"}, "teacher": {"from": "self", "context": "success", "context_tokens": 96}, "selection"`, 1)
	var heads []store.Ref
	for range 2 {
		s := store.NewMemory()
		_, err := train.New(e, s).Train(t.Context(), "own", []byte(document))
		require.NoError(t, err)
		head, err := store.Head(t.Context(), s, "own")
		require.NoError(t, err)
		require.Contains(t, head.Manifest.Metrics, "actor/teacher_shown")
		require.Contains(t, head.Manifest.Programs, "teacher.forward")
		require.Nil(t, head.Manifest.Teacher)
		heads = append(heads, head.Ref)
		verified, err := store.Verify(t.Context(), s, "own", nil)
		require.NoError(t, err)
		require.True(t, verified.OK())
	}
	require.Equal(t, heads[0], heads[1])
}
