package activities

import "fmt"

// AcquireInput asks for a lease: the right of a run to a device.
type AcquireInput struct {
	// Run is the workflow's id.
	Run string `json:"run"`
}

// Lease is what a worker answers to Acquire. One that is not held within 10 s (lease.Unheld) is free again.
type Lease struct {
	// ID names the lease; no other has it.
	ID string `json:"id"`
	// Worker names the process that gave it: equal names are the same process.
	Worker string `json:"worker"`
	// Queue is that of the process which computes, Holder that of the process which gave the lease.
	Queue  string `json:"queue"`
	Holder string `json:"holder"`
}

// HoldInput names the lease that is held, or given back.
type HoldInput struct {
	Lease string `json:"lease"`
	Run   string `json:"run"`
}

// LeaseEnd is how a lease ended, in the words of history, status and metrics.
type LeaseEnd string

// The ends of a lease.
const (
	// LeaseGivenBack: the run gave the device back.
	LeaseGivenBack LeaseEnd = "given back"
	// LeaseDrained: the worker stops, or its machine is taken away. The running step has ended, unless its time was over.
	LeaseDrained LeaseEnd = "drained"
	// LeaseLost: the process that computes has ended, or can use its device no more.
	LeaseLost LeaseEnd = "lost"
	// LeaseRefused: the worker does not know the lease, or it was not held in time.
	LeaseRefused LeaseEnd = "refused"
)

// HoldResult is how a lease ended.
type HoldResult struct {
	End LeaseEnd `json:"end"`
	// Reason is why, in a sentence without a full stop.
	Reason string `json:"reason,omitempty"`
	// ExitCode and Signal are those of the process that computed, where it has ended by itself or by a signal.
	ExitCode int    `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"`
	// Step is what it computed last, and Running whether that had not ended.
	Step    string `json:"step,omitempty"`
	Running bool   `json:"running,omitempty"`
}

// String is the end in a line.
func (r HoldResult) String() string {
	text := string(r.End)
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	if r.Step != "" && r.Running {
		text += fmt.Sprintf(" (during %s)", r.Step)
	} else if r.Step != "" {
		text += fmt.Sprintf(" (after %s)", r.Step)
	}
	return text
}
