package model

import (
	"runtime"
	"syscall"
)

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
