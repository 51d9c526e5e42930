package activities

// What an update learns from changes its shape on the way from a rollout's tables to
// the device. This file and batch.go hold all of it:
//
//	TrajectoryRow   a member's episode: ids of all turns, lengths, rewards
//	   │ pieces     cut where a turn's prompt is the whole context again
//	piece           ids and sampled [tokens], what Score takes
//	   │ layOut     b pieces a micro-batch, padded to the run's width
//	MicroBatch      [b, width], what the programs take; with log-probs from Score:
//	creditInput     returns, turns, groups [trajectories]: what credit takes
//	   │ trainingSignal
//	trainingSignal  advantages, returns [trajectories][sampled tokens]
//	   │ batchRows  a piece, its old log-probs and its signal at its tokens
//	batchRow        [width]; encoded, the rows are batch.safetensors
//	   │ minibatch  the rows of one optimizer step, weighed and clipped
//	MicroBatch      [b, width], what Update takes

// piece is a stretch of a trajectory that was sampled in one growing context: a
// row of Score and Update. A trajectory whose contexts showed everything is one
// piece; behind the window of rollout.context_turns each turn is its own.
type piece struct {
	// of is the trajectory's place among the rows the pieces were cut from.
	of  int
	row int32
	// ids and sampled are the stretch's; sampled marks what the loss covers.
	ids     []int32
	sampled []bool
	// turns are the turns of the sampled ids, from 1; 0 elsewhere.
	turns []int32
	// first is the place of its first sampled id among the trajectory's.
	first int
}

// pieces cuts trajectories, in their order.
func pieces(rows []TrajectoryRow) []piece {
	var out []piece
	for of, r := range rows {
		at, samples := 0, 0
		for k := range r.PromptLengths {
			if k == 0 || r.Restarts[k] {
				out = append(out, piece{of: of, row: r.Row, first: samples})
			}
			p := &out[len(out)-1]
			end := at + int(r.PromptLengths[k]) + int(r.SampledLengths[k])
			p.ids = append(p.ids, r.IDs[at:end]...)
			for i := at; i < end; i++ {
				sampled, turn := i-at >= int(r.PromptLengths[k]), int32(0)
				if sampled {
					turn = int32(k + 1)
				}
				p.sampled, p.turns = append(p.sampled, sampled), append(p.turns, turn)
			}
			at, samples = end, samples+int(r.SampledLengths[k])
		}
	}
	return out
}
