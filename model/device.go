package model

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/compute/xla"

	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/infra/programcache"
	"github.com/reprise-rl/reprise/model/xla/failure"
)

var (
	// ErrPlugin is the kind of errors about a PJRT plugin that is missing or
	// cannot be loaded.
	ErrPlugin = errors.New("no usable PJRT plugin")
	// ErrClosed is returned by everything on a device after Close.
	ErrClosed = errors.New("device is closed")
)

// DeviceOptions say which device to open.
type DeviceOptions struct {
	// Plugin is the path of the PJRT plugin's .so. If it is empty, the plugin is
	// $REPRISE_PJRT_PLUGIN or else .reprise/plugin/pjrt_c_api_cpu_plugin.so of the
	// working directory, of the program's folder, or of a parent of either.
	Plugin string
	// Devices are the numbers of the plugin's devices that are opened, in the order in which
	// they are named afterwards: 0, 1, … They are of one kind. Nil is device 0, or all virtual
	// devices. What they compute together does not depend on how many there are.
	Devices []int
	// VirtualDevices makes the CPU so many devices, of which each has all cores; 0 leaves it to
	// the plugin. They show on one machine what several devices do. There are at most as many
	// as the plugin has threads (see Fingerprint.Threads).
	VirtualDevices int
	// Memory is how a CUDA plugin takes the memory of its device.
	Memory MemorySettings
	// XLAFlags are further XLA flags, separated by spaces. They override the
	// environment's XLA_FLAGS, which override the pinned ones. They change the
	// fingerprint. XLA ends the process if it does not know a flag.
	XLAFlags string
	// ProgramCache is the folder of compiled programs: a folder of the user's own,
	// programcache.Default, or programcache.None, which "" means too. A folder that
	// somebody else may write is a programcache.ErrRefused. Bits do not depend on it.
	ProgramCache string
	// Shared are programs and passed tests in a bucket, which are used where the folder does not have them; nil for none. What
	// is wrong with it costs time and nothing else.
	Shared *programcache.Shared
	// Warn is told what is wrong with the cache of programs, which is never more than a loss
	// of time. Nil writes it to standard error.
	Warn func(problem string)
	// Other makes the device that of another build; for tests.
	Other OtherBuild
}

// OtherBuild is how another build differs from this one, for tests. Zero is this build.
type OtherBuild struct {
	// Numerics is what the other build has added to Numerics.
	Numerics int
	// Program is the name of a program that the other build lowers with one operation more.
	// The operation changes no value.
	Program string
}

// Device is what a worker computes on: an open accelerator or CPU, or several of one kind. It
// does one thing at a time, on each of its devices one program at a time; its methods may be
// called concurrently. Each tensor of a training state is on its owner; the others have copies of
// what programs read.
type Device struct {
	// Before, where set, is called before each execution of a program: its error becomes
	// that of the execution. It is for tests, and set before the device is used.
	Before func(program string) error

	run         exclusive    // held while programs run
	ended       atomic.Int64 // see Progress
	compiling   atomic.Int64 // programs that are being lowered or compiled
	backend     *xla.Backend
	numbers     []compute.DeviceNum // the plugin's, of each device
	worked      []atomic.Int64      // nanoseconds; of the first, run counts them
	atOnce      int                 // see abreast
	bundled     int                 // tensors of a bundle, at most
	fingerprint Fingerprint
	memory      MemorySettings // complete; zero for a CPU's plugin
	other       OtherBuild
	closed      bool             // guarded by run
	programs    map[any]*program // by their keys; guarded by run
	builds      *builds
}

// opened records the flags and plugins of this process. XLA reads its flags once, when
// the first plugin is loaded, so the first OpenDevice fixes them.
var opened struct {
	sync.Mutex
	flags   string
	plugins map[string]string // path → SHA-256
}

