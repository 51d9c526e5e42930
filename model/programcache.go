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
	// the cache.
	Compiled, Loaded int
	// CompileSeconds and LoadSeconds are the time that they took, without lowering.
	CompileSeconds, LoadSeconds float64
	// CacheFaults counts the programs that could not be taken from the cache because
	// their file was damaged or could not be loaded, and those that could not be stored; and
	// records that could not be written.
	CacheFaults int
}

// Minus is what was built after an earlier count.
func (b Built) Minus(before Built) Built {
	return Built{
		Compiled:       b.Compiled - before.Compiled,
		Loaded:         b.Loaded - before.Loaded,
		CompileSeconds: b.CompileSeconds - before.CompileSeconds,
		LoadSeconds:    b.LoadSeconds - before.LoadSeconds,
		CacheFaults:    b.CacheFaults - before.CacheFaults,
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
	cache *programcache.Cache // nil without
	warn  func(string)

	sync.Mutex
	Built
}

// openBuilds opens the cache of programs. The default folder may be impossible to make, as
// in a container whose files cannot be written: then there is none.
func openBuilds(o DeviceOptions) (*builds, error) {
	b := &builds{warn: o.Warn}
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

// load loads a program from the cache; nil if the cache does not have it. A file that cannot be
// loaded is removed.
func (b *builds) load(name string, key programcache.Key, lowered *xla.Builder) (e compute.Executable) {
	if b.cache == nil {
		return nil
	}
	begin := time.Now()
	saved, err := b.cache.Get(key)
	if errors.Is(err, programcache.ErrMissing) {
		return nil
	}
	if err == nil {
		err = try("load "+string(key), func() (err error) {
			e, err = executable.Load(lowered, saved)
			return err
		})
		if err != nil {
			b.cache.Remove(key)
		}
	}
	if err != nil {
		b.fault("program %s is compiled anew: %v", name, err)
		return nil
	}
	b.add(func(n *Built) { n.Loaded++; n.LoadSeconds += time.Since(begin).Seconds() })
	return e
}

// store puts a compiled program into the cache.
func (b *builds) store(name string, key programcache.Key, e compute.Executable) {
	if b.cache == nil {
		return
	}
	if err := try("save", func() error {
		saved, err := executable.Save(e)
		if err != nil {
			return err
		}
		return b.cache.Put(key, saved)
	}); err != nil {
		b.fault("program %s is not cached: %v", name, err)
	}
}

// HasPassed reports whether the cache of programs has the record of a test that this device
// has passed with the programs of some hashes, since its machine was started.
func (d *Device) HasPassed(test string, hashes map[string]string) bool {
	return d.builds.cache != nil && d.builds.cache.Recorded(d.passed(test, hashes))
}

// RecordPass puts that record into the cache, if there is one.
func (d *Device) RecordPass(test string, hashes map[string]string) {
	if d.builds.cache == nil {
		return
	}
	if err := d.builds.cache.Record(d.passed(test, hashes)); err != nil {
		d.builds.fault("the passed test is not recorded: %v", err)
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
