package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/envs/completions"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
)

// RequestRow is a call of the policy by an agent, or says how an episode of an agent ended. In a table of calls that
// were taken together, each is a row of its own; in the table of a turn, the row of the episode's last call has both.
type RequestRow struct {
	Row    int32 `parquet:"row"`
	Group  int32 `parquet:"group"`
	Member int32 `parquet:"member"`
	// Address is the call's in its episode; see completions.Address. It is empty where there is no call.
	Address string `parquet:"address"`
	// Request is the call as it was read, as JSON: a completions.Request.
	Request string `parquet:"request"`
	// Continues is the address of the call whose context and sample the context begins with; "" where it begins anew.
	Continues string `parquet:"continues"`
	// PromptIDs are the whole context before the sample. The table of a turn leaves them out: they follow from its
	// generate table.
	PromptIDs []int32 `parquet:"prompt_ids,list"`
	// Ended says that the episode is over: with Reward and Success and the agent's own figures, a JSON object, or with an
	// Error. Calls are the addresses of the calls whose answers the agent got; the table of a turn leaves them out.
	Ended   bool     `parquet:"ended"`
	Reward  float64  `parquet:"reward"`
	Success bool     `parquet:"success"`
	Metrics string   `parquet:"metrics"`
	Error   string   `parquet:"error"`
	Calls   []string `parquet:"calls,list"`
}

// DialogueCall is a call that was answered.
type DialogueCall struct {
	RequestRow
	Asked  completions.Request
	Sample episode.GenerateRow
	Answer completions.Completion
}

// Dialogue is what an agent and the policy said in an episode so far.
type Dialogue struct {
	// Calls are in the order in which they were taken.
	Calls []DialogueCall
	// End is nil while the episode is under way.
	End *RequestRow
}

// ReadDialogues reads the episodes of a rollout from the tables of calls that were taken and of their samples.
func (sp *Speaker) ReadDialogues(ctx context.Context, s store.Store, rows int, taken []activities.Taken) ([]Dialogue, error) {
	out := make([]Dialogue, rows)
	for i, t := range taken {
		requests, err := tables.Get[RequestRow](ctx, s, t.Calls)
		if err != nil {
			return nil, fmt.Errorf("calls of agents, table %d: %w", i+1, err)
		}
		var samples []episode.GenerateRow
		if t.Samples != nil {
			if samples, err = tables.Get[episode.GenerateRow](ctx, s, *t.Samples); err != nil {
				return nil, fmt.Errorf("answers to agents, table %d: %w", i+1, err)
			}
		}
		for _, r := range requests {
			if r.Row < 0 || int(r.Row) >= rows {
				return nil, fmt.Errorf("calls of agents, table %d: row %d of %d: %w", i+1, r.Row, rows, store.ErrInvalid)
			}
			d := &out[r.Row]
			if r.Ended {
				d.End = &r
				continue
			}
			if int(r.Row) >= len(samples) || !samples[r.Row].Alive {
				return nil, fmt.Errorf("calls of agents, table %d: row %d has no sample: %w", i+1, r.Row, store.ErrInvalid)
			}
			c := DialogueCall{RequestRow: r, Sample: samples[r.Row]}
			if c.Asked, err = ReadRequest(r); err != nil {
				return nil, err
			}
			c.Answer = sp.Answer(c.Asked, len(r.PromptIDs), c.Sample)
			d.Calls = append(d.Calls, c)
		}
	}
	return out, nil
}

// Call is the answered call at an address; nil if there is none.
func (d *Dialogue) Call(address string) *DialogueCall {
	i := slices.IndexFunc(d.Calls, func(c DialogueCall) bool { return c.Address == address })
	if i < 0 {
		return nil
	}
	return &d.Calls[i]
}

// parent is the answered call with the longest history that a call begins with, answer included; nil if there is none.
// Its tools are the call's.
func (d *Dialogue) parent(r completions.Request) *DialogueCall {
	var best *DialogueCall
	for i := range d.Calls {
		c := &d.Calls[i]
		n := len(c.Asked.Messages)
		if len(r.Messages) < n+2 || best != nil && !c.before(best) || !sameTools(r, c.Asked) {
			continue
		}
		if slices.EqualFunc(r.Messages[:n], c.Asked.Messages, sameMessage) && c.said(r.Messages[n]) {
			best = c
		}
	}
	return best
}

// before reports whether a call goes before another one as the one that is continued: by the longer history, then by what
// was asked. Of calls that asked the same, the one that was taken first stays.
func (c *DialogueCall) before(other *DialogueCall) bool {
	if n, m := len(c.Asked.Messages), len(other.Asked.Messages); n != m {
		return n > m
	}
	return completions.Address(c.Asked, 0) < completions.Address(other.Asked, 0)
}

func sameTools(a, b completions.Request) bool {
	return slices.EqualFunc(a.Tools, b.Tools, func(x, y chat.Tool) bool {
		return x.Name == y.Name && x.Description == y.Description && string(x.Parameters) == string(y.Parameters)
	})
}

// sameMessage compares messages. The ids of calls are the agent's own business.
func sameMessage(a, b completions.Message) bool {
	return a.Role == b.Role && a.Content == b.Content && slices.EqualFunc(a.Calls, b.Calls, sameCall)
}

func sameCall(a, b completions.ToolCall) bool { return a.Name == b.Name && a.Arguments == b.Arguments }

// said reports whether a message is the call's answer. Blanks around it do not count: many clients cut them off.
func (c *DialogueCall) said(m completions.Message) bool {
	return m.Role == "assistant" && strings.TrimSpace(m.Content) == strings.TrimSpace(c.Answer.Text) &&
		slices.EqualFunc(m.Calls, c.Answer.Calls, sameCall)
}

// ReadRequest reads the call of a row.
func ReadRequest(r RequestRow) (completions.Request, error) {
	var out completions.Request
	if err := json.Unmarshal([]byte(r.Request), &out); err != nil {
		return out, fmt.Errorf("call of an agent in row %d: %w: %w", r.Row, err, store.ErrInvalid)
	}
	return out, nil
}

// MetricsText is an agent's own figures as canonical JSON; "" without any.
func MetricsText(m map[string]float64) (string, error) {
	if len(m) == 0 {
		return "", nil
	}
	b, err := canon.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("figures of an agent: %w", err)
	}
	return string(b), nil
}

// ReadRequests reads the calls of a rollout's turns, each with its whole context: [turns][calls].
func ReadRequests(ctx context.Context, s store.Store, turns []store.TurnRefs) ([][]RequestRow, error) {
	var out [][]RequestRow
	contexts := map[int32][]int32{}
	for i, t := range turns {
		rows, err := SideTable[RequestRow](ctx, s, t.Requests, fmt.Sprintf("calls of agents in turn %d", i+1))
		if err != nil {
			return nil, err
		}
		generated, err := tables.Get[episode.GenerateRow](ctx, s, t.Generate)
		if err != nil {
			return nil, err
		}
		for k, r := range rows {
			if r.Row < 0 || int(r.Row) >= len(generated) {
				return nil, fmt.Errorf("calls of agents in turn %d: row %d of %d: %w", i+1, r.Row, len(generated), store.ErrInvalid)
			}
			g := generated[r.Row]
			if r.Address == "" {
				continue
			}
			if g.Restart {
				contexts[r.Row] = nil
			}
			rows[k].PromptIDs = slices.Concat(contexts[r.Row], g.PromptIDs)
			contexts[r.Row] = slices.Concat(rows[k].PromptIDs, g.SampledIDs)
		}
		out = append(out, rows)
	}
	return out, nil
}
