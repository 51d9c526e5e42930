package activities

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// OtherProgram is a program whose hash is not the recorded one.
type OtherProgram struct {
	Name string `json:"name"`
	// Recorded is the hash that the run was computed with, Present that of this worker's
	// build; "" where it has no such program.
	Recorded string `json:"recorded"`
	Present  string `json:"present"`
}

// ProgramsDiffer is an ErrProgramsDiffer that says which programs differ, in the order of
// their names.
type ProgramsDiffer struct {
	Programs []OtherProgram `json:"programs"`
}

// SamePrograms checks the hashes of a worker's lowered programs against those that a run
// has recorded: another program may give other bits (law 8). A run that has recorded none
// accepts all. The error is a *ProgramsDiffer.
func SamePrograms(recorded, present map[string]string) error {
	d := &ProgramsDiffer{}
	for _, name := range slices.Sorted(maps.Keys(recorded)) {
		if present[name] != recorded[name] {
			d.Programs = append(d.Programs, OtherProgram{name, recorded[name], present[name]})
		}
	}
	if len(d.Programs) == 0 {
		return nil
	}
	return d
}

// Error names the programs.
func (d *ProgramsDiffer) Error() string {
	var names []string
	for _, p := range d.Programs {
		names = append(names, p.Name)
	}
	return fmt.Sprintf("programs %s are not those the run was computed with: use the build that began it: %v",
		strings.Join(names, ", "), ErrProgramsDiffer)
}

// Unwrap is the sentinel error.
func (d *ProgramsDiffer) Unwrap() error { return ErrProgramsDiffer }
