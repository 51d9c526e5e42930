package study

import (
	"fmt"
	"math"
	"slices"
)

// End classifies a run by its last Window iterations.
type End string

const (
	// HighArm and LowArm: one arm is chosen in at least nine of ten episodes that
	// choose one. Between: neither is.
	HighArm End = "high arm"
	LowArm  End = "low arm"
	Between End = "between"
	// FormatLost: fewer than half of the episodes choose an arm.
	FormatLost End = "format lost"
)

// Ends lists all ends in the order of tables.
var Ends = []End{HighArm, Between, LowArm, FormatLost}

const (
	sure   = 0.9 // share of an arm's episodes among those that choose one
	spoken = 0.5 // share of the episodes that choose an arm
)

// Outcome is how a run ended, and when its reward fell and its detectors fired.
type Outcome struct {
	End End
	// Success is the share of the high arm, Executable that of episodes with an arm
	// and Reward the expected mean reward over the payouts, all of the last Window.
	Success, Executable, Reward float64
	// Start is the expected mean reward of iteration 0; Worse reports that Reward is lower
	// by more than a tenth. FindFall cannot find a fall that begins with the first
	// iteration, since there is no earlier level.
	Start float64
	Worse bool
	// Fall is the reward's fall, if Fell.
	Fall Fall
	Fell bool
	// First are the iterations in which each detector fired first, by name.
	First map[string]int
	// Early and Late are the means of metrics over the first and the last Window, by
	// name, of the iterations that have them.
	Early, Late map[string]float64
	// Spike is the highest gradient norm over the median one.
	Spike float64
}

// Judge computes the outcome of a run.
func Judge(r Record) Outcome {
	o := Outcome{First: map[string]int{}, Early: map[string]float64{}, Late: map[string]float64{}}
	for _, name := range Columns {
		c := r.column(name)
		o.Early[name] = finiteMean(c[:min(Window, len(c))])
		o.Late[name] = finiteMean(c[max(0, len(c)-Window):])
	}
	o.Success, o.Executable = o.Late[Success], o.Late[Executable]
	s, _ := settingNamed(r.Setting)
	o.Reward = s.Expected(o.Success, o.Executable)
	switch share := o.Success / o.Executable; {
	case o.Executable < spoken:
		o.End = FormatLost
	case share >= sure:
		o.End = HighArm
	case share <= 1-sure:
		o.End = LowArm
	default:
		o.End = Between
	}
	rewards := r.expected()
	o.Start = rewards[0]
	o.Worse = o.Reward < (1-fallShare)*o.Start
	o.Fall, o.Fell = FindFall(rewards)
	for _, e := range r.Events {
		if first, seen := o.First[e.Detector]; !seen || e.Iteration < first {
			o.First[e.Detector] = e.Iteration
		}
	}
	o.Spike = spike(r.column(GradNorm))
	return o
}

// String is the outcome in a few words.
func (o Outcome) String() string {
	text := fmt.Sprintf("%s, %.1f %% high arm", o.End, 100*o.Success)
	if o.Fell {
		text += fmt.Sprintf(", reward falls at %d", o.Fall.Begins)
	}
	return text
}

// Harmed reports that the reward fell and did not recover, or ended worse than it began.
func (o Outcome) Harmed() bool { return o.Fell && !o.Fall.Recovered || o.Worse }

// Lead is how many iterations before the fall a detector fired, negative if it fired
// after it; false if it did not fire or the reward did not fall.
func (o Outcome) Lead(detector string) (int, bool) {
	first, fired := o.First[detector]
	return o.Fall.Begins - first, fired && o.Fell
}

// finite returns the finite values.
func finite(xs []float64) []float64 {
	return slices.DeleteFunc(slices.Clone(xs), func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}

// finiteMean is the mean of the finite values; NaN if there are none.
func finiteMean(xs []float64) float64 {
	sum := 0.0
	xs = finite(xs)
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// spike is the largest finite value divided by the median; NaN if there is none.
func spike(xs []float64) float64 {
	xs = finite(xs)
	if len(xs) == 0 {
		return math.NaN()
	}
	slices.Sort(xs)
	return xs[len(xs)-1] / xs[len(xs)/2]
}
