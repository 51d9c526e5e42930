package model

import (
	"fmt"

	"github.com/reprise-rl/reprise/model/xla/executable"
)

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
