package chaos

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/workers/measure/gpu"
)

// TestGPU runs what is run on a machine with a card, on this one at a tiny size: every part ends
// and writes what it found, also one whose time is up.
func TestGPU(t *testing.T) {
	beside(t)
	run := func(arguments ...string) (report gpu.Report, err error) {
		t.Helper()
		out := t.TempDir()
		cmd := exec.CommandContext(t.Context(), program, append([]string{"gpu", "--tiny", "--out", out, "--xla-flags", xlaFlags()}, arguments...)...)
		cmd.Dir, cmd.Env = "../..", environment
		text, err := cmd.CombinedOutput()
		content, readErr := os.ReadFile(filepath.Join(out, gpu.ReportFile))
		require.NoError(t, readErr, string(text))
		require.NoError(t, json.Unmarshal(content, &report))
		require.FileExists(t, filepath.Join(out, gpu.SummaryFile))
		return report, err
	}
	report, err := run()
	var names []string
	for _, r := range report.Results {
		names = append(names, r.Part)
		require.Empty(t, r.Failed, "%s: %s", r.Part, r.Log)
		require.NotEmpty(t, r.Figures, r.Part)
	}
	require.NoError(t, err)
	require.Equal(t, gpu.Parts(), names)

	// A wrong golden is a line, and what cannot begin is one.
	wrong := filepath.Join(t.TempDir(), "wrong")
	require.NoError(t, os.CopyFS(wrong, os.DirFS("../../model/testdata/qwen2-tiny")))
	golden := filepath.Join(wrong, "golden.json")
	content, err := os.ReadFile(golden)
	require.NoError(t, err)
	var g map[string]any
	require.NoError(t, json.Unmarshal(content, &g))
	row := g["forward"].(map[string]any)["logprobs"].([]any)[0].([]any)
	row[0] = row[0].(float64) + 1e-3
	content, err = json.Marshal(g)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(golden, content, 0o600))
	report, err = run("--part", "goldens,device", "--goldens", wrong)
	require.Error(t, err)
	require.NotEmpty(t, report.Results[0].Failed)
	require.Contains(t, report.Results[0].Log, "other numbers")
	require.Empty(t, report.Results[1].Failed, "what failed stops nothing")
	report, err = run("--part", "device", "--limit", "1ms")
	require.Error(t, err)
	require.NotEmpty(t, report.Results[0].Failed)
}
