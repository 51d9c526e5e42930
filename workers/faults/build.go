package faults

import "github.com/reprise-rl/reprise/model"

// The builds that a worker process can pretend to be of.
const (
	OtherPrograms = "programs"
	OtherNumerics = "numerics"
)

// OtherProgram is the program that a build of OtherPrograms lowers differently.
const OtherProgram = "forward"

var builds = map[string]model.OtherBuild{
	OtherPrograms: {Program: OtherProgram},
	OtherNumerics: {Numerics: 1},
}

// Build is how the build of this process differs from the real one: see
// model.DeviceOptions.
func (p *Plan) Build() model.OtherBuild { return p.build }
