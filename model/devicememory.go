package model

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/gomlx/go-xla/pjrt"

	"github.com/reprise-rl/reprise/model/xla/executable"
)

// Memory is the memory in bytes of the device that has least; 0 if it is not known. A CPU has its
// machine's, or that of its container; virtual devices share it equally.
func (d *Device) Memory() int64 {
	d.run.Lock()
	defer d.run.Unlock()
	if d.closed {
		return 0
	}
	if d.fingerprint.Platform == "cpu" {
		return hostMemory(os.ReadFile) / int64(d.Count())
	}
	limit, _, err := d.memoryStatistics()
	if err != nil {
		return 0 // a platform need not say
	}
	if d.memory.Fraction == 0 {
		return limit
	}
	return int64(math.Round(float64(limit) / d.memory.Fraction))
}

// PeakMemory is the most bytes of a device's memory that programs and buffers have had since
// it was opened; 0 if it is not known, as on a CPU.
func (d *Device) PeakMemory() int64 {
	d.run.Lock()
	defer d.run.Unlock()
	if d.closed {
		return 0
	}
	_, peak, err := d.memoryStatistics()
	if err != nil {
		return 0
	}
	return peak
}

// memoryStatistics asks the plugin for the least limit and the highest peak of the devices. The
// caller holds run.
func (d *Device) memoryStatistics() (limit, peak int64, err error) {
	err = try("memory of the device", func() error {
		client, err := executable.Field[*pjrt.Client](d.backend, "client")
		if err != nil {
			return err
		}
		for k, number := range d.numbers {
			least, most, err := executable.DeviceMemory(client.AddressableDevices()[number])
			if err != nil {
				return err
			}
			if k == 0 || least < limit {
				limit = least
			}
			peak = max(peak, most)
		}
		return nil
	})
	return limit, peak, err
}

// hostMemory is the least of the machine's memory and the limits of the process's control
// group, as the files of /proc and /sys say; 0 where there are none.
func hostMemory(read func(path string) ([]byte, error)) int64 {
	least := int64(0)
	limit := func(n int64) {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	if info, err := read("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemTotal:" {
				kib, _ := strconv.ParseInt(f[1], 10, 64) // 0 is no limit
				limit(kib << 10)
			}
		}
	}
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if b, err := read(path); err == nil {
			n, _ := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64) // "max" is no limit
			limit(n)
		}
	}
	return least
}
