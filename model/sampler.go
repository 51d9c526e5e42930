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

// prepare adds the sampler's programs. The caller holds run.
func (p *Sampler) prepare() {
	sh := p.sh
	if sh.GenerateRows == 0 || sh.MaxNewTokens == 0 {
		return
	}
	key := programKey{dtype: p.net.dtype, rows: sh.GenerateRows, tokens: sh.PromptTokens, fresh: sh.MaxNewTokens, limits: p.net.limits}
	key.block = sh.BlockRows > 0
	key.append = sh.Append
	shared := key
	shared.prompts = sh.SharedPrompts
	if sh.Append.Before > 0 {
		p.add(kindAppendRoom, key, p.buildAppendRoom)
		p.add(kindAppend, key, p.buildAppend)
	} else {
		p.add(kindPrefill, shared, p.buildPrefill)
		if sh.SharedPrompts > 0 && sh.BlockRows == 0 {
			p.add(kindShareRoom, shared, p.buildShareRoom)
			p.add(kindShare, shared, p.buildShare)
		}
	}
	switch {
	case sh.BlockRows > 0:
		p.add(kindBlockRoom, key, p.buildBlockRoom)
		p.add(kindBlockSeat, shared, p.buildBlockSeat)
		p.add(kindDecodeBlock, key, p.buildDecodeBlock)
	case sh.ChunkTokens > 0:
		p.add(kindDecodeRoom, key, p.buildDecodeRoom)
		p.add(kindDecodeChunk, key, p.buildDecodeChunk)
	default:
		p.add(kindDecode, key, p.buildDecode)
	}
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
