package device

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
)

// contexts puts together each row's recorded ids up to this turn's sample. lengths are how many
// they were at the start of each turn, this one included.
func contexts(ctx context.Context, rc *run.Context, s store.Store, task *run.Task,
	in activities.GenerateInput) (rows []episode.GenerateRow, contexts [][]int32, lengths [][]int, err error) {
	wave, err := recorded.Wave(ctx, s, in.Rollout.Wave, in.Turn, in.Turns)
	if err != nil {
		return nil, nil, nil, err
	}
	if in.Turn == 1 {
		answers, err := run.ReadAnswers(ctx, s, in.Opening, nil)
		if err != nil {
			return nil, nil, nil, err
		}
		if task, err = task.Recorded(answers); err != nil {
			return nil, nil, nil, err
		}
		rows, contexts, err = firstPrompts(rc, task, in.Policy.Branch, in.Rollout, answers)
		for i := range rows { // others begin in a later wave or, as branches, in a later turn
			rows[i].Alive = rows[i].Alive && task.Samples(int(rows[i].Member), in.Turn) &&
				task.Trees.Wave(int(rows[i].Member)) == in.Rollout.Wave && (wave.Playing == nil || wave.Playing[i])
		}
		return rows, contexts, [][]int{lengthsOf(contexts)}, err
	}
	turns := wave.Turns
	if len(turns) == 0 {
		return nil, nil, nil, fmt.Errorf("turn %d has no turn before it: %w", in.Turn, store.ErrInvalid)
	}
	contexts = make([][]int32, len(turns[0].Generate))
	rows = make([]episode.GenerateRow, len(contexts))
	for i, turn := range turns {
		before := make([]int, len(rows))
		for r := range rows {
			g, st := turn.Generate[r], turn.Step[r]
			if g.Restart {
				contexts[r] = nil
			}
			contexts[r] = append(contexts[r], g.PromptIDs...)
			before[r] = len(contexts[r])
			contexts[r] = append(contexts[r], g.SampledIDs...)
			rows[r] = episode.GenerateRow{Row: g.Row, Group: g.Group, Member: g.Member, Alive: g.Alive && !st.Done, PromptIDs: st.NextIDs,
				Restart: st.NextRestart}
			if !task.Samples(int(g.Member), in.Turn) {
				rows[r].Alive, rows[r].PromptIDs = false, nil
			}
			if i == len(turns)-1 { // an earlier turn's are the next one's prompt ids
				if st.NextRestart {
					contexts[r] = nil
				}
				contexts[r] = append(contexts[r], st.NextIDs...)
			}
		}
		lengths = append(lengths, before)
	}
	return rows, contexts, append(lengths, lengthsOf(contexts)), nil
}

func lengthsOf(rows [][]int32) []int {
	out := make([]int, len(rows))
	for i, ids := range rows {
		out[i] = len(ids)
	}
	return out
}

// firstPrompts are the initial states of a rollout: its rows, and each row's
// context. The prompt comes from the group's address, so it is the same for all
// members. A row whose foreign environment broke at the beginning is padding, with the prompt of a
// member whose environment did not.
func firstPrompts(rc *run.Context, s *run.Task, branch int, r activities.Rollout,
	answers run.Answers) ([]episode.GenerateRow, [][]int32, error) {
	var rows []episode.GenerateRow
	var contexts [][]int32
	broken := map[int32]bool{}
	for _, b := range answers.Broken() {
		broken[b.Row] = true
	}
	for g := range s.Groups {
		begun := 0
		for begun < s.Slots-1 && broken[int32(g*s.Slots+begun)] {
			begun++
		}
		a := rc.Address(s, branch, r, g, begun)
		env := s.Env(g)
		ids, err := s.Protocol.PromptIDs(s.Tokenizer, env, env.Reset(a.Instance, a.Chance))
		if err != nil {
			return nil, nil, fmt.Errorf("prompt of group %d: %w", g, err)
		}
		if width := s.Widths[0]; len(ids) > width {
			return nil, nil, fmt.Errorf("prompt of group %d has %d tokens, prompt_tokens allows %d: %w", g, len(ids), width, store.ErrInvalid)
		}
		for m := range s.Slots {
			row := int32(g*s.Slots + m)
			rows = append(rows, episode.GenerateRow{Row: row, Group: int32(g), Member: int32(m), Alive: !broken[row], PromptIDs: ids, Restart: true})
			contexts = append(contexts, ids)
		}
	}
	return rows, contexts, nil
}