// OpenDevice loads the plugin and opens its devices that are named, or its first. Before that it pins the flags
// that the bits depend on (see Fingerprint): it sets XLA_FLAGS for the process. A second
// OpenDevice with other flags is an error, because XLA would ignore them. A plugin that
// is missing or cannot be loaded is an ErrPlugin with its path.
func OpenDevice(o DeviceOptions) (*Device, error) {
	path, digest, err := plugin.Find(o.Plugin, "")
	if err != nil {
		return nil, fmt.Errorf("find PJRT plugin: %w: %w", ErrPlugin, err)
	}
	opened.Lock()
	defer opened.Unlock()
	cuda, own := plugin.IsCUDA(path), cpuFlags
	if cuda {
		own = cudaFlags
	}
	flags, err := mergeFlags(pinnedFlags, own, os.Getenv("XLA_FLAGS"), o.XLAFlags)
	if err != nil {
		return nil, fmt.Errorf("open device: %w", err)
	}
	if opened.plugins == nil {
		opened.plugins = map[string]string{}
		opened.flags = flags
		// With cgo, os.Setenv sets C's environment too, where XLA looks.
		if err := os.Setenv("XLA_FLAGS", flags); err != nil {
			return nil, fmt.Errorf("open device: %w", err)
		}
	} else if flags != opened.flags {
		return nil, fmt.Errorf("open device with XLA_FLAGS %q: this process already runs with %q, and XLA reads them once", flags, opened.flags)
	}
	if known, ok := opened.plugins[path]; ok && known != digest {
		return nil, fmt.Errorf("open device: %w: %s was changed since this process loaded it", ErrPlugin, path)
	}
	opened.plugins[path] = digest
	memory, err := o.Memory.complete(cuda)
	if err != nil {
		return nil, fmt.Errorf("open device: %w", err)
	}
	threads := 0
	if !cuda {
		if threads, err = pinThreads(); err != nil {
			return nil, fmt.Errorf("open device: %w", err)
		}
	}
	if err := o.checkDevices(threads); err != nil {
		return nil, fmt.Errorf("open device: %w", err)
	}
	load, err := plugin.LoadPath(path)
	if err != nil {
		return nil, fmt.Errorf("open device: %w: %w", ErrPlugin, err)
	}
	if cuda {
		// Without this, go-xla adds a flag with a folder to XLA_FLAGS, where the plugin lies as
		// it expects. XLA finds the folders beside the plugin itself.
		if err := os.Setenv("GOPJRT_CUDA_CHECKS", "no"); err != nil {
			return nil, fmt.Errorf("open device: %w", err)
		}
	}
	made, err := openBuilds(o)
	if err != nil {
		return nil, fmt.Errorf("open device: %w", err)
	}
	d := &Device{other: o.Other, builds: made, memory: memory, atOnce: 1, bundled: 1}
	if cuda {
		d.atOnce, d.bundled = startedAtOnce, bundledTensors
	}
	behind(func() {
		err = try("load PJRT plugin "+path, func() (err error) {
			// Without tf32=false, CUDA may round float32 products to tf32.
			d.backend, err = xla.NewWithOptions(load+",tf32=false"+memory.config(), o.clientOptions(cuda))
			return err
		})
	})
	if err != nil {
		made.close()
		return nil, fmt.Errorf("open device: %w: %w", ErrPlugin, err)
	}
	if d.numbers, err = o.numbers(d.backend, cuda); err == nil {
		d.worked = make([]atomic.Int64, len(d.numbers))
		d.fingerprint, err = readFingerprint(d.backend, d.numbers[0], digest, flags, threads)
	}
	if err == nil && cuda {
		d.fingerprint.Libraries, err = librariesOf(path, flags)
	}
	if err != nil {
		d.backend.Finalize()
		made.close()
		return nil, fmt.Errorf("open device: %w", err)
	}
	d.fingerprint.Numerics += o.Other.Numerics
	return d, nil
}

// Fingerprint identifies what the bits computed on this device depend on.
func (d *Device) Fingerprint() Fingerprint { return d.fingerprint }

// Progress counts what the device has ended: executions and transfers of tensors. While it stays the
// same, the device works on one of them, or on nothing. Each call counts while the host
// lowers or compiles a program, however long that takes: the device is not stuck then.
func (d *Device) Progress() int64 {
	if d.compiling.Load() > 0 {
		return d.ended.Add(1)
	}
	return d.ended.Load()
}

// Close releases the device once the running program has ended. Programs and
// states of the device cannot be used any more. Closing twice is fine.
func (d *Device) Close() {
	d.run.Lock()
	defer d.run.Unlock()
	if !d.closed {
		d.closed = true
		for _, p := range d.programs {
			p.finalize()
		}
		d.backend.Finalize()
		d.builds.close()
	}
}

// try runs f and returns its error, or its panic as an error: GoMLX reports errors by
// panicking. Only here are panics of libraries recovered, and errors of XLA sorted by kind.
func try(op string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			e, ok := p.(error)
			if !ok {
				e = fmt.Errorf("%v", p)
			}
			err = fmt.Errorf("%s: %w", op, failure.Sort(e, ErrInput, ErrClosed, ErrFreed))
		}
	}()
	if err := f(); err != nil {
		return fmt.Errorf("%s: %w", op, failure.Sort(err, ErrInput, ErrClosed, ErrFreed))
	}
	return nil
}

// upload copies values to device k with the given shape. The caller holds run.
func upload[T float32 | bfloat16.BFloat16 | int32 | uint32 | bool](d *Device, k int, v []T, dims ...int) (compute.Buffer, error) {
	n := 1
	for _, x := range dims {
		n *= x
	}
	if n != len(v) {
		return nil, fmt.Errorf("upload %d values as %v", len(v), dims)
	}
	b, err := d.backend.BufferFromFlatData(d.numbers[k], v, shapes.Make(dtypes.FromGenericsType[T](), dims...))
	runtime.KeepAlive(v)
	d.ended.Add(1)
	return b, err
}

