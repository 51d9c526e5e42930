package validate

import (
	"github.com/reprise-rl/reprise/model/cost"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// derivedJSON is spec.Derived as `validate --json` writes it: what follows from the model
// is omitted if the model is not available.
type derivedJSON struct {
	spec.Derived
	Parameters int64         `json:"parameters,omitempty"`
	Memory     *cost.Memory  `json:"memory_bytes,omitempty"`
	Storage    *cost.Storage `json:"storage_bytes,omitempty"`
}

func newDerivedJSON(d spec.Derived, modelKnown bool) *derivedJSON {
	out := &derivedJSON{Derived: d}
	if modelKnown {
		out.Parameters, out.Memory, out.Storage = d.Parameters, &d.Memory, &d.Storage
	}
	return out
}
