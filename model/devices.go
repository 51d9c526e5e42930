package model

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/pjrt"
	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/model/xla/executable"
)

// usualThreads is the least number of threads that the CPU plugin computes with, as it has
// four devices unless it is told otherwise.
const usualThreads = 4

// pinThreads fixes the number of threads that the CPU plugin computes with, which bits depend
// on: PJRT_NPROC or NPROC or, without these, the number of cores, and at least usualThreads. The
// plugin itself would add threads for devices.
func pinThreads() (int, error) {
	threads := runtime.NumCPU()
	for _, name := range []string{"PJRT_NPROC", "NPROC"} {
		if text := os.Getenv(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return 0, fmt.Errorf("%w: %s is %q: give the number of threads that the CPU plugin computes with", ErrInput, name, text)
			}
			threads = n
			break
		}
	}
	threads = max(threads, usualThreads)
	// With cgo, os.Setenv sets C's environment too, where XLA looks when a client is made.
	return threads, os.Setenv("PJRT_NPROC", strconv.Itoa(threads))
}

// checkDevices checks the options that say which devices are opened. threads are a CPU's, 0 for
// other plugins.
func (o DeviceOptions) checkDevices(threads int) error {
	switch {
	case o.VirtualDevices != 0 && threads == 0:
		return fmt.Errorf("%w: virtual devices are of a CPU: name GPUs by their numbers with --devices", ErrInput)
	case o.VirtualDevices < 0 || o.VirtualDevices > threads:
		return fmt.Errorf("%w: %d virtual devices: give from 1 to %d, the threads that the CPU plugin computes with", ErrInput, o.VirtualDevices, threads)
	}
	for i, number := range o.Devices {
		if number < 0 || slices.Contains(o.Devices[:i], number) {
			return fmt.Errorf("%w: the devices are %v: name each by its number, from 0, and once", ErrInput, o.Devices)
		}
	}
	return nil
}

// clientOptions are what the plugin is told of its devices. Of a CUDA plugin the devices that
// are not named stay untouched, so that other processes have their memory.
func (o DeviceOptions) clientOptions(cuda bool) pjrt.NamedValuesMap {
	options := pjrt.NamedValuesMap{}
	if o.VirtualDevices > 0 {
		options["cpu_device_count"] = int64(o.VirtualDevices)
	}
	if cuda && len(o.Devices) > 0 {
		visible := make([]int64, len(o.Devices))
		for i, number := range o.Devices {
			visible[i] = int64(number)
		}
		options["visible_devices"] = visible
	}
	return options
}

// numbers are the numbers that the opened plugin has for the devices.
func (o DeviceOptions) numbers(b *xla.Backend, cuda bool) ([]compute.DeviceNum, error) {
	there := b.NumDevices()
	if there == 0 {
		return nil, fmt.Errorf("%w: the plugin has no device", ErrPlugin)
	}
	wanted := o.Devices
	switch {
	case cuda && len(wanted) > 0, len(wanted) == 0 && o.VirtualDevices > 0: // all that are visible
		wanted = make([]int, max(len(wanted), o.VirtualDevices))
		for i := range wanted {
			wanted[i] = i
		}
	case len(wanted) == 0:
		wanted = []int{0}
	}
	var out []compute.DeviceNum
	for _, number := range wanted {
		if number >= there {
			return nil, fmt.Errorf("%w: device %d is named, and the plugin has %d, numbered from 0", ErrInput, number, there)
		}
		out = append(out, compute.DeviceNum(number))
	}
	client, err := executable.Field[*pjrt.Client](b, "client")
	if err != nil {
		return nil, err
	}
	kind, err := deviceKind(b, client, out[0])
	if err != nil {
		return nil, err
	}
	for _, number := range out[1:] {
		other, err := deviceKind(b, client, number)
		if err != nil {
			return nil, err
		}
		if other != kind {
			return nil, fmt.Errorf("%w: the devices are a %s and a %s: name devices of one kind, or their bits differ", ErrInput, kind, other)
		}
	}
	return out, nil
}

// Count is the number of devices.
func (d *Device) Count() int { return len(d.numbers) }

// Number is the plugin's number of device k, for people.
func (d *Device) Number(k int) int { return int(d.numbers[k]) }

// Numbers names the devices as the plugin does, for people: "0, 1".
func (d *Device) Numbers() string {
	names := make([]string, len(d.numbers))
	for i, number := range d.numbers {
		names[i] = fmt.Sprint(number)
	}
	return strings.Join(names, ", ")
}

// Busy is how long each device has worked since it was opened. Compiling counts as work of the
// first.
func (d *Device) Busy() []time.Duration {
	out := make([]time.Duration, len(d.numbers))
	out[0] = time.Duration(d.run.worked.Load())
	for k := 1; k < len(out); k++ {
		out[k] = time.Duration(d.worked[k].Load())
	}
	return out
}

// deal calls f for the items 0 to n−1: item i on device i mod N, those of a device one after
// the other, and the devices at the same time. After an error no further item begins. The
// caller holds run, which keeps all devices for it.
func (d *Device) deal(n int, f func(k, i int) error) error {
	devices := min(n, len(d.numbers))
	if devices <= 1 {
		for i := range n {
			if err := f(0, i); err != nil {
				return err
			}
		}
		return nil
	}
	begin := time.Now()
	errs, took := make([]error, n), make([]time.Duration, devices)
	var failed atomic.Bool
	var all sync.WaitGroup
	for k := range devices {
		all.Go(func() {
			for i := k; i < n && !failed.Load(); i += devices {
				if errs[i] = f(k, i); errs[i] != nil {
					failed.Store(true)
				}
			}
			took[k] = time.Since(begin)
		})
	}
	all.Wait()
	d.run.idle += time.Since(begin) - took[0]
	for k, worked := range took[1:] {
		d.worked[k+1].Add(int64(worked))
	}
	return firstOf(errs...)
}

// startedAtOnce is how many programs of tensors are on a device of CUDA at once. A program's call
// returns when it has ended, which the host notices some 100 µs after it could have started the
// next one; a model has hundreds of tensors, whose programs take a few µs each. A CPU's programs use all
// its cores.
const startedAtOnce = 8

// bundledTensors is how many tensors a bundle has at most on CUDA.
const bundledTensors = 8

// abreast calls f with the numbers 0 to n−1, for programs that do not depend on each other: on CUDA
// several at once, on a CPU one after the other. Once one has failed, no other begins. The caller
// holds run.
func (d *Device) abreast(op string, n int, f func(i int) error) error {
	running, failed := errgroup.WithContext(context.Background())
	running.SetLimit(d.atOnce)
	for i := range n {
		running.Go(func() error {
			if failed.Err() != nil {
				return nil
			}
			return try(op, func() error { return f(i) })
		})
	}
	return running.Wait()
}

// exclusive is the lock of all devices. It counts for how long the first of them worked: while
// the lock is held, except for the time that it waited for others.
type exclusive struct {
	mu     sync.Mutex
	since  time.Time     // guarded by mu
	idle   time.Duration // since then; guarded by mu
	worked atomic.Int64  // nanoseconds
}

// Lock implements sync.Locker.
func (e *exclusive) Lock() {
	e.mu.Lock()
	e.since, e.idle = time.Now(), 0
}

// Unlock implements sync.Locker.
func (e *exclusive) Unlock() {
	e.worked.Add(int64(time.Since(e.since) - e.idle))
	e.mu.Unlock()
}

// firstOf is the first of the errors that is one.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