// download copies a buffer's n values to the host. The caller holds run.
func download[T float32 | int32 | uint32 | bfloat16.BFloat16](b compute.Buffer, n int) ([]T, error) {
	v := make([]T, n)
	return v, fetch(b, v)
}

// fetch copies a buffer's values to a slice of their number. The caller holds run.
func fetch[T float32 | int32 | uint32 | bfloat16.BFloat16](b compute.Buffer, v []T) error {
	if len(v) == 0 {
		return nil
	}
	return b.ToFlatData(v)
}

// free releases buffers now instead of waiting for the garbage collector.
func free(buffers []compute.Buffer) {
	for i, b := range buffers {
		if b != nil {
			// The error is ignored: the buffer of a closed device is released already.
			_ = b.Finalize()
			buffers[i] = nil
		}
	}
}

// niceness is how much lower the priority of XLA's threads is than that of the process.
const niceness = 5

// behind runs f on a thread of lower priority. The threads that f starts have its priority
// too: XLA's are started when a device is opened and when a program is compiled. XLA keeps
// every core busy, and the threads of Go, which tell Temporal that the worker lives, must not
// wait for a core behind it. Priorities do not change bits. Where the system has no priority
// of a thread, f runs as it is.
func behind(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if runtime.GOOS == "linux" {
			// The thread keeps its priority, so it is not used again: it ends with this
			// goroutine, which is never unlocked from it.
			runtime.LockOSThread()
			if now, err := threadNiceness(); err == nil {
				// Without the permission, XLA runs as the rest does.
				_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, min(now+niceness, 19))
			}
		}
		f()
	}()
	<-done
}

// threadNiceness is the calling thread's, on Linux.
func threadNiceness() (int, error) {
	raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0) // the kernel answers 20 − niceness
	return 20 - raw, err
}

// pinnedFlags give the same bits in repeated runs. On a CPU they limit the code that XLA
// generates to AVX2. Its library of matrix kernels, YNNPACK, does not heed that and was seen to
// use AVX-512, where a processor has it: so machines of other processors may compute other
// bits, and the processor is part of the fingerprint. On CUDA they allow only deterministic
// kernels and switch off autotuning, which chooses kernels by measured time.
const pinnedFlags = "--xla_cpu_max_isa=AVX2 --xla_cpu_experimental_ynn_fusion_type=-reduce --xla_gpu_deterministic_ops=true --xla_gpu_autotune_level=0"

// cpuFlags are pinned besides for a CPU. Without platform_dependent_math=false YNNPACK chooses the kernel of a product by its
// number of rows, among kernels that add in other orders: with AMX, a row's logits in bfloat16 differed between few rows and many.
// With it, YNNPACK takes only kernels that add in one order (YNN_FLAG_CONSISTENT_ARITHMETIC).
const cpuFlags = "--xla_cpu_enable_platform_dependent_math=false"

// cudaFlags are pinned besides for CUDA. With products by Triton an update of Qwen2.5-0.5B's shape took
// 4.8 GB more on an H100, and was 2 % faster (docs/gpu.md).
const cudaFlags = "--xla_gpu_enable_triton_gemm=false"

// QuickCompile are XLA flags with which the CPU's compiler needs a fifth of the time or less. What it
// compiles runs up to half as long again, so they are for tests, which run a program a few times. The bits may differ from those
// of the flags that runs have, so the fingerprint names another device.
const QuickCompile = "--xla_backend_optimization_level=0 --xla_cpu_parallel_codegen_split_count=1 --xla_backend_extra_options=xla_cpu_disable_new_fusion_emitters"

// mergeFlags merges lists of XLA flags into one. If a flag is given twice, the last one
// wins. Flags are sorted, so that equal settings give equal strings.
func mergeFlags(lists ...string) (string, error) {
	merged := map[string]string{}
	for _, list := range lists {
		for _, flag := range strings.Fields(list) {
			if !strings.HasPrefix(flag, "--") {
				return "", fmt.Errorf("XLA flag %q does not begin with --", flag)
			}
			name, _, _ := strings.Cut(flag, "=")
			merged[name] = flag
		}
	}
	flags := make([]string, 0, len(merged))
	for _, name := range slices.Sorted(maps.Keys(merged)) {
		flags = append(flags, merged[name])
	}
	return strings.Join(flags, " "), nil
}

// flagValue returns a flag's value in a merged list, or "" if the flag is absent.
func flagValue(flags, name string) string {
	for _, flag := range strings.Fields(flags) {
		if n, v, _ := strings.Cut(flag, "="); n == name {
			return v
		}
	}
	return ""
}
