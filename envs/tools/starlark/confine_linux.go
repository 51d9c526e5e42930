package starlark

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// headroom is what a child may take in bytes beside the memory of programs: stacks of threads, Go's own tables.
const headroom = 64 << 20

// confine lets the kernel refuse memory beyond the bound, cores, files that are written, and new descriptors. What
// counts as memory are private pages that can be written (RLIMIT_DATA): Go reserves far more addresses than it uses, so
// a limit of addresses (RLIMIT_AS) would say nothing.
func confine(memory int64) error {
	now, err := writable()
	if err != nil {
		return err
	}
	for _, bound := range []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_DATA, uint64(now + memory + headroom)}, {unix.RLIMIT_CORE, 0}, {unix.RLIMIT_FSIZE, 0}, {unix.RLIMIT_NOFILE, 64},
	} {
		if err := unix.Setrlimit(bound.resource, &unix.Rlimit{Cur: bound.most, Max: bound.most}); err != nil {
			return fmt.Errorf("setrlimit %d to %d: %w", bound.resource, bound.most, err)
		}
	}
	return nil
}

// writable are the bytes that RLIMIT_DATA counts now.
func writable() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(status, []byte("\nVmData:"))
	fields := bytes.Fields(rest)
	if len(fields) == 0 {
		return 0, fmt.Errorf("no VmData in /proc/self/status: %w", syscall.ENOTSUP)
	}
	kibibytes, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return kibibytes << 10, err
}
