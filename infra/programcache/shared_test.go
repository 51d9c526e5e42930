package programcache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
)

// sharedBy are the entries of a key in a bucket, on a machine called one.
func sharedBy(s store.Store, key *SigningKey) *Shared {
	out := NewShared(s, key)
	out.here = func() (string, bool) { return "started as: one\n", true }
	return out
}

// noFailure fails a test.
func noFailure(t *testing.T) func(error) { return func(err error) { t.Error(err) } }

// plant puts an object in place of an entry.
func plant(t *testing.T, s store.Store, at string, entry []byte) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), at, entry, store.PutOptions{}))
}

func planted(t *testing.T, s store.Store, at string) []byte {
	t.Helper()
	entry, _, err := store.ReadFixed(t.Context(), s, at, maxSigned)
	require.NoError(t, err)
	return entry
}

// What a worker with the private key has put, others with either part of the key get, and those with another key do not. Who has the
// public part alone writes nothing.
func TestShared(t *testing.T) {
	s := store.NewMemory()
	writer := sharedBy(s, signer(t))
	_, err := writer.Get(keyOf("a"))
	require.ErrorIs(t, err, ErrMissing)
	for name, program := range map[string]string{"a": "code", "empty": "", "large": strings.Repeat("x", 1<<20)} {
		writer.Put(keyOf(name), []byte(program), noFailure(t))
	}
	writer.Wait()
	require.Len(t, s.Own(), 3)
	require.Zero(t, writer.bytes, "nothing waits")
	require.Equal(t, "programs/99e0d04d85bd/"+string(keyOf("a"))+".program", writer.place(keyOf("a").file()))
	for _, reader := range []*Shared{sharedBy(s, signer(t)), sharedBy(s, checker(t))} {
		for name, program := range map[string]string{"a": "code", "empty": "", "large": strings.Repeat("x", 1<<20)} {
			got, err := reader.Get(keyOf(name))
			require.NoError(t, err)
			require.Equal(t, program, string(got))
		}
	}
	_, err = sharedBy(s, stranger(t)).Get(keyOf("a"))
	require.ErrorIs(t, err, ErrMissing)

	reads := sharedBy(s, checker(t))
	reads.Put(keyOf("b"), []byte("code"), noFailure(t))
	reads.Record(passed, noFailure(t))
	reads.Wait()
	require.Len(t, s.Own(), 3)
}

// The form of an entry, and what its signature covers, stay: entries of before stay valid.
func TestEntriesStayValid(t *testing.T) {
	require.Equal(t, "reprise program cache entry 1\nname: a.program\nbytes: 4\nsha256: 5694d08a2e53ffcae0c3103e5ad6f6076abd960eb1f8a56577040bc1028f702b\n",
		string(statement("a.program", []byte("code"))))
	entry := signer(t).seal("a.program", []byte("code"))
	require.Equal(t, "aab2d6620d1028ac70e216a9c2a103f3f3a03adba7d24f3f613c99ea3485a531", fmt.Sprintf("%x", sha256.Sum256(entry)))
	require.Len(t, entry, signedHeader+4)
}

// Native code from a bucket is never loaded unsigned: whatever is there under a program's name that the key has not signed under that
// name is not given, not even in part. Afterwards the program that is put there counts.
func TestUnsignedEntriesAreNotThere(t *testing.T) {
	key, other := signer(t), stranger(t)
	a, b := keyOf("a"), keyOf("b")
	code := []byte("code")
	record, _, ok := recordHere(func() (string, bool) { return "started as: one\n", true }, passed)
	require.True(t, ok)
	sealed := key.seal(a.file(), code)
	changed := func(f func(entry []byte) []byte) []byte { return f(bytes.Clone(sealed)) }
	entries := map[string][]byte{
		"nothing in it":                       {},
		"the program alone":                   code,
		"a file of a folder":                  append(a.header(code), code...),
		"signed by another key":               other.seal(a.file(), code),
		"another program's":                   key.seal(b.file(), []byte("else")),
		"another program's with this content": key.seal(b.file(), code),
		"a record's with this content":        key.seal(record, code),
		"another content under the signature": changed(func(e []byte) []byte { copy(e[signedHeader:], "evil"); return e }),
		"more content":                        append(bytes.Clone(sealed), 0),
		"no content":                          sealed[:signedHeader],
		"another version":                     changed(func(e []byte) []byte { e[len(signedMagic)-2]++; return e }),
		"a signature of zeros":                changed(func(e []byte) []byte { copy(e[len(signedMagic):signedHeader], make([]byte, 64)); return e }),
		"twice":                               append(bytes.Clone(sealed), sealed...),
	}
	for n := range sealed {
		entries[fmt.Sprintf("%d bytes of it", n)] = sealed[:n]
		for bit := range 8 {
			entries[fmt.Sprintf("bit %d of byte %d flipped", bit, n)] = changed(func(e []byte) []byte { e[n] ^= 1 << bit; return e })
		}
	}
	s := store.NewMemory()
	shared := sharedBy(s, key)
	at := shared.place(a.file())
	for name, entry := range entries {
		plant(t, s, at, entry)
		got, err := shared.Get(a)
		require.ErrorIs(t, err, ErrUnsigned, name)
		require.ErrorContains(t, err, at, name)
		require.Empty(t, got, name)
	}
	shared.Put(a, code, noFailure(t))
	shared.Wait()
	got, err := shared.Get(a)
	require.NoError(t, err)
	require.Equal(t, code, got)

	// Renamed in the bucket, whole and signed as it is.
	for _, name := range []string{b.file(), record} {
		plant(t, s, shared.place(name), planted(t, s, at))
	}
	_, err = shared.Get(b)
	require.ErrorIs(t, err, ErrUnsigned)
	there, err := shared.Recorded(passed)
	require.ErrorIs(t, err, ErrUnsigned)
	require.False(t, there)
}

