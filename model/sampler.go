package model

// Sampler samples turns from a policy: it continues prompts, and keeps their keys and values from turn to
// turn. It has the programs of Shapes.GenerateRows.
type Sampler struct {
	*core
	rope      tables // of the places of a row: its prompt and its new tokens
	positions int    // how many there are
	halves    group  // of Fingerprint; nil before its first use
}

// uploadTables uploads the rotary tables. The caller holds run.
func (s *Sampler) uploadTables() error {
	if s.sh.GenerateRows == 0 {
		return nil
	}
	s.positions = s.sh.PromptTokens + s.sh.MaxNewTokens
	return s.uploadRope(&s.rope, s.positions)
}

// tables are what the sampler's programs read besides weights and rows.
func (s *Sampler) tables() []*tables { return []*tables{&s.legal, &s.rope} }

// at is the sampler as it runs on device k, on which spread has been.
func (s *Sampler) at(k int) *Sampler {
	q := *s
	q.core = s.core.at(k)
	return &q
}

// free frees what the sampler's programs read, and those of Fingerprint. The caller holds run.
func (s *Sampler) free() {
	s.rope.free()
	s.halves.release()
	s.halves = nil
}
