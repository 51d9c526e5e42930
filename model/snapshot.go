package model

import "fmt"

// Snapshot is the full training state of a policy or a critic in the host's memory: the
// weights, AdamW's first and second moments, and the number of updates applied. It is for
// small models: a Source reads a state of any size.
type Snapshot struct {
	Params Params
	M, V   Params
	Step   int64
}

// NewSnapshot is the state before the first update: zero moments, step 0.
func NewSnapshot(p Params) Snapshot {
	return Snapshot{Params: p, M: zeroParams(p.Config), V: zeroParams(p.Config)}
}

func (s Snapshot) part(p part) Params { return [...]Params{s.Params, s.M, s.V}[p] }

func (s Snapshot) read(p part, i int, _ []float32) ([]float32, error) {
	return s.part(p).Values[i], nil
}

func (s Snapshot) source() Source { return sourceOf(s.Params.Config, partCount, s.Step, s.read) }

func (s Snapshot) check() error {
	for p, what := range []string{"parameters", "first moments", "second moments"} {
		x := s.part(part(p))
		if x.Config.shape() != s.Params.Config.shape() {
			return fmt.Errorf("snapshot's %s have another configuration", what)
		}
		if err := x.check(); err != nil {
			return fmt.Errorf("snapshot's %s: %w", what, err)
		}
	}
	if s.Step < 0 {
		return fmt.Errorf("snapshot's step is %d", s.Step)
	}
	return nil
}

// Files are the files of the snapshot, as State.Files describes them.
func (s Snapshot) Files() ([]File, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("write snapshot: %w", err)
	}
	return stateFiles(s.Params.Config, partCount, s.Step, s.read, SnapshotFile)
}
