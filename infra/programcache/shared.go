package programcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/reprise-rl/reprise/infra/store"
)

const (
	// readTime is how long an entry may take to arrive. Most programs are compiled in less.
	readTime = 10 * time.Second
	// writeTime is how long one may take to be written, beside the steps.
	writeTime = 2 * time.Minute
	// restTime is how long a bucket that failed, or was slow, is not asked again: it costs a start two readTimes at most, and not
	// one a program.
	restTime = time.Minute
	// maxWaiting bounds the bytes of the entries that wait to be written.
	maxWaiting = 512 << 20
)

// Shared are the programs and records in a bucket that workers with one [SigningKey] share. Nothing of it is given to anybody that the
// key has not signed under the name that was asked for. Its methods may be called concurrently.
type Shared struct {
	store store.Store
	key   *SigningKey
	// here tells this machine from others: see machine.
	here func() (string, bool)
	// reading, writing and rest are readTime, writeTime and restTime; tests have less patience.
	reading, writing, rest time.Duration
	most                   int64 // maxSigned

	mu sync.Mutex
	// readAgain and writeAgain are when a bucket that failed is asked again.
	readAgain, writeAgain time.Time
	waste                 time.Duration // of reads that gave nothing
	wastedAt              time.Time     // the last of them
	waiting               []sent
	bytes                 int            // of waiting
	writes                bool           // a goroutine writes what waits
	ended                 sync.WaitGroup // that goroutine
}

// sent is an entry on its way to the bucket.
type sent struct {
	name    string
	content []byte
	failed  func(error)
}

// NewShared are the entries of a key in a bucket.
func NewShared(s store.Store, key *SigningKey) *Shared {
	return &Shared{store: s, key: key, here: thisMachine, reading: readTime, writing: writeTime, rest: restTime, most: maxSigned}
}

// Get reads a program. Errors: ErrMissing, also while a bucket that failed is left alone; ErrUnsigned; of reading.
func (s *Shared) Get(k Key) ([]byte, error) { return s.fetch(k.file()) }

// Put writes a program to the bucket, beside what the caller does next. Without the private key it writes none. failed is told of an error.
func (s *Shared) Put(k Key, program []byte, failed func(error)) { s.send(k.file(), program, failed) }

// Recorded reports whether the bucket has the record of a statement (see [Cache.Recorded]). The record of another machine says
// nothing of this one's device, which may be broken where the other is not: so a record is shared by the folders and containers
// of one machine, and holds until that is started again.
func (s *Shared) Recorded(statement string) (bool, error) {
	name, want, ok := recordHere(s.here, statement)
	if !ok {
		return false, nil
	}
	content, err := s.fetch(name)
	if errors.Is(err, ErrMissing) {
		return false, nil
	}
	return err == nil && bytes.Equal(content, want), err
}

// Record writes a record of a statement, as Put writes a program.
func (s *Shared) Record(statement string, failed func(error)) {
	if name, content, ok := recordHere(s.here, statement); ok {
		s.send(name, content, failed)
	}
}

// place is where an entry of a name is in the bucket.
func (s *Shared) place(name string) string { return store.ProgramsDir(s.key.ID()) + "/" + name }

// fetch reads an entry's content, unless the bucket is left alone.
func (s *Shared) fetch(name string) ([]byte, error) {
	begin := time.Now()
	s.mu.Lock()
	rests := begin.Before(s.readAgain)
	s.mu.Unlock()
	if rests {
		return nil, ErrMissing
	}
	content, err := s.verified(name)
	if err == nil || !s.wasted(begin, err) {
		return content, err
	}
	if errors.Is(err, ErrMissing) { // said once, since what is missing is not told
		err = errors.New("the bucket takes long to say what it has")
	}
	return nil, fmt.Errorf("read shared programs (the next one in %s): %w", s.rest, err)
}

// verified reads an entry's content. An entry that is too large to be one, or that the key has not signed, is an ErrUnsigned.
func (s *Shared) verified(name string) ([]byte, error) {
	ctx, end := context.WithTimeout(context.Background(), s.reading)
	defer end()
	entry, _, err := store.ReadFixed(ctx, s.store, s.place(name), s.most)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, ErrMissing
	case errors.Is(err, store.ErrTooLarge):
		return nil, fmt.Errorf("read %s: %w: it has more than %d bytes", s.store.Location(s.place(name)), ErrUnsigned, s.most)
	case err != nil:
		return nil, err
	}
	content, err := s.key.open(name, entry)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w by key %s", s.store.Location(s.place(name)), err, s.key.ID())
	}
	return content, nil
}

// wasted adds a read that gave nothing to the others of the last minutes, and reports whether the bucket is left alone from now on: it
// failed, or these reads took as long as one may. So neither a slow bucket nor large entries that nobody has signed delay a start for long.
func (s *Shared) wasted(begin time.Time, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if begin.Sub(s.wastedAt) > s.rest {
		s.waste = 0
	}
	s.wastedAt = time.Now()
	s.waste += s.wastedAt.Sub(begin)
	if (errors.Is(err, ErrMissing) || errors.Is(err, ErrUnsigned)) && s.waste < s.reading {
		return false
	}
	s.waste, s.readAgain = 0, s.wastedAt.Add(s.rest)
	return true
}

// send has an entry written behind those that wait. What is there under its name is replaced: it is the same, or not valid.
func (s *Shared) send(name string, content []byte, failed func(error)) {
	if !s.key.Signs() {
		return
	}
	if err := s.enqueue(sent{name, content, failed}); err != nil {
		failed(err)
	}
}

func (s *Shared) enqueue(e sent) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case time.Now().Before(s.writeAgain):
		return nil
	case int64(signedHeader+len(e.content)) > s.most:
		return fmt.Errorf("share %s: it has %d bytes, and an entry at most %d", e.name, len(e.content), s.most-int64(signedHeader))
	case s.bytes+len(e.content) > maxWaiting:
		return fmt.Errorf("share %s: %d bytes wait to be written already", e.name, s.bytes)
	}
	s.waiting = append(s.waiting, e)
	s.bytes += len(e.content)
	if !s.writes {
		s.writes = true
		s.ended.Go(s.write)
	}
	return nil
}

// write writes what waits, one after the other, and ends when nothing does.
func (s *Shared) write() {
	for e, ok := s.next(); ok; e, ok = s.next() {
		ctx, end := context.WithTimeout(context.Background(), s.writing)
		err := s.store.Put(ctx, s.place(e.name), s.key.seal(e.name, e.content), store.PutOptions{})
		end()
		if err != nil {
			e.failed(fmt.Errorf("share programs (%d more are left out, and all of the next %s): %w", s.drop(), s.rest, err))
		}
	}
}

// next is the entry that has waited longest.
func (s *Shared) next() (e sent, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.writes = false
		return e, false
	}
	e, s.waiting = s.waiting[0], s.waiting[1:]
	s.bytes -= len(e.content)
	return e, true
}

// drop leaves out what waits, since the bucket fails: it is compiled elsewhere, or written by another start.
func (s *Shared) drop() (entries int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries = len(s.waiting)
	s.waiting, s.bytes = nil, 0
	s.writeAgain = time.Now().Add(s.rest)
	return entries
}

// Wait waits until all that was put is written or has failed.
func (s *Shared) Wait() { s.ended.Wait() }
