package chaos

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
)

// Bytes are all objects that a run's final manifest reaches, and the digest of
// what is really stored.
type Bytes map[string]string

// reach reads every object that the newest manifest of a run reaches.
func reach(t *testing.T, s store.Store, run string) Bytes {
	t.Helper()
	head, err := store.Head(t.Context(), s, run)
	require.NoError(t, err)
	chain, err := store.LoadChain(t.Context(), s, head.Ref)
	require.NoError(t, err)
	out := Bytes{}
	add := func(key string) {
		if _, have := out[key]; have {
			return
		}
		b, _, err := store.ReadFixed(t.Context(), s, key, 1<<30)
		require.NoError(t, err)
		out[key] = canon.Digest(b)
	}
	add(head.Ref.Key)
	for _, link := range chain {
		for _, ref := range link.Manifest.Refs() {
			add(ref.Key)
		}
	}
	return out
}

// same requires that two runs have the same bytes, and names what differs.
func same(t *testing.T, want, have Bytes) {
	t.Helper()
	var differ []string
	keys := maps.Clone(want)
	maps.Copy(keys, have)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		switch {
		case have[key] == "":
			differ = append(differ, key+": only in the undisturbed run")
		case want[key] == "":
			differ = append(differ, key+": not in the undisturbed run")
		case want[key] != have[key]:
			differ = append(differ, key+": other bytes")
		}
	}
	require.Empty(t, differ)
}

// chaosRun is the run that is disturbed: it has the same id everywhere.
const chaosRun = "chaos"

// undisturbed is the run that nobody disturbs, made once.
var undisturbed struct {
	sync.Mutex
	bytes  Bytes
	models map[string][]byte
}

// reference gives the bytes of the undisturbed run of the preset chaos.
func reference(t *testing.T) Bytes {
	t.Helper()
	undisturbed.Lock()
	defer undisturbed.Unlock()
	if undisturbed.bytes != nil {
		return undisturbed.bytes
	}
	// It belongs to whichever test comes first, in a lane of its own.
	l := newNamedLane(t, sharedStack(t), "undisturbed", true)
	p := l.worker(workerOptions{})
	l.start(chaosRun, preset(t, "chaos", nil))
	l.completes(chaosRun)
	p.kill()
	l.verifies(chaosRun)
	undisturbed.models = map[string][]byte{}
	for o, err := range l.store.List(t.Context(), store.ModelPrefix) {
		require.NoError(t, err)
		b, _, err := store.ReadFixed(t.Context(), l.store, o.Key, 1<<30)
		require.NoError(t, err)
		undisturbed.models[o.Key] = b
	}
	undisturbed.bytes = reach(t, l.store, chaosRun)
	t.Logf("the undisturbed run: %d objects, head %s", len(undisturbed.bytes), undisturbed.bytes[store.ManifestKey(chaosRun, 0, 5)])
	return undisturbed.bytes
}

// withStarter copies the starter that the undisturbed run made, so that the
// warm start is not done again.
func (l *lane) withStarter() *lane {
	l.t.Helper()
	reference(l.t)
	for _, key := range slices.Sorted(maps.Keys(undisturbed.models)) {
		require.NoError(l.t, l.store.Put(l.t.Context(), key, undisturbed.models[key], store.PutOptions{}))
	}
	return l
}
