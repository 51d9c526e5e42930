package program

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFromGGUFCommand(t *testing.T) {
	const tiny = "../../model/gguf/testdata/tiny.gguf"
	dir := filepath.Join(t.TempDir(), "tiny")
	out, _, err := execute(policyCommand(), "", "from-gguf", tiny, dir, "--dtype", "bfloat16")
	require.NoError(t, err)
	require.Contains(t, out, "tiny: 78656 parameters, ")
	require.Contains(t, out, " of bfloat16\n")
	require.FileExists(t, filepath.Join(dir, "tokenizer.json"))
	for says, args := range map[string][]string{
		"FILE or DIR is missing":          {"from-gguf", tiny},
		"must be float32 or bfloat16":     {"from-gguf", tiny, dir, "--dtype", "float16"},
		"holds something else":            {"from-gguf", tiny, dir},
		"this is not a GGUF file":         {"from-gguf", "policygguf_test.go", dir + "2"},
		"no such file":                    {"from-gguf", "none.gguf", dir + "2"},
		"2 parts: read GGUF: invalid GGU": {"from-gguf", tiny, tiny, dir + "2"},
	} {
		_, _, err := execute(policyCommand(), "", args...)
		require.ErrorContains(t, err, says)
	}
}
