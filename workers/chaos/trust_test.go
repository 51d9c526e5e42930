package chaos

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/reprise-rl/reprise/infra/dev"
	"github.com/reprise-rl/reprise/infra/dev/devtest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows"
)

// TestChaosDivergence resets a finished run to before its last iteration. A worker that
// repeats it commits the same. The commit stops a worker that samples other log-probs,
// and nothing that was committed changes.
func TestChaosDivergence(t *testing.T) {
	beside(t)
	want := reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	p := l.worker(workerOptions{})
	l.start(chaosRun, preset(t, "chaos", nil))
	l.completes(chaosRun)
	before, ref, err := store.ReadManifestAt(t.Context(), l.store, chaosRun, 0, 5)
	require.NoError(t, err)
	reset := func() {
		t.Helper()
		at := l.decisionBefore(chaosRun, "Generate", before.Turns[0].Generate.Key)
		_, err := l.cli("workflow", "reset", "--workflow-id", chaosRun, "--event-id", fmt.Sprint(at), "--reason", "a test")
		require.NoError(t, err)
	}

	// A worker that computes the same bits commits the same manifest again. The
	// reset run believes in a session whose worker is gone.
	p.kill()
	reset()
	p = l.worker(workerOptions{})
	l.completes(chaosRun)
	same(t, want, reach(t, l.store, chaosRun))
	p.kill()

	reset()
	diverging := l.worker(workerOptions{diverge: "Generate/1"})
	reason := l.failsWith(chaosRun)
	require.Contains(t, diverging.text(), "diverged: ")
	require.Contains(t, reason, "type: Divergence")
	require.Contains(t, reason, "retryable: false")
	require.Contains(t, reason, "stored is "+ref.Digest)
	require.Regexp(t, `this attempt computed [0-9a-f]{64}`, reason)
	require.Contains(t, reason, "turns[0].generate")
	diverging.kill()
	l.isAs(chaosRun, want)
}

// decisionBefore is the event in which the workflow decided on the last activity
// of a kind whose result names an artifact.
func (l *lane) decisionBefore(id, kind, artifact string) int64 {
	l.t.Helper()
	decided, found := map[int64]int64{}, int64(0)
	var decision int64
	events := l.client.GetWorkflowHistory(l.t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(l.t, err)
		if e.EventType == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			decision = e.EventId
		}
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil && a.ActivityType.Name == kind {
			decided[e.EventId] = decision
		}
		if a := e.GetActivityTaskCompletedEventAttributes(); a != nil && decided[a.ScheduledEventId] > 0 {
			for _, payload := range a.Result.GetPayloads() {
				if bytes.Contains(payload.Data, []byte(artifact)) {
					found = decided[a.ScheduledEventId]
				}
			}
		}
	}
	require.NotZero(l.t, found, "no %s made %s", kind, artifact)
	return found
}

// TestChaosFingerprint has only a worker of another fingerprint up: the run waits for its
// own kind, says so, and continues when that is back.
func TestChaosFingerprint(t *testing.T) {
	beside(t)
	want := reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	first := l.worker(workerOptions{fault: "Update#2/begin/1"})
	l.start(chaosRun, preset(t, "chaos", nil))
	first.dies(t)
	other := l.worker(workerOptions{trace: true, flags: []string{"--xla-flags", "--xla_cpu_enable_fast_min_max=true"}})
	s := l.reaches(chaosRun, "a wait that names both fingerprints", func(s workflows.Status) bool {
		return s.Waiting != nil && len(s.Waiting.Present) > 0
	})
	require.Equal(t, l.manifest(chaosRun, 0).Fingerprint, s.Waiting.Wanted)
	require.Len(t, s.Waiting.Present, 1)
	require.NotContains(t, s.Waiting.Present, s.Waiting.Wanted)
	other.says(t, fmt.Sprintf("%q: %q", "fingerprint", s.Waiting.Present[0]), time.Minute)
	require.Equal(t, 1, l.committed(chaosRun))
	l.worker(workerOptions{})
	l.completes(chaosRun)
	require.NotContains(t, other.text(), " took", "the run's work needs its own kind of device")
	l.isAs(chaosRun, want)
}

