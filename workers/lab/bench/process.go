package bench

import (
	"errors"
	"fmt"

	"github.com/prometheus/procfs"
)

// PeakMemory is the peak resident memory of a process of this machine in bytes (VmHWM).
// Linux only.
func PeakMemory(pid int) (int64, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, fmt.Errorf("peak memory of process %d: %w", pid, err)
	}
	status, err := p.NewStatus()
	if err == nil && status.VmHWM == 0 {
		err = errors.New("no VmHWM")
	}
	if err != nil {
		return 0, fmt.Errorf("peak memory of process %d: %w", pid, err)
	}
	return int64(status.VmHWM), nil
}
