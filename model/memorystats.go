package model

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/xla/executable"
)

// Memory compiles the programs, and gives what XLA's own statistics say of the memory of
// each, by the names of Hashes. Of the programs that there are for each shape of a tensor it
// is the one that needs the most.
func (p *Programs) Memory() (map[string]executable.Memory, error) {
	out := map[string]executable.Memory{}
	for k, progs := range p.current() {
		if err := progs.compile(); err != nil {
			return nil, err
		}
		for _, prog := range progs.distinct() {
			m, err := prog.memory()
			if err != nil {
				return nil, err
			}
			if m.Bytes() >= out[string(k)].Bytes() {
				out[string(k)] = m
			}
		}
	}
	return out, nil
}

// memory is the compiled program's.
func (p *program) memory() (executable.Memory, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exec == nil {
		return executable.Memory{}, fmt.Errorf("memory of program %s: %w: the programs were freed", p.name, ErrInput)
	}
	m, err := executable.MemoryOf(p.exec)
	if err != nil {
		return executable.Memory{}, fmt.Errorf("memory of program %s: %w", p.name, err)
	}
	return m, nil
}
