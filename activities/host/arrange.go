package host

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/completions"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/tokenizer"
)

// Arrange makes the turns of a rollout that agents have played: the calls of each episode in the order that follows from
// their contents (run.Dialogue.Order), whatever calls were taken together. The reward is the last turn's. Episodes that
// their agent gave up have no turns.
func (h *Host) Arrange(ctx context.Context, in activities.ArrangeInput) (_ activities.ArrangeResult, err error) {
	defer run.Edge(ctx, &err, "arrange the calls of agents in run %s", in.Run.ID)
	defer run.Heartbeat(ctx)()
	begin := time.Now()
	rc, err := h.Contexts.Read(ctx, h.Store, in.Run)
	if err != nil {
		return activities.ArrangeResult{}, err
	}
	task, err := rc.Task(in.Rollout)
	if err != nil {
		return activities.ArrangeResult{}, err
	}
	dialogues, err := run.NewSpeaker(rc.Tokenizer).ReadDialogues(ctx, h.Store, task.Rows(), in.Taken)
	if err != nil {
		return activities.ArrangeResult{}, err
	}
	turns, err := arranged(rc.Tokenizer, task, dialogues)
	if err != nil {
		return activities.ArrangeResult{}, err
	}
	var out activities.ArrangeResult
	dir := run.Dir(in.Run, in.Branch, in.Rollout)
	for i, t := range turns {
		name := func(what string) string { return run.TurnName(in.Rollout, i+1, what) }
		refs := store.TurnRefs{Round: in.Rollout.Round}
		if refs.Generate, err = tables.Put(ctx, h.Store, dir, name("generate"), t.generate); err != nil {
			return activities.ArrangeResult{}, err
		}
		if refs.Step, err = tables.Put(ctx, h.Store, dir, name("step"), t.step); err != nil {
			return activities.ArrangeResult{}, err
		}
		requests, err := tables.Put(ctx, h.Store, dir, name("requests"), t.requests)
		if err != nil {
			return activities.ArrangeResult{}, err
		}
		refs.Requests = &requests
		out.Turns = append(out.Turns, refs)
	}
	out.Telemetry.Seconds = time.Since(begin).Seconds()
	return out, nil
}

// arrangedTurn is a turn of all rows.
type arrangedTurn struct {
	generate []episode.GenerateRow
	step     []episode.StepRow
	requests []run.RequestRow
}

// arranged are the turns, at least one.
func arranged(tok *tokenizer.Tokenizer, task *run.Task, dialogues []run.Dialogue) ([]arrangedTurn, error) {
	orders, most := make([][]int, len(dialogues)), 1
	for i := range dialogues {
		d := &dialogues[i]
		if d.End == nil {
			return nil, fmt.Errorf("arrange the calls of row %d: its episode is not over: %w", i, store.ErrInvalid)
		}
		if d.End.Error == "" {
			orders[i] = d.Order()
			most = max(most, len(orders[i]))
		}
	}
	turns := make([]arrangedTurn, most)
	for k := range turns {
		t := &turns[k]
		t.requests = []run.RequestRow{}
		for i := range dialogues {
			d := &dialogues[i]
			group, member := int32(i/task.Members), int32(i%task.Members)
			g := episode.GenerateRow{Row: int32(i), Group: group, Member: member}
			s := episode.StepRow{Row: g.Row, Group: group, Member: member}
			switch {
			case k < len(orders[i]):
				var r run.RequestRow
				g, s, r = arrangedRow(tok, d, orders[i], k)
				t.requests = append(t.requests, r)
			case k == 0:
				r := *d.End
				r.Calls = nil
				t.requests = append(t.requests, r)
			}
			t.generate, t.step = append(t.generate, g), append(t.step, s)
		}
	}
	return turns, nil
}

// arrangedRow is an episode's part in its turn k, from 0, of the calls in an order.
func arrangedRow(tok *tokenizer.Tokenizer, d *run.Dialogue, order []int, k int) (episode.GenerateRow, episode.StepRow, run.RequestRow) {
	c := d.Calls[order[k]]
	g, last := c.Sample, k == len(order)-1
	g.PromptIDs, g.Restart = arrangedPrompt(d, order, k)
	r := c.RequestRow
	r.PromptIDs = nil
	s := episode.StepRow{
		Row: r.Row, Group: r.Group, Member: r.Member, Alive: true, Text: tok.Decode(g.SampledIDs), Valid: true, Done: last,
		StateBefore: stateOf(c.Asked), StateKey: "ended",
	}
	if last {
		e := d.End
		s.Reward, s.Success = e.Reward, e.Success
		r.Ended, r.Reward, r.Success, r.Metrics = true, e.Reward, e.Success, e.Metrics
		return g, s, r
	}
	s.StateKey = stateOf(d.Calls[order[k+1]].Asked)
	s.NextIDs, s.NextRestart = arrangedPrompt(d, order, k+1)
	return g, s, r
}

// arrangedPrompt is what a call adds to the context of the turn before, or the whole context if it begins anew.
func arrangedPrompt(d *run.Dialogue, order []int, k int) (ids []int32, restart bool) {
	c := d.Calls[order[k]]
	if k > 0 {
		if before := d.Calls[order[k-1]]; c.Continues == before.Address {
			return c.PromptIDs[len(before.PromptIDs)+len(before.Sample.SampledIDs):], false
		}
	}
	return c.PromptIDs, true
}

// stateOf names what the policy was asked: equal calls are equal states.
func stateOf(r completions.Request) string { return completions.Address(r, 0)[:32] }

// agentBroken are the episodes of a round that their agent gave up, in their order; the rows of the round begin with
// first.
func (h *Host) agentBroken(ctx context.Context, turns []store.TurnRefs, first int) ([]run.BrokenRow, error) {
	if len(turns) == 0 {
		return nil, nil
	}
	rows, err := run.SideTable[run.RequestRow](ctx, h.Store, turns[0].Requests, "calls of agents")
	if err != nil {
		return nil, err
	}
	var out []run.BrokenRow
	for _, r := range rows {
		if r.Error != "" {
			out = append(out, run.BrokenRow{Row: r.Row + int32(first), Turn: 1, Message: r.Error, Question: "played by its agent"})
		}
	}
	return out, nil
}

// agentMetrics adds the figures of the agents of a rollout's episodes: the mean of each over the episodes that have it, and
// how many conversations an episode has.
func (h *Host) agentMetrics(ctx context.Context, m activities.Metrics, turns []store.TurnRefs) error {
	sums, counts := map[string]float64{}, map[string]int{}
	conversations, episodes := 0, 0
	for i, t := range turns {
		rows, err := run.SideTable[run.RequestRow](ctx, h.Store, t.Requests, fmt.Sprintf("calls of agents in turn %d", i+1))
		if err != nil {
			return err
		}
		for _, r := range rows {
			if r.Address != "" && r.Continues == "" {
				conversations++
			}
			if !r.Ended || r.Error != "" {
				continue
			}
			episodes++
			var own map[string]float64
			if r.Metrics != "" {
				if err := json.Unmarshal([]byte(r.Metrics), &own); err != nil {
					return fmt.Errorf("figures of the agent in row %d: %w: %w", r.Row, err, store.ErrInvalid)
				}
			}
			for name, value := range own {
				sums[name] += value
				counts[name]++
			}
		}
	}
	if episodes == 0 {
		return nil
	}
	m["agent/conversations"] = canon.Float(float64(conversations) / float64(episodes))
	for name, sum := range sums {
		m["agent/own/"+name] = canon.Float(sum / float64(counts[name]))
	}
	return nil
}
