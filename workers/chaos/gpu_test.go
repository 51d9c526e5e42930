package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/workers/lab/gpu"
)

// buildLab builds the measuring tools beside the program.
var buildLab = sync.OnceValues(func() (string, error) {
	path := program + "-lab"
	text, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "github.com/reprise-rl/reprise/workers/reprise-lab").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build reprise-lab: %w\n%s", err, text)
	}
	return path, nil
})

// lab is the path of the measuring tools.
func lab(t *testing.T) string {
	t.Helper()
	path, err := buildLab()
	require.NoError(t, err)
	return path
}

// TestGPU runs what is run on a machine with a card, on this one at a tiny size: every part ends
// and writes what it found, also one whose time is up.
func TestGPU(t *testing.T) {
	plugintest.Needs(t)
	beside(t)
	run := func(arguments ...string) (report gpu.Report, err error) {
		t.Helper()
		out := t.TempDir()
		cmd := exec.CommandContext(t.Context(), lab(t), append([]string{"gpu", "--tiny", "--out", out, "--xla-flags", xlaFlags()}, arguments...)...)
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

// TestGPUGoesOn ends a part that trains before its runs have ended, and calls it again: it goes on
// from the stack that is kept, or without it begins anew beside the record, and ends with the same
// states. The model's file comes in two parts. A state that differs is a failure.
func TestGPUGoesOn(t *testing.T) {
	plugintest.Needs(t)
	beside(t)
	const part = "smol-bandit"
	out := t.TempDir()
	content, err := os.ReadFile("../../model/gguf/testdata/tiny.gguf")
	require.NoError(t, err)
	files := []string{filepath.Join(t.TempDir(), "tiny.gguf.0"), filepath.Join(t.TempDir(), "tiny.gguf.1")}
	require.NoError(t, os.WriteFile(files[0], content[:len(content)/3], 0o600))
	require.NoError(t, os.WriteFile(files[1], content[len(content)/3:], 0o600))
	record := filepath.Join(out, part+".json")
	read := func() (of gpu.Twins) {
		t.Helper()
		content, err := os.ReadFile(record)
		if err == nil {
			err = json.Unmarshal(content, &of)
		}
		require.True(t, err == nil || os.IsNotExist(err), "%v", err)
		return of
	}
	write := func(of gpu.Twins) {
		t.Helper()
		content, err := json.Marshal(of)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(record, content, 0o600))
	}
	call := func(arguments ...string) gpu.Result {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), lab(t), append([]string{"gpu", "--tiny", "--out", out, "--xla-flags", xlaFlags(),
			"--part", part, "--model", files[0], "--model", files[1]}, arguments...)...)
		cmd.Dir, cmd.Env = "../..", environment
		text, runErr := cmd.CombinedOutput()
		var report gpu.Report
		content, err := os.ReadFile(filepath.Join(out, gpu.ReportFile))
		require.NoError(t, err, string(text))
		require.NoError(t, json.Unmarshal(content, &report))
		require.Equal(t, report.Failed(), runErr != nil, string(text))
		return report.Results[0]
	}
	ended := func(arguments ...string) gpu.Twins {
		t.Helper()
		r := call(arguments...)
		require.Empty(t, r.Failed, r.Log)
		of := read()
		require.Len(t, of.Undisturbed, of.Iterations)
		require.Equal(t, of.Undisturbed, of.Killed)
		require.Len(t, of.Kills, 1)
		require.NotEmpty(t, of.Kills[0].Witness)
		require.NotEqual(t, of.Killed[0].State, of.Killed[1].State, "a state that never changes says nothing")
		return of
	}
	call("--limit", "15s") // however far it comes
	early := read()
	whole := ended()
	for n, c := range early.Undisturbed { // perhaps none
		require.Equal(t, whole.Undisturbed[n], c, "iteration %d", n)
	}
	require.GreaterOrEqual(t, whole.UndisturbedSeconds, early.UndisturbedSeconds)

	// A machine without what was kept.
	cut := whole
	cut.Undisturbed, cut.Killed, cut.Kills = whole.Undisturbed[:2], whole.Killed[:1], nil
	write(cut)
	require.NoError(t, os.RemoveAll(filepath.Join(out, "kept", part)))
	again := ended()
	require.Equal(t, whole.Killed, again.Killed)

	planted := read()
	planted.Killed[2].State = fmt.Sprintf("%032d", 0)
	write(planted)
	r := call()
	require.NotEmpty(t, r.Failed)
	require.Contains(t, r.Log, "other bits")
}
