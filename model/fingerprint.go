package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/pjrt"
	"github.com/klauspost/cpuid/v2"

	"github.com/reprise-rl/reprise/infra/plugin"
	"github.com/reprise-rl/reprise/model/xla/executable"
)

// Numerics is a version that is raised by hand when this package computes other bits from
// the same inputs (for instance by host arithmetic, the layout of a batch, or the order of
// micro-batches), or lowers other programs. A worker of another version serves another
// queue, so a run never meets programs that are not its own. TestProgramsOfNumerics holds
// the programs' hashes.
const Numerics = 5

// Fingerprint identifies everything that a policy's bits depend on, except its programs
// (see Programs.Hashes). All work of a run goes to devices of one fingerprint. The JSON
// tags are in alphabetical order: encoding it gives canonical JSON.
type Fingerprint struct {
	// DeviceKind is what the plugin calls the device's kind, such as "NVIDIA H100 80GB HBM3".
	DeviceKind string `json:"device_kind"`
	// Driver is the NVIDIA driver's version; empty on other platforms.
	Driver string `json:"driver,omitempty"`
	// Flags are all XLA flags in force, sorted. One that names a file of results which decide
	// bits has the file's SHA-256 in place of its path; one that names a folder is left out.
	Flags string `json:"flags"`
	// GOARCH is the host's architecture, for its own arithmetic.
	GOARCH string `json:"goarch"`
	// ISA is the newest instruction set of the code that XLA generates on a CPU, but for its
	// matrix kernels (see pinnedFlags); empty on other platforms.
	ISA string `json:"isa,omitempty"`
	// Libraries are the files of NVIDIA's that decide bits, as names and the first 12 hex digits
	// of their SHA-256, sorted; empty on other platforms. See plugin.Libraries.
	Libraries string `json:"libraries,omitempty"`
	// Numerics is the constant Numerics of the build.
	Numerics int `json:"numerics"`
	// Platform and PlatformVersion are reported by PJRT: "cpu" or "cuda", and its build.
	Platform        string `json:"platform"`
	PlatformVersion string `json:"platform_version"`
	// Plugin is the SHA-256 of the plugin's file.
	Plugin string `json:"plugin"`
	// Processor is the vendor, family and model of a CPU, for which XLA generates its code;
	// empty on other platforms.
	Processor string `json:"processor,omitempty"`
	// Threads is the number of threads that a CPU's plugin computes with, where it is not 4: the
	// number of cores, or PJRT_NPROC where that is set, and at least 4. Sums over large tensors
	// are split by it. 0 on other platforms.
	Threads int `json:"threads,omitempty"`
}

