package model

import "slices"

// NewCritic makes a critic from a policy: the policy's backbone and a value head of zeros,
// so that every value is 0 at first. It shares the slices of the backbone with the policy.
func NewCritic(policy Params) Params {
	c := policy.Config.Critic()
	p := Params{Config: c, Values: slices.Clone(policy.Values[:c.valueHead()])}
	for _, t := range c.Tensors()[c.valueHead():] {
		p.Values = append(p.Values, make([]float32, t.Elements()))
	}
	return p
}

// NewCritic gives the critic that NewCritic makes of the state's parameters, with so many values for
// each token. They are copied while the source is read.
func (s *State) NewCritic(values int) Source {
	c, policy := s.c.CriticOf(values), s.reader()
	shapes := c.Tensors()
	return sourceOf(c, 1, 0, func(p part, i int, into []float32) ([]float32, error) {
		if i < c.valueHead() {
			return policy(p, i, into)
		}
		v := sized(into, shapes[i].Elements())
		clear(v)
		return v, nil
	}).Over(s.base)
}