// A record is shared by what runs on one machine since its start: folders, and containers without one. Another machine tests itself.
func TestSharedRecords(t *testing.T) {
	s := store.NewMemory()
	on := func(machine string, known bool) *Shared {
		shared := sharedBy(s, signer(t))
		shared.here = func() (string, bool) { return "started as: " + machine + "\n", known }
		return shared
	}
	recorded := func(on *Shared, statement string) bool {
		there, err := on.Recorded(statement)
		require.NoError(t, err)
		return there
	}
	one := on("one", true)
	require.False(t, recorded(one, passed))
	one.Record(passed, noFailure(t))
	on("unknown", false).Record("Another.\n", noFailure(t))
	one.Wait()
	require.Len(t, s.Own(), 1, "nothing is recorded where the machine is not known")
	require.True(t, recorded(one, passed))
	require.True(t, recorded(on("one", true), passed))
	require.False(t, recorded(on("another", true), passed))
	require.False(t, recorded(on("one", false), passed))
	require.False(t, recorded(one, passed+"program: 5678\n"))
}

// bucket is a store whose answers a test decides.
type bucket struct {
	store.Store
	open func(ctx context.Context) (io.ReadCloser, store.Object, error)
	put  func(ctx context.Context, key string) error

	mu          sync.Mutex
	opened      int
	asked, kept []string
}

func (b *bucket) Open(ctx context.Context, key string, offset int64) (io.ReadCloser, store.Object, error) {
	b.mu.Lock()
	b.opened++
	b.mu.Unlock()
	if b.open == nil {
		return b.Store.Open(ctx, key, offset)
	}
	return b.open(ctx)
}

func (b *bucket) Put(ctx context.Context, key string, body []byte, o store.PutOptions) error {
	b.mu.Lock()
	b.asked = append(b.asked, key)
	b.mu.Unlock()
	if b.put != nil {
		if err := b.put(ctx, key); err != nil {
			return err
		}
	}
	b.mu.Lock()
	b.kept = append(b.kept, key)
	b.mu.Unlock()
	return b.Store.Put(ctx, key, body, o)
}

// endless is a body without an end. It counts what is read.
type endless struct{ read int64 }

func (e *endless) Read(b []byte) (int, error) { e.read += int64(len(b)); return len(b), nil }
func (*endless) Close() error                 { return nil }

// What is larger than an entry may be is not read, whatever the server says of its size.
func TestOversizedEntries(t *testing.T) {
	body := &endless{}
	size := int64(maxSigned) + 1
	b := &bucket{Store: store.NewMemory(), open: func(context.Context) (io.ReadCloser, store.Object, error) {
		return body, store.Object{Size: size}, nil
	}}
	shared := sharedBy(b, signer(t))
	require.EqualValues(t, 268435456, shared.most, "256 MiB, as the docs say")
	_, err := shared.Get(keyOf("a"))
	require.ErrorIs(t, err, ErrUnsigned)
	require.ErrorContains(t, err, "more than 268435456 bytes")
	require.Zero(t, body.read)

	shared.most, size = 1<<16, 100
	_, err = shared.Get(keyOf("a"))
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrMissing)
	require.Less(t, body.read, int64(1<<20), "tried some times, and never read further")

	var failed error
	shared.Put(keyOf("a"), make([]byte, 1<<16), func(err error) { failed = err })
	require.ErrorContains(t, failed, "an entry at most 65455")
	require.Empty(t, b.asked)
}

