package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"

	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/pjrt"
	"github.com/klauspost/cpuid/v2"

	"github.com/reprise-rl/reprise/model/executable"
)

// Numerics is a version that is raised by hand when this package computes other bits from
// the same inputs (for instance by host arithmetic, the layout of a batch, or the order of
// micro-batches), or lowers other programs. A worker of another version serves another
// queue, so a run never meets programs that are not its own. TestProgramsOfNumerics holds
// the programs' hashes.
const Numerics = 2

// Fingerprint identifies everything that a policy's bits depend on, except its programs
// (see Programs.Hashes). All work of a run goes to devices of one fingerprint. The JSON
// tags are in alphabetical order: encoding it gives canonical JSON.
type Fingerprint struct {
	// DeviceKind is the plugin's description of the device, without its number.
	DeviceKind string `json:"device_kind"`
	// Driver is the NVIDIA driver's version; empty on other platforms.
	Driver string `json:"driver,omitempty"`
	// Flags are all XLA flags in force, sorted.
	Flags string `json:"flags"`
	// GOARCH is the host's architecture, for its own arithmetic.
	GOARCH string `json:"goarch"`
	// ISA is the newest instruction set XLA may use on a CPU; empty on other platforms.
	ISA string `json:"isa,omitempty"`
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

func readFingerprint(b *xla.Backend, plugin, flags string) (Fingerprint, error) {
	client, err := executable.Field[*pjrt.Client](b, "client")
	if err != nil {
		return Fingerprint{}, err
	}
	devices := client.AddressableDevices()
	if len(devices) == 0 {
		return Fingerprint{}, fmt.Errorf("%w: the plugin has no device", ErrPlugin)
	}
	f := Fingerprint{
		DeviceKind:      deviceKind(b.DeviceDescription(0)),
		Flags:           flags,
		GOARCH:          runtime.GOARCH,
		Numerics:        Numerics,
		Platform:        client.Platform(),
		PlatformVersion: client.PlatformVersion(),
		Plugin:          plugin,
	}
	if b.IsCPU() || strings.EqualFold(f.Platform, "cpu") {
		f.ISA = flagValue(flags, "--xla_cpu_max_isa")
		f.Processor = fmt.Sprintf("%s %d %d", cpuid.CPU.VendorString, cpuid.CPU.Family, cpuid.CPU.Model)
	} else {
		f.Driver = driverVersion()
	}
	return f, nil
}

// numbers matches the parts of a device's description that differ between devices of one
// kind, such as its index.
var numbers = regexp.MustCompile(`(?i),?\s*(\[process[^\]]*\]` +
	`|\b(id|process_?index|slice_?index|partition_index|local_hardware_id|coords|core_on_chip)=\S*?(,|\)|$|\s)` +
	`|[_:]\d+\b)`)

func deviceKind(description string) string {
	if _, kind, ok := strings.Cut(description, "device_kind="); ok {
		if end := strings.IndexAny(kind, ",)"); end >= 0 {
			return strings.TrimSpace(kind[:end])
		}
		return strings.TrimSpace(kind)
	}
	return strings.TrimSpace(numbers.ReplaceAllString(description, ""))
}

var nvidiaVersion = regexp.MustCompile(`Kernel Module\D*([0-9][0-9.]*)`)

// driverVersion is the version of the NVIDIA kernel module, as the kernel reports it.
func driverVersion() string {
	b, err := os.ReadFile("/proc/driver/nvidia/version")
	if err != nil {
		return ""
	}
	if m := nvidiaVersion.FindSubmatch(b); m != nil {
		return string(m[1])
	}
	return ""
}
