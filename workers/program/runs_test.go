package program

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/build"
	"github.com/reprise-rl/reprise/workers/runs"
)

func TestPrintRuns(t *testing.T) {
	started := time.Date(2026, 2, 3, 4, 5, 6, 0, time.Local)
	ended := started.Add(time.Minute)
	twelve, reward, success := int64(12), 0.25, 0.5
	var out bytes.Buffer
	require.NoError(t, printRuns(&out, []runs.Run{
		{ID: "bandit-1\x1b", Kind: "Train", State: "running", Iterations: &twelve, Reward: &reward, Success: &success, Started: started},
		{ID: "fig7", Kind: "Sweep", State: "done", Started: started, Ended: &ended},
		{ID: "fig8", Kind: "Sweep", State: "running", Trials: &runs.Trials{Done: 4, Of: 18}, Started: started},
	}, 3, false))
	require.Equal(t, `id         kind   state    iterations      reward  success  since
bandit-1   Train  running  12              0.250   50 %     2026-02-03 04:05:06
fig7       Sweep  done     –               –       –        2026-02-03 04:06:06
fig8       Sweep  running  4 of 18 trials  –       –        2026-02-03 04:05:06
3 older ones are left out (--limit 0 lists all)
`, out.String())
	out.Reset()
	require.NoError(t, printRuns(&out, []runs.Run{
		{ID: "bandit-1", Kind: "Train", State: "running", Started: started, Pending: &runs.Pending{Activity: "Commit", Attempt: 9, Error: strings.Repeat("x", 500)}},
	}, 0, false))
	require.Contains(t, out.String(), "\nbandit-1: Commit is tried again (attempt 9): xxx")
	require.Len(t, strings.Split(out.String(), "\n")[2], len("bandit-1: ")+maxLine+len("…"))
	out.Reset()
	require.NoError(t, printRuns(&out, nil, 0, true))
	require.Contains(t, out.String(), "No runs. Start one: temporal workflow start")
	out.Reset()
	require.NoError(t, printRuns(&out, []runs.Run{
		{ID: "bandit-1", Kind: "Train", State: "running", Build: "reprise:v1", Iterations: &twelve, Started: started},
		{ID: "bandit-2", Kind: "Train", State: "running", Build: runs.Unversioned, Started: started},
		{ID: "bandit-3", Kind: "Train", State: "running", Started: started},
	}, 0, true))
	require.Equal(t, `id        kind   state    build        iterations  reward  success  since
bandit-1  Train  running  reprise:v1   12          –       –        2026-02-03 04:05:06
bandit-2  Train  running  unversioned  –           –       –        2026-02-03 04:05:06
bandit-3  Train  running  –            –           –       –        2026-02-03 04:05:06
`, out.String())
}

func TestPrintVersion(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, printVersion(&out, versionInfo{Info: build.Info{Version: "v0.2.0", Commit: "0123456789abcdef", Go: "go1.26", Platform: "linux/amd64"}, Plugin: "p 1"}))
	require.Equal(t, "reprise v0.2.0 (commit 0123456789ab)\nlinux/amd64, go1.26; PJRT plugin pinned: p 1\n", out.String())
	require.NotEmpty(t, versionOf().Plugin)
}
