package activities

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ProgramsDiffer is an ErrProgramsDiffer that says which programs differ: their hashes by
// name, "" where there is no program of that name.
type ProgramsDiffer struct {
	// Recorded are those that the run was computed with, Present those of this worker.
	Recorded map[string]string `json:"recorded"`
	Present  map[string]string `json:"present"`
}

// SamePrograms checks the hashes of a worker's lowered programs against those that a run
// has recorded: another program may give other bits (law 8). A run that has recorded none
// accepts all. The error is a *ProgramsDiffer.
func SamePrograms(recorded, present map[string]string) error {
	d := &ProgramsDiffer{Recorded: map[string]string{}, Present: map[string]string{}}
	for name, hash := range recorded {
		if present[name] != hash {
			d.Recorded[name], d.Present[name] = hash, present[name]
		}
	}
	if len(d.Recorded) == 0 {
		return nil
	}
	return d
}

// Names are the names of the programs that differ, in order.
func (d *ProgramsDiffer) Names() []string { return slices.Sorted(maps.Keys(d.Recorded)) }

// Error names the programs.
func (d *ProgramsDiffer) Error() string {
	return fmt.Sprintf("programs %s are not those the run was computed with: go on with the build that began it: %v",
		strings.Join(d.Names(), ", "), ErrProgramsDiffer)
}

// Unwrap is the sentinel error.
func (d *ProgramsDiffer) Unwrap() error { return ErrProgramsDiffer }
