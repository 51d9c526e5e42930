package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
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
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return Processor{}, fmt.Errorf("processor time of servers: %w", err)
	}
	out := Processor{Worker: own.Seconds()}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended meanwhile, or is nobody of ours
		}
		parent, had, err := parseStat(text)
		if err != nil {
			return Processor{}, fmt.Errorf("%s: %w", name, err)
		}
		if parent == os.Getpid() {
			out.Servers += had.Seconds()
		}
	}
	if len(stats) == 0 {
		return Processor{}, fmt.Errorf("processor time of servers: /proc: %w", fs.ErrNotExist)
	}
	return out, nil
}

// tick is the unit of times in /proc: USER_HZ is 100 wherever Go runs on Linux.
const tick = 10 * time.Millisecond

var errStat = errors.New("no process's stat")

// parseStat reads the parent of a process and its processor time from its
// /proc/PID/stat: see proc_pid_stat(5). The second field, a name in parentheses,
// may have anything in it.
func parseStat(text []byte) (parent int, had time.Duration, err error) {
	_, after, ok := bytes.Cut(text[max(0, bytes.LastIndexByte(text, ')')):], []byte(") "))
	fields := bytes.Fields(after)
	if !ok || len(fields) < 13 {
		return 0, 0, errStat
	}
	var numbers [3]int
	for k, at := range []int{1, 11, 12} { // ppid, utime, stime: fields 4, 14 and 15
		if numbers[k], err = strconv.Atoi(string(fields[at])); err != nil {
			return 0, 0, fmt.Errorf("%w: %w", errStat, err)
		}
	}
	return numbers[0], time.Duration(numbers[1]+numbers[2]) * tick, nil
}
