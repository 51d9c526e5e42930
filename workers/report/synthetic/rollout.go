package synthetic

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/model/safetensors"
)

// rollout makes the tables of a rollout and its batch. Iteration −1 is an evaluation's:
// its groups are the same instances every time.
func (w *writer) rollout(
	iteration, groups, members int, skill float64,
) (rows []episode.TrajectoryRow, turns [][]episode.StepRow, batch []byte) {
	turns = make([][]episode.StepRow, w.shape.Turns)
	for g := range groups {
		state := w.random.IntN(max(w.shape.States, 1))
		if iteration < 0 {
			state = g % max(w.shape.States, 1)
		}
		for m := range members {
			row := w.episode(len(rows), g, m, state, skill, turns)
			row.Selected, row.Weight = iteration >= 0 && g%2 == 0, 1
			rows = append(rows, row)
		}
	}
	if iteration >= 0 {
		batch = w.batch(rows, members, iteration)
	}
	return rows, turns, batch
}

// episode plays an episode and appends its rows to the turns.
func (w *writer) episode(row, group, member, state int, skill float64, turns [][]episode.StepRow) episode.TrajectoryRow {
	text := w.shape.Texts
	key := fmt.Sprintf("state %d\n%s", state, text.Board)
	r := episode.TrajectoryRow{
		Row: int32(row), Group: int32(group), Member: int32(member), Environment: cmp.Or(text.Label, "synthetic"), Valid: true,
		StateKeys: []string{key}, Success: w.random.Float64() < skill,
	}
	played := 1 + w.random.IntN(w.shape.Turns)
	for k := range w.shape.Turns {
		step := episode.StepRow{Row: r.Row, Group: r.Group, Member: r.Member, Alive: k < played, Done: k >= played-1}
		if step.Alive {
			w.turn(&r, &step, k, state)
		}
		turns[k] = append(turns[k], step)
	}
	if r.Success {
		r.Rewards[played-1] = 1
		turns[played-1][row].Reward = 1
	}
	return r
}

func (w *writer) turn(r *episode.TrajectoryRow, step *episode.StepRow, k, state int) {
	text := w.shape.Texts
	prompt := fmt.Sprintf("Reward: 0\nTurn %d:\n%s\nActions left: %d\nReply: <think> </think><answer> </answer>", k+1, w.board(state, k), 5-k)
	said := cmp.Or(text.Said, " "+w.thoughts()+" ") + "</think><answer> " + cmp.Or(text.Action, "Down || Right") + " </answer>"
	prompts, sampled := w.tokenizer.Encode(prompt), append(w.tokenizer.Encode(said), w.tokenizer.EndOfTurn()[0])
	r.IDs = append(append(r.IDs, prompts...), sampled...)
	r.PromptLengths, r.SampledLengths = append(r.PromptLengths, int32(len(prompts))), append(r.SampledLengths, int32(len(sampled)))
	r.Restarts, r.StateKeys = append(r.Restarts, k == 0), append(r.StateKeys, fmt.Sprintf("%s after %d", r.StateKeys[0], k+1))
	for range sampled {
		r.RolloutLogProbs = append(r.RolloutLogProbs, -float32(w.random.ExpFloat64())/2)
	}
	r.Rewards, r.Penalties = append(r.Rewards, 0), append(r.Penalties, 0)
	action := cmp.Or(text.Action, "Down || Right")
	r.Actions, r.Executed = append(r.Actions, action), append(r.Executed, 2)
	r.Effective, r.Invalid = append(r.Effective, 1), append(r.Invalid, 0)
	step.Text, step.Actions, step.Valid, step.Effective = said, []string{action}, true, 1
	step.StateBefore, step.StateKey, step.Observation = r.StateKeys[k], r.StateKeys[k+1], w.board(state, k+1)
}

// thoughts are about as many words as the shape says.
func (w *writer) thoughts() string {
	out := make([]string, 1+w.random.IntN(2*max(w.shape.Words, 1)))
	for i := range out {
		out[i] = words[w.random.IntN(len(words))]
	}
	return strings.Join(out, " ")
}

// board is a state's text: a player on a small lake.
func (w *writer) board(state, turn int) string {
	if w.shape.Texts.Board != "" {
		return w.shape.Texts.Board
	}
	local := rand.New(rand.NewPCG(uint64(state), 3))
	cells := []byte("________________")
	cells[local.IntN(16)], cells[15] = 'O', 'G'
	cells[(local.IntN(12)+turn)%15] = 'P'
	return string(cells[:4]) + "\n" + string(cells[4:8]) + "\n" + string(cells[8:12]) + "\n" + string(cells[12:])
}

// batch is what a report reads of a batch: rewards against the group's mean.
func (w *writer) batch(rows []episode.TrajectoryRow, members, iteration int) []byte {
	var taken []episode.TrajectoryRow
	width := 1
	for _, r := range rows {
		if r.Selected {
			taken = append(taken, r)
			width = max(width, len(r.IDs))
		}
	}
	n := len(taken) + 1 // and a row of padding
	row, origin := make([]int32, n), make([]int32, n)
	mask, advantages := make([]float32, n*width), make([]float32, n*width)
	row[n-1], origin[n-1] = -1, -1
	for i, r := range taken {
		row[i], origin[i] = r.Row, int32(iteration)
		mean := 0.0
		for _, other := range rows[int(r.Group)*members : (int(r.Group)+1)*members] {
			mean += other.Reward() / float64(members)
		}
		at := i * width
		for k := range r.PromptLengths {
			at += int(r.PromptLengths[k])
			for range r.SampledLengths[k] {
				mask[at], advantages[at] = 1, float32(r.Reward()-mean)
				at++
			}
		}
	}
	wide, flat := []int{n, width}, []int{n}
	body, err := safetensors.Encode([]safetensors.Tensor{
		safetensors.I32("row", flat, row), safetensors.I32("origin", flat, origin),
		safetensors.F32("loss_mask", wide, mask), safetensors.F32("advantages", wide, advantages),
	}, nil)
	w.note(err)
	return body
}
