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
func (p *Sampler) uploadTables() error {
	if p.sh.GenerateRows == 0 {
		return nil
	}
	p.positions = p.sh.PromptTokens + p.sh.MaxNewTokens
	return p.uploadRope(&p.rope, p.positions)
}

// tables are what the sampler's programs read besides weights and rows.
func (p *Sampler) tables() []*tables { return []*tables{&p.legal, &p.rope} }

// at is the sampler as it runs on device k, on which spread has been.
func (p *Sampler) at(k int) *Sampler {
	q := *p
	q.core = p.core.at(k)
	return &q
}

// free frees what the sampler's programs read, and those of Fingerprint. The caller holds run.
func (p *Sampler) free() {
	p.rope.free()
	p.halves.release()
	p.halves = nil
}
