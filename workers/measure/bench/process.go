package bench

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// PeakMemory is the peak resident memory of a process of this machine in bytes (VmHWM).
// Linux only.
func PeakMemory(pid int) (int64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("peak memory of process %d: %w", pid, err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("peak memory of process %d: %w", pid, err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("peak memory of process %d: no VmHWM", pid)
}
