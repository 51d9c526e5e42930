package families

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The counts are those of the published checkpoints.
func TestParametersOfQwen25(t *testing.T) {
	want := map[string]int64{
		"qwen2.5-0.5b": 494_032_768, "qwen2.5-1.5b": 1_543_714_304, "qwen2.5-3b": 3_085_938_688, "qwen2.5-7b": 7_615_616_512,
		"qwen2.5-14b": 14_770_033_664, "qwen2.5-32b": 32_763_876_352, "qwen2.5-72b": 72_706_203_648,
	}
	require.Len(t, Names(), len(want))
	for _, name := range Names() {
		k, err := ByName(name)
		require.NoError(t, err)
		var n int64
		for _, x := range k.Config.Tensors() {
			n += int64(x.Elements())
		}
		require.Equal(t, want[name], n, name)
	}
}

func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"Qwen/Qwen2.5-0.5B": "qwen2.5-0.5b", "Qwen/Qwen2.5-7B-Instruct": "qwen2.5-7b", "qwen/qwen2.5-coder-3b-instruct": "qwen2.5-3b",
	} {
		k, ok := OnHub(name)
		require.True(t, ok, name)
		require.Equal(t, want, k.Name)
	}
	for _, name := range []string{"Qwen/Qwen2.5-Coder-72B", "Qwen/Qwen3-8B", "qwen2.5-7b", ""} {
		_, ok := OnHub(name)
		require.False(t, ok, name)
	}
	_, err := ByName("Qwen2.5-7B")
	require.NoError(t, err)
	_, err = ByName("qwen2.5-0.6b")
	require.EqualError(t, err, `no shape is called "qwen2.5-0.6b": known are qwen2.5-0.5b, qwen2.5-1.5b, qwen2.5-3b, qwen2.5-7b, qwen2.5-14b, qwen2.5-32b, qwen2.5-72b; the nearest is "qwen2.5-0.5b"`)
}