// JSON is the fingerprint's canonical form.
func (f Fingerprint) JSON() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(f); err != nil { // cannot fail: strings and an integer
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// ID is the first 12 hex digits of the SHA-256 of the canonical form. It is part of the
// name of the queue that devices of this fingerprint serve.
func (f Fingerprint) ID() string {
	sum := sha256.Sum256(f.JSON())
	return hex.EncodeToString(sum[:])[:12]
}

func readFingerprint(b *xla.Backend, number compute.DeviceNum, digest, flags string, threads int) (Fingerprint, error) {
	client, err := executable.Field[*pjrt.Client](b, "client")
	if err != nil {
		return Fingerprint{}, err
	}
	portable, err := portableFlags(flags)
	if err != nil {
		return Fingerprint{}, err
	}
	kind, err := deviceKind(b, client, number)
	if err != nil {
		return Fingerprint{}, err
	}
	f := Fingerprint{
		DeviceKind:      kind,
		Flags:           portable,
		GOARCH:          runtime.GOARCH,
		Numerics:        Numerics,
		Platform:        client.Platform(),
		PlatformVersion: client.PlatformVersion(),
		Plugin:          digest,
	}
	if isCPU(b, client) {
		f.ISA = flagValue(flags, "--xla_cpu_max_isa")
		if threads != usualThreads {
			f.Threads = threads
		}
		f.Processor = fmt.Sprintf("%s %d %d", cpuid.CPU.VendorString, cpuid.CPU.Family, cpuid.CPU.Model)
	} else {
		f.Driver = driverVersion()
	}
	return f, nil
}

// deviceKind is what the plugin calls a device's kind. For a CPU that is its description without
// what differs between devices, such as an index; it is in fingerprints that runs have recorded.
func deviceKind(b *xla.Backend, client *pjrt.Client, number compute.DeviceNum) (string, error) {
	if isCPU(b, client) {
		return described(b.DeviceDescription(number)), nil
	}
	kind, err := executable.DeviceKind(client.AddressableDevices()[number])
	if err != nil {
		return "", fmt.Errorf("kind of device %d: %w", number, err)
	}
	return kind, nil
}

func isCPU(b *xla.Backend, client *pjrt.Client) bool {
	return b.IsCPU() || strings.EqualFold(client.Platform(), "cpu")
}

// index matches the parts of a CPU device's description that differ between devices of one kind.
var index = regexp.MustCompile(`(?i),?\s*(\[process[^\]]*\]|\b(id|process_?index)=\S*?(,|\)|$|\s)|[_:]\d+\b)`)

// described is a description without the device's index.
func described(description string) string {
	return strings.TrimSpace(index.ReplaceAllString(description, ""))
}

// librariesOf lists the files of NVIDIA's beside a CUDA plugin, as a fingerprint has them.
func librariesOf(path, flags string) (string, error) {
	files, err := plugin.Libraries(path, flagValue(flags, "--xla_gpu_cuda_data_dir"))
	if err != nil {
		return "", err
	}
	parts := make([]string, len(files))
	for i, file := range files {
		parts[i] = file.Name + ":" + file.Digest[:12]
	}
	return strings.Join(parts, " "), nil
}

// resultFlags name files of recorded choices that decide bits; folderFlags name folders that
// do not.
var (
	resultFlags = []string{"--xla_gpu_load_autotune_results_from"}
	folderFlags = []string{"--xla_gpu_cuda_data_dir", "--xla_gpu_dump_autotune_results_to", "--xla_dump_to"}
)

// portableFlags are flags as a fingerprint has them: the same wherever files lie.
func portableFlags(flags string) (string, error) {
	var out []string
	for _, flag := range strings.Fields(flags) {
		name, path, _ := strings.Cut(flag, "=")
		if slices.Contains(folderFlags, name) {
			continue
		}
		if slices.Contains(resultFlags, name) {
			content, err := os.ReadFile(path)
			if err != nil {
				return "", fmt.Errorf("read the file of %s: %w", name, err)
			}
			sum := sha256.Sum256(content)
			flag = name + "=sha256:" + hex.EncodeToString(sum[:])
		}
		out = append(out, flag)
	}
	return strings.Join(out, " "), nil
}

// nvidiaVersion finds the version in what the kernel says: "… Kernel Module  535.54.03  …", or of the
// open one "… Open Kernel Module for x86_64  580.159.04  …".
var nvidiaVersion = regexp.MustCompile(`Kernel Module\s.*?\s([0-9]+(?:\.[0-9]+)+)\s`)

// driverFiles are where the version of the NVIDIA driver stands in the name of its library, for
// systems whose kernel does not report it.
var driverFiles = []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib"}

// driverVersion is the version of the NVIDIA kernel module, as the kernel reports it, or that
// of the driver's library.
func driverVersion() string {
	if b, err := os.ReadFile("/proc/driver/nvidia/version"); err == nil {
		if version := kernelModule(b); version != "" {
			return version
		}
	}
	for _, folder := range driverFiles {
		named, _ := filepath.Glob(filepath.Join(folder, "libcuda.so.[0-9]*.*"))
		for _, path := range named {
			return strings.TrimPrefix(filepath.Base(path), "libcuda.so.")
		}
	}
	return ""
}

// kernelModule is the version of the NVIDIA kernel module in what the kernel says of it, or "".
func kernelModule(said []byte) string {
	if m := nvidiaVersion.FindSubmatch(said); m != nil {
		return string(m[1])
	}
	return ""
}
