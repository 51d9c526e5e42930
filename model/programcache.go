package model

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"

	"github.com/reprise-rl/reprise/infra/programcache"
	"github.com/reprise-rl/reprise/model/xla/executable"
)

// Built counts the programs that a device has made ready to run.
type Built struct {
	// Compiled and Loaded count the programs that were compiled, and those that came from
	// the cache. Fetched counts those of Loaded that came from the bucket.
	Compiled, Loaded, Fetched int
	// CompileSeconds and LoadSeconds are the time that they took, without lowering.
	CompileSeconds, LoadSeconds float64
	// CacheFaults counts the programs that could not be taken from the cache because
	// their file was damaged or could not be loaded, and those that could not be stored; and
	// records that could not be written.
	CacheFaults int
	// Unsigned counts what the bucket had in place of a program or a record without a valid signature. None of it was loaded.
	Unsigned int
}

// Minus is what was built after an earlier count.
func (b Built) Minus(before Built) Built {
	return Built{
		Compiled:       b.Compiled - before.Compiled,
		Loaded:         b.Loaded - before.Loaded,
		Fetched:        b.Fetched - before.Fetched,
		CompileSeconds: b.CompileSeconds - before.CompileSeconds,
		LoadSeconds:    b.LoadSeconds - before.LoadSeconds,
		CacheFaults:    b.CacheFaults - before.CacheFaults,
		Unsigned:       b.Unsigned - before.Unsigned,
	}
}

// Built is what the device has built since it was opened.
func (d *Device) Built() Built {
	d.builds.Lock()
	defer d.builds.Unlock()
	return d.builds.Built
}

// builds are the programs a device makes ready: where they are kept, and how many there were.
type builds struct {
	cache  *programcache.Cache  // nil without
	shared *programcache.Shared // nil without
	warn   func(string)

	sync.Mutex
	Built
}

// openBuilds opens the cache of programs. The default folder may be impossible to make, as
// in a container whose files cannot be written: then there is none.
func openBuilds(o DeviceOptions) (*builds, error) {
	b := &builds{shared: o.Shared, warn: o.Warn}
	if b.warn == nil {
		b.warn = func(problem string) { fmt.Fprintln(os.Stderr, problem) }
	}
	dir, err := programcache.Folder(o.ProgramCache)
	if err == nil && dir != "" {
		b.cache, err = programcache.Open(dir)
	}
	if err != nil && (o.ProgramCache != programcache.Default || errors.Is(err, programcache.ErrRefused)) {
		return nil, err
	}
	if err != nil {
		b.warn(fmt.Sprintf("programs are not cached: %v", err))
	}
	return b, nil
}

// close closes the cache.
func (b *builds) close() {
	if b.cache != nil {
		_ = b.cache.Close() // it was opened to look things up
	}
}

// add counts what was built.
func (b *builds) add(count func(*Built)) {
	b.Lock()
	defer b.Unlock()
	count(&b.Built)
}

// fault counts and tells what is wrong with the cache.
func (b *builds) fault(format string, args ...any) {
	b.add(func(n *Built) { n.CacheFaults++ })
	b.warn(fmt.Sprintf(format, args...))
}

// executable takes a lowered program from the cache, or compiles and stores it.
func (d *Device) executable(name, hash string, lowered *xla.Builder) (compute.Executable, error) {
	key := programcache.KeyOf(hash, d.fingerprint.JSON())
	if e := d.builds.load(name, key, lowered); e != nil {
		return e, nil
	}
	var e compute.Executable
	begin := time.Now()
	if err := try("compile program "+name, func() (err error) {
		e, err = lowered.Compile()
		return err
	}); err != nil {
		return nil, err
	}
	d.builds.add(func(n *Built) { n.Compiled++; n.CompileSeconds += time.Since(begin).Seconds() })
	d.builds.store(name, key, e)
	return e, nil
}