// TestChaosDatabase loses Temporal's database in the middle of a run. The same start
// again resumes after the last commit; another spec is refused.
func TestChaosDatabase(t *testing.T) {
	beside(t)
	want := reference(t)
	dir := t.TempDir()
	stack, err := dev.Start(t.Context(), dev.Options{Dir: dir})
	devtest.Needs(t, err)
	require.NoError(t, err)
	t.Cleanup(func() { _ = stack.Stop() })
	l := newLane(t, stack).withStarter()
	first := l.worker(workerOptions{fault: "Score#3/begin/1"})
	l.start(chaosRun, preset(t, "chaos", nil))
	first.dies(t)
	require.Equal(t, 2, l.committed(chaosRun))
	require.NoError(t, stack.Stop())
	lost, err := filepath.Glob(filepath.Join(dir, "temporal.db*"))
	require.NoError(t, err)
	require.NotEmpty(t, lost)
	for _, file := range lost {
		require.NoError(t, os.Remove(file))
	}

	l = newLane(t, ownStack(t, dev.Options{Dir: dir}))
	second := l.worker(workerOptions{trace: true})
	l.start(chaosRun, preset(t, "chaos", map[string]any{"update.learning_rate": 1e-4, "seed": 2}))
	reason := l.failsWith(chaosRun)
	require.Contains(t, reason, "type: SpecDiffers")
	require.Contains(t, reason, "retryable: false")
	require.Contains(t, reason, "update.learning_rate")
	require.Contains(t, reason, "seed")

	l.start(chaosRun, preset(t, "chaos", nil))
	l.completes(chaosRun)
	require.NoError(t, saysTimes(second, "Update took", 3))
	if !l.hindered() {
		require.Error(t, saysTimes(second, "Update took", 4), "iterations 3, 4 and 5 were left")
	}
	l.isAs(chaosRun, want)
}

// TestChaosBucket begins with a bucket that is not there and with wrong
// credentials: both are seen in `temporal workflow describe` and retried, and the run
// continues when they are repaired.
func TestChaosBucket(t *testing.T) {
	beside(t)
	want := reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	s3 := l.stack.S3()
	settings := func(bucket, secret string) workerOptions {
		// Flags: the lane's stack is named, and beats the environment.
		return workerOptions{
			flags: []string{"--s3-endpoint", "http://" + s3.Endpoint, "--s3-region", s3.Region, "--s3-bucket", bucket, "--s3-path-style"},
			env:   []string{"AWS_ACCESS_KEY_ID=" + s3.AccessKey, "AWS_SECRET_ACCESS_KEY=" + secret},
		}
	}
	p := l.worker(settings("nowhere", s3.SecretKey))
	l.start(chaosRun, preset(t, "chaos", nil))
	l.pendingSays(chaosRun, "no such bucket")
	p.kill()
	p = l.worker(settings(s3.Bucket, "wrong"))
	l.pendingSays(chaosRun, "access denied")
	p.kill()
	l.worker(settings(s3.Bucket, s3.SecretKey))
	l.completes(chaosRun)
	l.isAs(chaosRun, want)
}

// TestChaosReplay computes iterations of the undisturbed run again.
func TestChaosReplay(t *testing.T) {
	beside(t)
	reference(t)
	iterations := []int{0, 3}
	if *full {
		iterations = []int{0, 1, 2, 3, 4, 5}
	}
	l := &lane{t: t, stack: sharedStack(t), prefix: "undisturbed"}
	for _, n := range iterations {
		out, err := l.reprise("replay", chaosRun, "--iteration", fmt.Sprint(n))
		require.NoError(t, err, out)
		require.Contains(t, out, fmt.Sprintf("iteration %d of chaos is the same, bit for bit", n))
	}
}

// TestChaosDamage flips a byte in one stored artifact and removes another:
// verify names both.
func TestChaosDamage(t *testing.T) {
	beside(t)
	want := reference(t)
	ctx := context.Background()
	l := &lane{t: t, stack: sharedStack(t), prefix: "damage"}
	l.store = l.open(l.prefix)
	whole := l.open("undisturbed")
	var keys []string
	for key := range want {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		b, _, err := store.ReadFixed(ctx, whole, key, 1<<30)
		require.NoError(t, err)
		require.NoError(t, l.store.Put(ctx, key, b, store.PutOptions{}))
	}
	l.verifies(chaosRun)
	m := l.manifest(chaosRun, 3)
	altered, missing := m.Batch.Key, m.Turns[0].Step.Key
	b, _, err := store.ReadFixed(ctx, l.store, altered, 1<<30)
	require.NoError(t, err)
	b[len(b)/2] ^= 1
	require.NoError(t, l.store.Put(ctx, altered, b, store.PutOptions{}))
	require.NoError(t, l.store.Delete(ctx, missing))
	out, err := l.reprise("verify", chaosRun)
	require.Error(t, err)
	require.Contains(t, out, altered)
	require.Contains(t, out, missing)
	require.Contains(t, out, "altered")
	require.Contains(t, out, "missing")
	require.Contains(t, out, "chaos is damaged: 2 problems")
}
