package activities

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
)

// Cost is what a run's devices of one kind did, in seconds, and what they cost. Like
// telemetry it differs between attempts, and stays outside the chain.
type Cost struct {
	// Kind is the device's kind, as its fingerprint names it; "" where the run has met no
	// device yet.
	Kind string `json:"device_kind"`
	// Held is how long the run's sessions had a device: from the beginning of a session
	// until the device was given back or declared lost. The three after it are parts of
	// it; the rest is waits for the lease, and steps on host workers meanwhile.
	Held float64 `json:"held_seconds"`
	// Useful is the device's work that was kept: the seconds of the steps that ended,
	// without what was recomputed.
	Useful float64 `json:"useful_seconds"`
	// Recomputed is how long recorded updates were applied again, to rebuild a policy, and
	// pieces of an update made again that a lost worker had made.
	Recomputed float64 `json:"recomputed_seconds"`
	// Lost is how long the steps ran that ended with their session: from when a step was
	// begun until its session was declared lost.
	Lost float64 `json:"lost_seconds"`
	// Waiting is how long the run had no device and wanted one, and how long its steps
	// waited within a session for another run's to end.
	Waiting float64 `json:"waiting_seconds"`
	// Money is the price of the held seconds whose price is known, in the workers' own
	// currency. Unpriced are the held seconds without a price.
	Money    float64 `json:"money"`
	Unpriced float64 `json:"unpriced_seconds"`
}

// Plus is the sum of two costs of the same kind.
func (c Cost) Plus(d Cost) Cost {
	c.Held += d.Held
	c.Useful += d.Useful
	c.Recomputed += d.Recomputed
	c.Lost += d.Lost
	c.Waiting += d.Waiting
	c.Money += d.Money
	c.Unpriced += d.Unpriced
	return c
}

// AddCosts adds costs by kind. The sum is in the order of the kinds; what is given is not
// changed.
func AddCosts(costs []Cost, more ...Cost) []Cost {
	sum := slices.Clone(costs)
	for _, c := range more {
		at, found := slices.BinarySearchFunc(sum, c.Kind, func(of Cost, kind string) int { return cmp.Compare(of.Kind, kind) })
		if found {
			sum[at] = sum[at].Plus(c)
		} else {
			sum = slices.Insert(sum, at, c)
		}
	}
	return sum
}

// LostSession is a session that a run has lost.
type LostSession struct {
	Kind string `json:"device_kind"`
	// Opened is when the session began, Lost when it was declared lost, by the workflow's
	// clock, in RFC 3339.
	Opened string `json:"opened"`
	Lost   string `json:"lost"`
	// Step is the step that ended with the session, and Seconds how long it ran. Both are
	// empty where the worker refused the step, because it was about to stop: nothing is
	// lost then.
	Step    string  `json:"step,omitempty"`
	Seconds float64 `json:"lost_seconds"`
	// Reason is the kind of the failure.
	Reason string `json:"reason,omitempty"`
	// PriceHour is the price of an hour that the worker was given; 0: not known.
	PriceHour float64 `json:"price_hour,omitempty"`
}

// DeviceKind is the kind of a device with the given fields of its fingerprint: the
// plugin's description, or the platform where it has none.
func DeviceKind(fields json.RawMessage) string {
	var f struct {
		Kind     string `json:"device_kind"`
		Platform string `json:"platform"`
	}
	if json.Unmarshal(fields, &f) != nil {
		return ""
	}
	return cmp.Or(f.Kind, f.Platform)
}

// TelemetryOf is the telemetry in an activity's result, a struct or a pointer to one;
// false if it has none.
func TelemetryOf(result any) (Telemetry, bool) {
	v := reflect.Indirect(reflect.ValueOf(result))
	if v.Kind() != reflect.Struct {
		return Telemetry{}, false
	}
	f := v.FieldByName("Telemetry")
	if !f.IsValid() {
		return Telemetry{}, false
	}
	t, ok := f.Interface().(Telemetry)
	return t, ok
}
