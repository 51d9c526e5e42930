package model

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/programcache"
	"github.com/reprise-rl/reprise/infra/store"
)

// signingKeys are both parts of a new key.
func signingKeys(t *testing.T) (private, public *programcache.SigningKey) {
	t.Helper()
	own, whole, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	load := func(kind string, der []byte, err error) *programcache.SigningKey {
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "key.pem")
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		k, err := programcache.LoadSigningKey(path)
		require.NoError(t, err)
		return k
	}
	der, err := x509.MarshalPKCS8PrivateKey(whole)
	private = load("PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(own)
	return private, load("PUBLIC KEY", der, err)
}

// sharing opens devices, one after the other as machines would, and has each do the same.
type sharing struct {
	t    *testing.T
	want outcome
	n    int // programs
}

// open compares what a device with a folder (none: "") and a bucket computes, and checks where its programs came from. It
// returns what it warned of.
func (s sharing) open(name, dir string, shared *programcache.Shared, want Built) (warned []string) {
	s.t.Helper()
	d, err := OpenDevice(DeviceOptions{ProgramCache: dir, Shared: shared, Warn: func(problem string) { warned = append(warned, problem) }})
	require.NoError(s.t, err)
	defer d.Close()
	require.Equal(s.t, s.want, outcomeOf(s.t, d), name)
	if shared != nil {
		shared.Wait()
	}
	got := d.Built()
	s.t.Logf("%s: %+v %d warnings", name, got, len(warned))
	got.CompileSeconds, got.LoadSeconds = 0, 0
	require.Equal(s.t, want, got, name)
	require.Len(s.t, warned, want.CacheFaults+want.Unsigned, name)
	return warned
}

// folder is a new folder for programs.
func (s sharing) folder() string { return filepath.Join(s.t.TempDir(), "programs") }

func startSharing(t *testing.T) sharing {
	want := outcomeOf(t, testDevice(t))
	return sharing{t, want, len(want.memory)}
}

// A second machine gets the programs of the first from the bucket, with the same bits, and keeps them in its folder as if it had
// compiled them.
func TestProgramsFromABucket(t *testing.T) {
	s, bucket := startSharing(t), store.NewMemory()
	private, public := signingKeys(t)
	first, second := s.folder(), s.folder()
	s.open("the first", first, programcache.NewShared(bucket, private), Built{Compiled: s.n})
	require.Len(t, bucket.Own(), s.n)
	s.open("the second", second, programcache.NewShared(bucket, public), Built{Loaded: s.n, Fetched: s.n})
	s.open("the second again, without the bucket", second, nil, Built{Loaded: s.n})
	s.open("the second again, with its folder", second, programcache.NewShared(bucket, private), Built{Loaded: s.n})
	s.open("one without a folder", "", programcache.NewShared(bucket, public), Built{Loaded: s.n, Fetched: s.n})
	files, err := filepath.Glob(filepath.Join(first, "*"))
	require.NoError(t, err)
	require.Len(t, files, s.n)
	for _, file := range files {
		compiled, err := os.ReadFile(file)
		require.NoError(t, err)
		fetched, err := os.ReadFile(filepath.Join(second, filepath.Base(file)))
		require.NoError(t, err)
		require.Equal(t, compiled, fetched)
	}

	// A damaged file of the folder is replaced from the bucket.
	require.NoError(t, os.WriteFile(files[0], []byte("damaged"), 0o600))
	s.open("a damaged file", first, programcache.NewShared(bucket, public), Built{Loaded: s.n, Fetched: 1, CacheFaults: 1})
	s.open("after a damaged file", first, nil, Built{Loaded: s.n})
}

// Native code from a bucket is never loaded unsigned: what is there without a valid signature is compiled anew, and then written as it should
// be.
func TestUnsignedProgramsAreCompiled(t *testing.T) {
	s, bucket := startSharing(t), store.NewMemory()
	private, public := signingKeys(t)
	stranger, _ := signingKeys(t)
	s.open("the first", s.folder(), programcache.NewShared(bucket, private), Built{Compiled: s.n})
	strangers := store.NewMemory()
	s.open("a stranger", s.folder(), programcache.NewShared(strangers, stranger), Built{Compiled: s.n})
	read := func(from *store.Memory, key string) []byte {
		entry, _, err := store.ReadFixed(t.Context(), from, key, 1<<30)
		require.NoError(t, err)
		return entry
	}
	own, theirs := bucket.Own(), strangers.Own() // in the same order, by the programs' keys
	header := len("reprise signed 1\n") + ed25519.SignatureSize
	entries := make([][]byte, s.n)
	for i, o := range own {
		entries[i] = read(bucket, o.Key)
	}
	for name, of := range map[string]func(i int) []byte{
		"unsigned":     func(i int) []byte { return entries[i][header:] },
		"flipped":      func(i int) []byte { e := bytes.Clone(entries[i]); e[len(e)/2] ^= 1; return e },
		"truncated":    func(i int) []byte { return entries[i][:len(entries[i])-1] },
		"another's":    func(i int) []byte { return entries[(i+1)%s.n] },
		"a stranger's": func(i int) []byte { return read(strangers, theirs[i].Key) },
	} {
		for i, o := range own {
			require.NoError(t, bucket.Put(t.Context(), o.Key, of(i), store.PutOptions{}))
		}
		warned := s.open(name, s.folder(), programcache.NewShared(bucket, public), Built{Compiled: s.n, Unsigned: s.n})
		require.Contains(t, warned[0], "no valid signature by key "+private.ID(), name)
	}
	s.open("one that writes", s.folder(), programcache.NewShared(bucket, private), Built{Compiled: s.n, Unsigned: s.n})
	s.open("afterwards", s.folder(), programcache.NewShared(bucket, public), Built{Loaded: s.n, Fetched: s.n})
	s.open("another key", s.folder(), programcache.NewShared(bucket, stranger), Built{Compiled: s.n})
}

// broken is a bucket that fails.
type broken struct{ store.Store }

func (broken) Open(context.Context, string, int64) (io.ReadCloser, store.Object, error) {
	return nil, store.Object{}, store.ErrUnavailable
}

func (broken) Put(context.Context, string, []byte, store.PutOptions) error { return store.ErrDenied }

// A bucket that fails costs a warning each way, and compilations.
func TestProgramsOfABucketThatFails(t *testing.T) {
	s := startSharing(t)
	private, _ := signingKeys(t)
	warned := s.open("a bucket that fails", "", programcache.NewShared(broken{store.NewMemory()}, private), Built{Compiled: s.n, CacheFaults: 2})
	require.Contains(t, warned[0], "is not taken from the cache")
	require.Contains(t, warned[1], "access denied")
}