// load takes a program from the folder, or else from the bucket, and then puts it into the folder; nil if neither has it.
func (b *builds) load(name string, key programcache.Key, lowered *xla.Builder) compute.Executable {
	if b.cache != nil {
		e, saved := b.take(name, key, lowered, b.cache.Get)
		if e != nil {
			return e
		}
		if saved != nil { // it cannot be loaded
			b.cache.Remove(key)
		}
	}
	if b.shared == nil {
		return nil
	}
	e, saved := b.take(name, key, lowered, b.shared.Get)
	if e != nil {
		b.add(func(n *Built) { n.Fetched++ })
		b.keep(name, key, saved)
	}
	return e
}

// take loads a program as get gives it. e is nil where get has none, or where what it has cannot be loaded.
func (b *builds) take(name string, key programcache.Key, lowered *xla.Builder, get func(programcache.Key) ([]byte, error)) (
	e compute.Executable, saved []byte) {
	begin := time.Now()
	saved, err := get(key)
	if err == nil {
		err = try("load "+string(key), func() (err error) {
			e, err = executable.Load(lowered, saved)
			return err
		})
	}
	if err != nil {
		b.missed("program "+name+" is not taken from the cache", err)
		return nil, saved
	}
	b.add(func(n *Built) { n.Loaded++; n.LoadSeconds += time.Since(begin).Seconds() })
	return e, saved
}

// missed counts and tells why something of the cache is not used, unless it is missing.
func (b *builds) missed(what string, err error) {
	switch {
	case errors.Is(err, programcache.ErrMissing):
	case errors.Is(err, programcache.ErrUnsigned):
		b.add(func(n *Built) { n.Unsigned++ })
		b.warn(fmt.Sprintf("%s: %v", what, err))
	default:
		b.fault("%s: %v", what, err)
	}
}

// store puts a compiled program into the cache.
func (b *builds) store(name string, key programcache.Key, e compute.Executable) {
	if b.cache == nil && b.shared == nil {
		return
	}
	var saved []byte
	if err := try("save", func() (err error) {
		saved, err = executable.Save(e)
		return err
	}); err != nil {
		b.fault("program %s is not cached: %v", name, err)
		return
	}
	b.keep(name, key, saved)
	if b.shared != nil {
		b.shared.Put(key, saved, b.notShared)
	}
}

// keep puts a program into the folder.
func (b *builds) keep(name string, key programcache.Key, saved []byte) {
	if b.cache == nil {
		return
	}
	if err := b.cache.Put(key, saved); err != nil {
		b.fault("program %s is not cached: %v", name, err)
	}
}

// notShared tells what did not reach the bucket.
func (b *builds) notShared(err error) { b.fault("the cache of programs in the bucket: %v", err) }

// HasPassed reports whether the cache of programs has the record of a test that this device
// has passed with the programs of some hashes, since its machine was started.
func (d *Device) HasPassed(test string, hashes map[string]string) bool {
	b, statement := d.builds, d.passed(test, hashes)
	if b.cache != nil && b.cache.Recorded(statement) {
		return true
	}
	if b.shared == nil {
		return false
	}
	there, err := b.shared.Recorded(statement)
	if err != nil {
		b.missed("the record of a passed test is not taken from the cache", err)
	}
	if there {
		b.record(statement)
	}
	return there
}

// RecordPass puts that record into the cache, if there is one.
func (d *Device) RecordPass(test string, hashes map[string]string) {
	statement := d.passed(test, hashes)
	d.builds.record(statement)
	if shared := d.builds.shared; shared != nil {
		shared.Record(statement, d.builds.notShared)
	}
}

// record puts a record into the folder.
func (b *builds) record(statement string) {
	if b.cache == nil {
		return
	}
	if err := b.cache.Record(statement); err != nil {
		b.fault("the passed test is not recorded: %v", err)
	}
}

// passed says what a record vouches for.
func (d *Device) passed(test string, hashes map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the device has passed: %s\ndevice: %s\n", test, d.fingerprint.JSON())
	for _, name := range slices.Sorted(maps.Keys(hashes)) {
		fmt.Fprintf(&b, "program: %s %s\n", name, hashes[name])
	}
	return b.String()
}
