package episode

// Stretch is a stretch of a trajectory that was sampled in one growing context: a
// row of Score and Update. A trajectory whose contexts showed everything is one
// stretch; with a window of rollout.context_turns, each turn after it is its own.
type Stretch struct {
	// Of is the trajectory's place among the rows the stretches were cut from.
	Of  int
	Row int32
	// Ids and sampled are the stretch's; sampled marks what the loss covers.
	Ids     []int32
	Sampled []bool
	// Turns are the turns of the sampled ids, from 1; 0 elsewhere.
	Turns []int32
	// First is the place of its first sampled id among the trajectory's.
	First int
}

// Stretches cuts trajectories, in their order.
func Stretches(rows []TrajectoryRow) []Stretch {
	var out []Stretch
	for of, r := range rows {
		at, samples := 0, 0
		for k := range r.PromptLengths {
			if k == 0 || r.Restarts[k] {
				out = append(out, Stretch{Of: of, Row: r.Row, First: samples})
			}
			p := &out[len(out)-1]
			end := at + int(r.PromptLengths[k]) + int(r.SampledLengths[k])
			p.Ids = append(p.Ids, r.IDs[at:end]...)
			for i := at; i < end; i++ {
				sampled, turn := i-at >= int(r.PromptLengths[k]), int32(0)
				if sampled {
					turn = int32(k + 1)
				}
				p.Sampled, p.Turns = append(p.Sampled, sampled), append(p.Turns, turn)
			}
			at, samples = end, samples+int(r.SampledLengths[k])
		}
	}
	return out
}
