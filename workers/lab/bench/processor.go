package bench

import (
	"fmt"
	"os"

	"github.com/prometheus/procfs"
)

// Processor is the time of all processors together in seconds, which other load on the
// machine changes little.
type Processor struct {
	// Worker is the time of this process, Servers of its child processes: Temporal and S3.
	Worker  float64 `json:"worker_seconds"`
	Servers float64 `json:"servers_seconds"`
}

// Total is worker and servers together.
func (p Processor) Total() float64 { return p.Worker + p.Servers }

func (p Processor) minus(q Processor) Processor {
	return Processor{p.Worker - q.Worker, p.Servers - q.Servers}
}

// processors is the processor time so far of this process and its children. Linux only.
func processors() (Processor, error) {
	own, err := processorTime()
	if err != nil {
		return Processor{}, err
	}
	all, err := procfs.AllProcs()
	if err != nil {
		return Processor{}, fmt.Errorf("processor time of servers: %w", err)
	}
	out := Processor{Worker: own.Seconds()}
	for _, p := range all {
		// A process that cannot be read has ended, or is not a child of this one.
		if stat, err := p.Stat(); err == nil && stat.PPID == os.Getpid() {
			out.Servers += stat.CPUTime()
		}
	}
	return out, nil
}
