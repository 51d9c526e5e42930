package chaos

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/storetest"
	"github.com/reprise-rl/reprise/workflows"
)

// damage flips a bit of an object in the bucket, and gives what it was.
func (l *lane) damage(key string) []byte {
	l.t.Helper()
	body, _, err := store.ReadFixed(l.t.Context(), l.store, key, 1<<30)
	require.NoError(l.t, err)
	other := append([]byte(nil), body...)
	other[len(other)/2] ^= 1
	require.NoError(l.t, l.store.Put(l.t.Context(), key, other, store.PutOptions{}))
	return body
}

// find is the key of the one object whose key begins and ends so.
func (l *lane) find(prefix, suffix string) (key string) {
	l.t.Helper()
	for o, err := range l.store.List(l.t.Context(), prefix) {
		require.NoError(l.t, err)
		if strings.HasSuffix(o.Key, suffix) {
			require.Empty(l.t, key)
			key = o.Key
		}
	}
	require.NotEmpty(l.t, key)
	return key
}

// TestChaosBadReads flips a bit in the first answer to some kinds of reads of a whole run. The bucket is undamaged, and the run
// ends as an undisturbed one; with -full each kind of read.
func TestChaosBadReads(t *testing.T) {
	t.Parallel()
	want := reference(t)
	rounds := 1
	if *full {
		rounds = shares
	}
	for round := range rounds {
		t.Run(string(rune('0'+round)), func(t *testing.T) {
			beside(t)
			l := newLane(t, sharedStack(t)).withStarter()
			flips := once(round, func(int) *storetest.Answer { return &storetest.Answer{Flip: true} })
			proxy := storetest.StartProxy(t, "http://"+l.stack.S3().Endpoint, func(r storetest.Request) *storetest.Answer {
				if r.Call != storetest.Get {
					return nil
				}
				return flips(r)
			})
			l.worker(workerOptions{flags: l.through(proxy), env: l.keys()})
			l.start(chaosRun, preset(t, "chaos", nil))
			l.completes(chaosRun)
			t.Logf("%d bits flipped", len(proxy.Given()))
			require.NotEmpty(t, proxy.Given(), "the faults have happened")
			l.isAs(chaosRun, want)
		})
	}
}

// TestChaosDamagedTable damages a table of an iteration that is not committed. The step that reads it has the iteration done again: the
// step that made it deletes it and writes it again, and says so, and the run ends with the same bytes and a warning.
func TestChaosDamagedTable(t *testing.T) {
	beside(t)
	want := reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	first := l.worker(workerOptions{fault: "Step#2/begin/1"})
	l.start(chaosRun, preset(t, "chaos", nil))
	first.dies(t)
	key := l.find(store.IterationDir(chaosRun, 0, 2)+"/turn-1.generate.", ".parquet")
	l.damage(key)
	second := l.worker(workerOptions{})
	l.completes(chaosRun)
	s, err := l.status(chaosRun)
	require.NoError(t, err)
	require.Contains(t, strings.Join(s.Warnings, "\n"), "iteration 2 is done again, since an artifact of it was damaged or gone: ")
	require.Contains(t, strings.Join(s.Warnings, "\n"), key)
	require.Contains(t, second.text(), "an object was damaged in the bucket; no manifest names it, so it is written again")
	require.Contains(t, second.text(), key)
	l.isAs(chaosRun, want)
}

// TestChaosDamagedSnapshot damages the newest snapshot and kills the worker: the next one rebuilds the policy from the snapshot before, the run
// warns and ends with the same manifests. verify names the object, until it is put back.
func TestChaosDamagedSnapshot(t *testing.T) {
	beside(t)
	want := reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	first := l.worker(workerOptions{fault: "Generate#4/begin/1"})
	l.start(chaosRun, preset(t, "chaos", nil))
	first.dies(t)
	key := l.find(store.SnapshotPrefix(chaosRun, 0, 4), "/model.safetensors")
	body := l.damage(key)
	l.worker(workerOptions{flags: []string{"--follow", "0"}}) // one that follows the run may not read the snapshot
	l.completes(chaosRun)
	s, err := l.status(chaosRun)
	require.NoError(t, err)
	require.Contains(t, strings.Join(s.Warnings, "\n"), "the snapshot of version 4 is damaged or gone")
	out, err := l.reprise("verify", chaosRun)
	require.Error(t, err)
	require.Contains(t, out, "altered: "+key)
	require.NoError(t, l.store.Put(t.Context(), key, body, store.PutOptions{}))
	l.isAs(chaosRun, want)
}

// TestChaosHungBucket has the bucket take every request and answer none for half a minute: what waits says for what, and nobody blames the
// device. It takes that time, so it is of the whole matrix.
func TestChaosHungBucket(t *testing.T) {
	if !*full {
		t.Skip("takes half a minute: make chaos")
	}
	beside(t)
	want := reference(t)
	l := newLane(t, sharedStack(t)).withStarter()
	proxy := storetest.StartProxy(t, "http://"+l.stack.S3().Endpoint, nil)
	l.worker(workerOptions{flags: l.through(proxy), env: l.keys()})
	l.start(chaosRun, preset(t, "chaos", nil))
	l.reaches(chaosRun, "iteration 1", func(s workflows.Status) bool { return s.Iteration >= 1 })
	proxy.Rule(func(storetest.Request) *storetest.Answer { return &storetest.Answer{Hang: true} })
	begin := time.Now()
	l.pendingSays(chaosRun, "no answer in 20 s")
	require.Less(t, time.Since(begin), time.Minute)
	require.NotEmpty(t, proxy.Given())
	proxy.Rule(nil)
	l.completes(chaosRun)
	s, err := l.status(chaosRun)
	require.NoError(t, err)
	require.Zero(t, s.LostDevices)
	l.isAs(chaosRun, want)
}
