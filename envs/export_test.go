package envs

// Of gives the part, by its index, that a group plays; groups count from 0.
func (m Mixture) Of(group int) int {
	var counts [MaxParts]int64
	q := m.quota(counts[:])
	part := 0
	for range group + 1 {
		part = q.next()
	}
	return part
}
