package environments

import (
	"context"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/workers/lab/medians"
)

// work does some work once. It returns how many items it made and how long that took
// without the preparation.
type work func() (count int, took time.Duration, err error)

// timed is work without preparation.
func timed(run func() (count int, err error)) work {
	return func() (int, time.Duration, error) {
		begin := time.Now()
		count, err := run()
		return count, time.Since(begin), err
	}
}

// rate repeats the work for at least the given time and returns items per second.
func (w work) rate(ctx context.Context, least time.Duration) (float64, error) {
	var things int
	var total time.Duration
	for total < least || things == 0 {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		count, took, err := w()
		if err != nil {
			return 0, err
		}
		if count <= 0 {
			return 0, fmt.Errorf("the work made nothing")
		}
		things += count
		total += took
	}
	return float64(things) / max(total, 1).Seconds(), nil
}

// Rate is how many items of a kind one core makes per second.
type Rate struct {
	Name      string  `json:"name"`
	PerSecond float64 `json:"per_second"`
	// Python is the rate of gym-sokoban or gymnasium on the same machine, measured in
	// turns with PerSecond. Ratio is PerSecond over Python. Both are 0 if Python has
	// nothing comparable or was not measured.
	Python float64 `json:"python_per_second,omitempty"`
	Ratio  float64 `json:"ratio,omitempty"`
	// Recorded is what it made on the machine of the project's measurements (2
	// cores of x86-64), and RecordedRatio is PerSecond over it: a reference, not
	// measured here. 0 if nothing was recorded.
	Recorded      float64 `json:"recorded_python_per_second,omitempty"`
	RecordedRatio float64 `json:"ratio_to_recorded,omitempty"`
}

// RoomGoal is the minimum speed of making 6×6 rooms relative to gym-sokoban.
const RoomGoal = 20

// recorded is Python's speed on the machine of the project's measurements: gym-sokoban
// 0.0.6 takes 4.9 ms for a 6×6 room and 80 ms for an 8×8 room with two boxes.
var recorded = map[string]float64{
	"generation/" + roomsSimple: 1 / 4.9e-3,
	"generation/" + roomsLarge:  1 / 80e-3,
	"generation/" + lakes:       16_000,
	"steps/" + roomsSimple:      17_000,
	"steps/" + lakes:            194_000,
}

// rateOf is the rate of a kind of work: the median of the rounds of each side.
func rateOf(section, name string, here, python []float64) Rate {
	r := Rate{Name: name, PerSecond: medians.Of(here), Python: medians.Of(python), Recorded: recorded[section+"/"+name]}
	if r.Python > 0 {
		r.Ratio = r.PerSecond / r.Python
	}
	if r.Recorded > 0 {
		r.RecordedRatio = r.PerSecond / r.Recorded
	}
	return r
}
