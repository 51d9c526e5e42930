package study

import (
	"fmt"
	"math"
	"strings"

	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/workflows/collapse"
)

// fitted is the last seed to whose runs the numbers of echo_trap were fitted; the runs of later seeds
// judge it.
const fitted = 3

// Later is how often one of the detectors that a study's runs do not have would have fired. It is computed
// from what the records hold.
type Later struct {
	Detector string
	// Harmed, Fell and Harmless count the runs that it is judged by, see Outcome.Harmed; InHarmed, InFallen
	// and InHarmless those of them in which it fired.
	Harmed, InHarmed     int
	Fell, InFallen       int
	Harmless, InHarmless int
	// Leads holds how many iterations before a fall it fired, in the order of the records.
	Leads []int
}

// LaterDetectors judges the detectors that are off in a study's runs, by the runs of the seeds that are
// asked for, in the order of collapse.Rules.
func LaterDetectors(records []Record, of func(seed uint64) bool) []Later {
	out := []Later{{Detector: collapse.NoSignal}, {Detector: collapse.NoFormat}, {Detector: collapse.EntropyUniform},
		{Detector: collapse.EchoTrap}}
	for _, r := range records {
		if !of(r.Seed) {
			continue
		}
		o, first := Judge(r), r.later()
		for i := range out {
			at, fired := first[out[i].Detector]
			out[i].add(o, at, fired)
		}
	}
	return out
}

// add counts a run in which the detector fired first in an iteration, or did not fire.
func (l *Later) add(o Outcome, at int, fired bool) {
	count := func(is bool, all, in *int) {
		if is {
			*all++
		}
		if is && fired {
			*in++
		}
	}
	count(o.Harmed(), &l.Harmed, &l.InHarmed)
	count(o.Fell, &l.Fell, &l.InFallen)
	count(!o.Harmed(), &l.Harmless, &l.InHarmless)
	if o.Fell && fired {
		l.Leads = append(l.Leads, o.Fall.Begins-at)
	}
}

// later gives the iterations in which the detectors that a study's runs do not have fire first, by name.
func (r Record) later() map[string]int {
	c := collapse.Defaults().Filled()
	c.EntropyUniform.Vocabulary = starter.Vocabulary(0).Size()
	d, err := collapse.New(c)
	if err != nil {
		panic(fmt.Sprintf("study: %v", err)) // the defaults are sound
	}
	first := map[string]int{}
	var state collapse.State
	previous := collapse.Metrics{}
	for n := range r.Size.Iterations {
		m := collapse.Metrics{}
		for _, name := range Columns {
			if v := r.Metrics[name][n]; !math.IsNaN(float64(v)) {
				m[name] = v
			}
		}
		for name, v := range collapse.Smooth(previous, m, collapse.Curves(), c.Decay) {
			m[name] = v
		}
		previous = m
		var events []collapse.Event
		state, events = d.Observe(state, n, m, nil)
		for _, e := range events {
			if _, fired := first[e.Detector]; !fired {
				first[e.Detector] = e.Iteration
			}
		}
	}
	return first
}

// laterTable renders the detectors that a study's runs do not have, by the seeds that the joint rule
// was fitted to and by the others.
func laterTable(records []Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nDetectors that these runs did not have, computed from the records. The numbers of echo_trap were fitted\nto seeds 1 to %d; the other seeds judge it.\n\n", fitted)
	b.WriteString("| detector | seeds | fired in harmed runs | in runs that fell | in harmless ones | leads |\n|---|---|---|---|---|---|\n")
	for _, part := range []struct {
		name string
		of   func(uint64) bool
	}{
		{fmt.Sprintf("1 to %d", fitted), func(seed uint64) bool { return seed <= fitted }},
		{fmt.Sprintf("from %d", fitted+1), func(seed uint64) bool { return seed > fitted }},
		{"all", func(uint64) bool { return true }},
	} {
		for _, l := range LaterDetectors(records, part.of) {
			if l.Detector == collapse.EchoTrap || part.name == "all" {
				fmt.Fprintf(&b, "| %s | %s | %d of %d | %d of %d | %d of %d | %s |\n", l.Detector, part.name,
					l.InHarmed, l.Harmed, l.InFallen, l.Fell, l.InHarmless, l.Harmless, joined(l.Leads))
			}
		}
	}
	return b.String()
}
