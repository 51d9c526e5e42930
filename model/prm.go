package model

// PRM returns the configuration of a process reward model beside the policy: the same model, output
// head included, with files of its own. With LoRA it has adapters of its own over the same base. The
// policy's Programs score and update it.
func (c Config) PRM() Config {
	c.RewardModel = true
	return c
}

// NewPRM gives the process reward model that a policy's parameters begin (arXiv 2509.19199:
// it is initialised from the policy). They are copied while the source is read, without moments.
func (s *State) NewPRM() Source {
	return sourceOf(s.c.PRM(), 1, 0, s.reader()).Over(s.base)
}
