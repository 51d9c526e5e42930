package heartbeats

import (
	"fmt"
	"os/exec"
	"syscall"

	"github.com/reprise-rl/reprise/infra/dev"
)

// busyCommand takes a processor for as long as it runs.
const busyCommand = "while :; do :; done"

// busy is a number of processes that each take a processor, at the priority of all others. They end with this process,
// however that ends.
type busy struct {
	running []running
}

type running struct {
	pid   int
	ended <-chan struct{}
}

// beginBusy starts so many.
func beginBusy(processes int) (*busy, error) {
	b := &busy{}
	for range processes {
		cmd := exec.Command("sh", "-c", busyCommand)
		ended := make(chan struct{})
		if err := dev.StartChild(cmd, func(error) { close(ended) }); err != nil {
			b.end()
			return nil, fmt.Errorf("start a busy process: %w", err)
		}
		b.running = append(b.running, running{cmd.Process.Pid, ended})
	}
	return b, nil
}

// end ends them, and waits until they are gone.
func (b *busy) end() {
	for _, r := range b.running {
		_ = syscall.Kill(r.pid, syscall.SIGKILL) // one that has ended is a child that was not waited for yet, or no more
	}
	for _, r := range b.running {
		<-r.ended
	}
	b.running = nil
}