// A bucket that does not answer costs one wait, and is then left alone for a while.
func TestSlowBucket(t *testing.T) {
	b := &bucket{Store: store.NewMemory(), open: func(ctx context.Context) (io.ReadCloser, store.Object, error) {
		<-ctx.Done()
		return nil, store.Object{}, ctx.Err()
	}}
	shared := sharedBy(b, signer(t))
	require.Equal(t, []time.Duration{10 * time.Second, 2 * time.Minute, time.Minute}, []time.Duration{shared.reading, shared.writing, shared.rest}, "as the docs say")
	shared.reading = 20 * time.Millisecond
	begin := time.Now()
	_, err := shared.Get(keyOf("a"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "the next one in 1m0s")
	for range 10 {
		_, err := shared.Get(keyOf("b"))
		require.ErrorIs(t, err, ErrMissing)
	}
	require.Equal(t, 1, b.opened)
	require.Less(t, time.Since(begin), 5*time.Second)

	shared.readAgain = time.Now()
	b.open = nil
	shared.Put(keyOf("a"), []byte("code"), noFailure(t))
	shared.Wait()
	got, err := shared.Get(keyOf("a"))
	require.NoError(t, err)
	require.Equal(t, "code", string(got))
}

// Reads that give nothing may take as long together as one may: a bucket that is slow to say that it has none, or has large entries that
// nobody has signed, is left alone then.
func TestWastedReads(t *testing.T) {
	for name, answer := range map[string]func() (io.ReadCloser, store.Object, error){
		"missing": func() (io.ReadCloser, store.Object, error) { return nil, store.Object{}, store.ErrNotFound },
		"unsigned": func() (io.ReadCloser, store.Object, error) {
			return io.NopCloser(strings.NewReader("evil")), store.Object{Size: 4}, nil
		},
	} {
		b := &bucket{Store: store.NewMemory(), open: func(context.Context) (io.ReadCloser, store.Object, error) {
			time.Sleep(30 * time.Millisecond)
			return answer()
		}}
		shared := sharedBy(b, signer(t))
		shared.reading = 100 * time.Millisecond
		var told error
		for range 20 {
			if _, err := shared.Get(keyOf("a")); err != nil && strings.Contains(err.Error(), "the next one in 1m0s") {
				told = err
			}
		}
		require.Error(t, told, name)
		require.NotErrorIs(t, told, ErrMissing, name)
		require.LessOrEqual(t, b.opened, 4, name)
		require.Equal(t, name == "unsigned", errors.Is(told, ErrUnsigned))

		// Reads that are long past do not count.
		shared.readAgain, shared.waste, shared.wastedAt = time.Time{}, 99*time.Millisecond, time.Now().Add(-2*time.Minute)
		_, err := shared.Get(keyOf("a"))
		require.NotContains(t, err.Error(), "the next one in", name)
	}
}

// Writing delays nobody. A bucket that refuses is told of once, and left alone for a while.
func TestFailingWrites(t *testing.T) {
	refuses, begun := make(chan error), make(chan string, 16)
	b := &bucket{Store: store.NewMemory(), put: func(ctx context.Context, key string) error {
		begun <- key
		select {
		case err := <-refuses:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	shared := sharedBy(b, signer(t))
	var mu sync.Mutex
	var failures []error
	failed := func(err error) { mu.Lock(); defer mu.Unlock(); failures = append(failures, err) }
	for _, name := range []string{"a", "b", "c"} {
		shared.Put(keyOf(name), []byte("code"), failed) // returns while nothing is written
	}
	<-begun
	refuses <- store.ErrDenied
	shared.Wait()
	require.Len(t, failures, 1)
	require.ErrorIs(t, failures[0], store.ErrDenied)
	require.ErrorContains(t, failures[0], "2 more are left out, and all of the next 1m0s")
	shared.Put(keyOf("d"), []byte("code"), failed)
	shared.Wait()
	require.Len(t, b.asked, 1)

	shared.writeAgain, shared.writing = time.Now(), 20*time.Millisecond
	shared.Put(keyOf("d"), []byte("code"), failed)
	shared.Wait()
	require.Len(t, failures, 2)
	require.ErrorIs(t, failures[1], context.DeadlineExceeded, "a write that takes too long is given up")
	require.Empty(t, b.kept)

	// What waits is bounded.
	shared.writeAgain, shared.bytes = time.Time{}, maxWaiting
	shared.Put(keyOf("e"), []byte("code"), failed)
	require.ErrorContains(t, failures[2], "wait to be written already")
}
