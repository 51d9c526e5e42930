package keeper

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Hide keeps other processes of the same user from reading this process: its variables, its memory, its open files.
// The kernel also writes no core of it, and a debugger cannot attach to it without root's rights.
func Hide() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide this process from others: %w", err)
	}
	return nil
}

// Executable is this program also where its file was replaced while it ran. It is a path for a process that this one starts.
func Executable() (string, error) { return "/proc/self/exe", nil }

// intrusive are the capabilities with which a process reads another one that hides. Only root's programs have them;
// they lose them here, and keep root's other rights.
var intrusive = []uintptr{
	unix.CAP_SYS_PTRACE, unix.CAP_SYS_ADMIN, unix.CAP_SYS_RAWIO, unix.CAP_SYS_MODULE,
	unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_CHECKPOINT_RESTORE,
}

// confine prepares this keeper: it adopts its program's children, and the program gets no descriptor of others
// and no right to read other processes. It concerns this thread, on which init and therefore keep run.
func confine() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("adopt children: %w", err)
	}
	for _, c := range intrusive {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) // who may not give it away is not root, and has it not
	}
	_ = unix.CloseRange(lifeline, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) // Go's own are so already; a library's may not be
	return nil
}

// ofProgram: the program dies with its keeper, which may be killed, too. It leads a group: what it sends to its group
// does not reach the keeper.
func ofProgram() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// adopts says that what the program starts becomes the keeper's child when its own parent ends.
const adopts = true

// killChildren kills the children: the program, and what was adopted.
func killChildren(int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err == nil && parentOf(string(stat)) == os.Getpid() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // one with other rights refuses
		}
	}
}

// parentOf reads the parent's number in a line of /proc/NUMBER/stat; 0 if it has none.
func parentOf(stat string) int {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // a name may have blanks and parentheses
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.Atoi(fields[1])
	return n
}
