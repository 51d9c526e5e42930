package program

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers/command"
	"github.com/reprise-rl/reprise/workers/validate"
	"github.com/reprise-rl/reprise/workflows/spec"
)

func TestValidateEvaluateModel(t *testing.T) {
	t.Setenv("REPRISE_S3_BUCKET", "")
	nowhere := []string{"--evaluate", "--dev-dir", t.TempDir()}
	input := `{"policy":"folder:` + goldenFolder(t) + `","suites":["bandit",{"environment":{"name":"frozenlake"},"think":false,"turns":2}],"max_new_tokens":16}`
	out, _, err := execute(validateCommand(), input, append(nowhere, "-", "--json")...)
	require.NoError(t, err)
	var r struct {
		OK    bool
		Input struct {
			Policy validate.Policy
			Suites []spec.Suite
		}
		Unknown string
	}
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.True(t, r.OK)
	require.Empty(t, r.Unknown)
	require.Equal(t, spec.BFloat16, r.Input.Policy.ComputeDtype)
	require.Len(t, r.Input.Suites[0].PromptTokens, 5)
	require.Len(t, r.Input.Suites[1].PromptTokens, 2)
	require.Equal(t, "frozenlake", r.Input.Suites[1].Name)

	out, _, err = execute(validateCommand(), `{"policy":"hf:a/b","suites":["bandit"]}`, append(nowhere, "-")...)
	require.NoError(t, err)
	require.Contains(t, out, "The widths of the contexts are left out: hf:a/b is fetched at the start\n")

	out, _, err = execute(validateCommand(), `{"policy":"hf:a/b","suits":[]}`, append(nowhere, "-")...)
	require.ErrorIs(t, err, command.ErrSilent)
	require.Contains(t, out, "-: 2 problems:\n")
	require.Contains(t, out, `did you mean "suites"?`)
	out, _, err = execute(validateCommand(), `{"policy":"hf:a/b","suites":["in-distribution"]}`, append(nowhere, "-", "--json")...)
	require.ErrorIs(t, err, command.ErrSilent)
	require.Contains(t, out, `{"ok":false,"problems":[{"path":"suites[0]"`)
}
