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

// Bytes are all objects that a run's manifests reach, and the digest of what is
// really stored.
type Bytes map[string]string

// reach reads every object that the newest manifests of a run's branches reach.
func reach(t *testing.T, s store.Store, run string) Bytes {
	t.Helper()
	out := Bytes{}
	add := func(key string) {
		if _, have := out[key]; have {
			return
		}
		b, _, err := store.ReadFixed(t.Context(), s, key, 1<<30)
		require.NoError(t, err)
		out[key] = canon.Digest(b)
	}
	branches, err := store.Branches(t.Context(), s, run)
	require.NoError(t, err)
	for _, branch := range branches {
		head, err := store.HeadOf(t.Context(), s, run, branch)
		require.NoError(t, err)
		chain, err := store.LoadChain(t.Context(), s, head.Ref)
		require.NoError(t, err)
		add(head.Ref.Key)
		for _, link := range chain {
			for _, ref := range link.Manifest.Refs() {
				add(ref.Key)
			}
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

// scene is a run that tests disturb, with the objects of its undisturbed twin.
type scene struct {
	lane   string // where the undisturbed run is
	preset string
	change map[string]any // of the preset
	quick  bool           // its workers compile as xlaFlags says

	sync.Mutex
	bytes  Bytes
	models map[string][]byte
	deeds  deeds
}

// single is the run of one turn: most tests disturb it.
var single = scene{lane: "undisturbed", preset: "chaos"}

// spec is what the run is started with.
func (s *scene) spec(t *testing.T) []byte {
	t.Helper()
	return preset(t, s.preset, s.change)
}

// flags are those of all of its workers, and of replay.
func (s *scene) flags() []string {
	if flags := xlaFlags(); s.quick && flags != "" {
		return []string{"--xla-flags", flags}
	}
	return nil
}

// reference gives the bytes of the undisturbed run, which is made once.
func (s *scene) reference(t *testing.T) Bytes {
	t.Helper()
	s.Lock()
	defer s.Unlock()
	if s.bytes != nil {
		return s.bytes
	}
	// It belongs to whichever test comes first, in a lane of its own.
	l := newNamedLane(t, sharedStack(t), s.lane, true)
	l.flags = s.flags()
	p := l.worker(workerOptions{})
	l.start(chaosRun, s.spec(t))
	l.completes(chaosRun)
	p.kill()
	l.verifies(chaosRun)
	s.models = map[string][]byte{}
	for o, err := range l.store.List(t.Context(), store.ModelPrefix) {
		require.NoError(t, err)
		b, _, err := store.ReadFixed(t.Context(), l.store, o.Key, 1<<30)
		require.NoError(t, err)
		s.models[o.Key] = b
	}
	s.deeds = l.deeds(chaosRun)
	s.bytes = reach(t, l.store, chaosRun)
	t.Logf("the undisturbed run of %s: %d objects, head %s", s.lane, len(s.bytes), s.bytes[store.ManifestKey(chaosRun, 0, l.committed(chaosRun))])
	return s.bytes
}

// reference gives the bytes of the undisturbed run of the preset chaos.
func reference(t *testing.T) Bytes {
	t.Helper()
	return single.reference(t)
}

// withStarter copies the starter that the undisturbed run made, so that the
// warm start is not done again.
func (l *lane) withStarter() *lane {
	l.t.Helper()
	return l.withStarterOf(&single)
}

func (l *lane) withStarterOf(s *scene) *lane {
	l.t.Helper()
	s.reference(l.t)
	l.flags = s.flags()
	for _, key := range slices.Sorted(maps.Keys(s.models)) {
		require.NoError(l.t, l.store.Put(l.t.Context(), key, s.models[key], store.PutOptions{}))
	}
	return l
}

// holds copies the run of another lane, with its models, into this one: a prefix belongs to one namespace.
func (l *lane) holds(other string) {
	l.t.Helper()
	from := l.open(other)
	for _, prefix := range []string{store.RunDir(chaosRun) + "/", store.ModelPrefix} {
		for o, err := range from.List(l.t.Context(), prefix) {
			require.NoError(l.t, err)
			b, _, err := store.ReadFixed(l.t.Context(), from, o.Key, 1<<30)
			require.NoError(l.t, err)
			require.NoError(l.t, l.store.Put(l.t.Context(), o.Key, b, store.PutOptions{}))
		}
	}
}
