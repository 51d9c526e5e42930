package model

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// MemorySettings says how a CUDA plugin takes the memory of its device. Bits do not depend on
// it, so it is no part of the fingerprint. A field without a value is read from the
// environment. A CPU plugin has none of these settings.
type MemorySettings struct {
	// Fraction is the share of the device's memory that the plugin may take, above 0 and at
	// most 1 (REPRISE_MEMORY_FRACTION). 0 is 0.95.
	Fraction float64
	// Preallocate takes that share when the device is opened, and not as it is needed:
	// "true" or "false" (REPRISE_PREALLOCATE). "" is false, so that
	// several processes may share a device.
	Preallocate string
	// Allocator is one of Allocators (REPRISE_ALLOCATOR). "" is the first.
	Allocator string
}

// Allocators are the allocators that a CUDA plugin of jaxlib 0.11.2 has: its own pool (default,
// bfc), the driver's pool (cuda_async), the driver's calls (platform: slow), virtual
// memory (vmm, address).
var Allocators = []string{"default", "bfc", "cuda_async", "platform", "vmm", "address"}

// memoryShare is the share of a GPU's memory that a plugin may take unless it is told
// otherwise. XLA's own default is 0.75.
const memoryShare = 0.95

// complete fills what has no value from the environment, then with what holds by default, and
// checks it. Nothing may be set for a plugin that is not for CUDA.
func (m MemorySettings) complete(cuda bool) (MemorySettings, error) {
	if text := os.Getenv("REPRISE_MEMORY_FRACTION"); m.Fraction == 0 && text != "" {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f == 0 {
			return m, fmt.Errorf("%w: REPRISE_MEMORY_FRACTION is %q: give a share above 0 and at most 1", ErrInput, text)
		}
		m.Fraction = f
	}
	m.Preallocate = cmp.Or(m.Preallocate, os.Getenv("REPRISE_PREALLOCATE"))
	m.Allocator = cmp.Or(m.Allocator, os.Getenv("REPRISE_ALLOCATOR"))
	if !cuda {
		if m != (MemorySettings{}) {
			return m, fmt.Errorf("%w: --memory-fraction, --preallocate and --allocator (REPRISE_MEMORY_FRACTION, REPRISE_PREALLOCATE, REPRISE_ALLOCATOR) are settings of CUDA plugins: leave them out with another", ErrInput)
		}
		return m, nil
	}
	m.Fraction = cmp.Or(m.Fraction, memoryShare)
	m.Preallocate = cmp.Or(m.Preallocate, "false")
	m.Allocator = cmp.Or(m.Allocator, Allocators[0])
	if !(m.Fraction > 0 && m.Fraction <= 1) {
		return m, fmt.Errorf("%w: the memory fraction is %v: give a share above 0 and at most 1", ErrInput, m.Fraction)
	}
	b, err := strconv.ParseBool(m.Preallocate)
	if err != nil {
		return m, fmt.Errorf("%w: preallocate is %q: give true or false", ErrInput, m.Preallocate)
	}
	m.Preallocate = strconv.FormatBool(b)
	if !slices.Contains(Allocators, m.Allocator) {
		return m, fmt.Errorf("%w: the allocator is %q: known are %s", ErrInput, m.Allocator, strings.Join(Allocators, ", "))
	}
	return m, nil
}

// config is what go-xla's configuration says of the memory; the settings are complete.
func (m MemorySettings) config() string {
	if m == (MemorySettings{}) {
		return ""
	}
	return fmt.Sprintf(",memory_fraction=%v,preallocate=%s,allocator=%s", m.Fraction, m.Preallocate, m.Allocator)
}

// String says what is set; "" for a CPU's plugin.
func (m MemorySettings) String() string {
	if m == (MemorySettings{}) {
		return ""
	}
	return fmt.Sprintf("memory fraction %v, preallocate %s, allocator %s", m.Fraction, m.Preallocate, m.Allocator)
}

// MemorySettings are those that the device was opened with.
func (d *Device) MemorySettings() MemorySettings { return d.memory }
