package bench

import (
	"fmt"
	"os"

	"github.com/prometheus/procfs"
)

// Processor is seconds of all processors together, which a machine that is busy
// otherwise makes little larger.
type Processor struct {
	// Worker is this process's, Servers that of the processes it started: Temporal's
	// and S3's.
	Worker  float64 `json:"worker_seconds"`
	Servers float64 `json:"servers_seconds"`
}

// Total is worker and servers together.
func (p Processor) Total() float64 { return p.Worker + p.Servers }

func (p Processor) minus(q Processor) Processor {
	return Processor{p.Worker - q.Worker, p.Servers - q.Servers}
}

// processors is what this process and those it started have had. Linux.
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
		// One that cannot be read has ended meanwhile, or is nobody of ours.
		if stat, err := p.Stat(); err == nil && stat.PPID == os.Getpid() {
			out.Servers += stat.CPUTime()
		}
	}
	return out, nil
}
