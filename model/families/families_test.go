package families

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The counts are those of the published checkpoints.
func TestParameters(t *testing.T) {
	want := map[string]int64{
		"qwen2.5-0.5b": 494_032_768, "qwen2.5-1.5b": 1_543_714_304, "qwen2.5-3b": 3_085_938_688, "qwen2.5-7b": 7_615_616_512,
		"qwen2.5-14b": 14_770_033_664, "qwen2.5-32b": 32_763_876_352, "qwen2.5-72b": 72_706_203_648,
		"qwen3-0.6b": 596_049_920, "qwen3-1.7b": 1_720_574_976, "qwen3-4b": 4_022_468_096, "qwen3-8b": 8_190_735_360,
		"qwen3-14b": 14_768_307_200, "qwen3-32b": 32_762_123_264,
		"llama3-8b": 8_030_261_248, "llama3-70b": 70_553_706_496, "llama3.1-8b": 8_030_261_248, "llama3.1-70b": 70_553_706_496,
		"llama3.2-1b": 1_235_814_400, "llama3.2-3b": 3_212_749_824,
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
		"Qwen/Qwen3-8B": "qwen3-8b", "Qwen/Qwen3-0.6B-Base": "qwen3-0.6b", "meta-llama/Llama-3.2-1B-Instruct": "llama3.2-1b", "meta-llama/Llama-3.3-70B-Instruct": "llama3.1-70b",
	} {
		k, ok := OnHub(name)
		require.True(t, ok, name)
		require.Equal(t, want, k.Name)
	}
	for _, name := range []string{"Qwen/Qwen2.5-Coder-72B", "Qwen/Qwen3-32B-Base", "Qwen/Qwen3-30B-A3B", "qwen2.5-7b", ""} {
		_, ok := OnHub(name)
		require.False(t, ok, name)
	}
	_, err := ByName("Qwen2.5-7B")
	require.NoError(t, err)
	_, err = ByName("qwen2.5-0.6b")
	require.ErrorContains(t, err, `no shape is called "qwen2.5-0.6b": known are qwen2.5-0.5b, qwen2.5-1.5b, qwen2.5-3b`)
	require.ErrorContains(t, err, `; the nearest is "qwen2.5-0.5b"`)
}
