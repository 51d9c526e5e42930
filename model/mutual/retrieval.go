package mutual

// retrieval ranks the prompts by each reasoning's log-prob.
func (c Cross) retrieval() [len(Ks)]Retrieval {
	prompts := len(c.LogProbs[0])
	right := func(i, j int) bool {
		if c.Same == nil {
			return j == c.Own[i]
		}
		return c.Same[j] == c.Same[c.Own[i]]
	}
	var found [len(Ks)]int
	rights := 0
	for i, row := range c.LogProbs {
		rank := prompts // of the first right prompt, from 0
		for j := range row {
			if !right(i, j) {
				continue
			}
			rights++
			before := 0
			for other, l := range row {
				if l > row[j] || l == row[j] && other < j {
					before++
				}
			}
			rank = min(rank, before)
		}
		for at, k := range Ks {
			if rank < min(k, prompts) {
				found[at]++
			}
		}
	}
	n := float64(len(c.LogProbs))
	chance := float64(rights) / n / float64(prompts)
	var all [len(Ks)]Retrieval
	for at, k := range Ks {
		all[at] = Retrieval{
			K: k, Accuracy: float64(found[at]) / n,
			Chance: min(1, chance*float64(min(k, prompts))),
		}
	}
	return all
}
