package activities

import (
	"cmp"
	"time"
)

// Flags are the flags of the workers that decide what a run does next. They are fixed
// when the run is resolved and carried, so that workers with other flags decide the same.
type Flags struct {
	// ContinueAfter makes the run continue as new after so many iterations; 0 leaves it to
	// the server's suggestion.
	ContinueAfter int `json:"continue_after,omitempty"`
	// SessionHeartbeat is how long a worker may be silent before the
	// activity it runs is lost, in nanoseconds.
	SessionHeartbeat time.Duration `json:"session_heartbeat"`
	// LeaseHeartbeat is how long it may be silent before its lease is lost, in nanoseconds. It does not grow with the
	// model: what gives leases computes nothing. 0 is SessionHeartbeat, in runs of earlier builds.
	LeaseHeartbeat time.Duration `json:"lease_heartbeat,omitempty"`
}

const (
	// smallModel is the most parameters of a model for which the workers' flag holds.
	smallModel = 100_000_000
	// heartbeatStep is how many more parameters cost a second more, up to heartbeatMax:
	// the steps of a large model leave less time for a heartbeat.
	heartbeatStep = 50_000_000
	heartbeatMax  = 30 * time.Second
)

// ForModel are the flags with the session heartbeat for a model of so many parameters.
func (f Flags) ForModel(parameters int64) Flags {
	f.LeaseHeartbeat = cmp.Or(f.LeaseHeartbeat, f.SessionHeartbeat)
	if parameters > smallModel {
		longer := f.SessionHeartbeat + time.Duration((parameters-smallModel)/heartbeatStep)*time.Second
		f.SessionHeartbeat = max(f.SessionHeartbeat, min(longer, heartbeatMax))
	}
	return f
}
