package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
)

// ToolAsker asks outside tools of one kind. Several goroutines may use it. A failure of the policy is an answer; an error
// is about the tool. It wraps activities.ErrNotServed if this worker has no such tool.
type ToolAsker interface {
	Ask(ctx context.Context, q ToolAsked) (envs.ToolAnswer, error)
}

// ToolAsked is a question to an outside tool in an episode.
type ToolAsked struct {
	envs.ToolQuestion
	// Episode names the episode in this process.
	Episode string
	// Before are the episode's questions to outside tools so far, in their order.
	Before []envs.ToolQuestion
}

// ToolDescriber is a ToolAsker whose tools are described by a server: it gives the options of a spec with the description
// in them. A server that this worker does not have is activities.ErrNotServed.
type ToolDescriber interface {
	Described(ctx context.Context, tool envs.Tool) (json.RawMessage, error)
}

// toolsAtOnce is how many episodes' calls of outside tools are asked at the same time.
const toolsAtOnce = 16

// CallTools answers the calls of tools in a turn's samples, and what environments ask about actions (envs.Graded), and
// stores calls and answers. What is answered outside of this program is stored before the episode's next question is
// asked: it is asked once, and a table that has been written is read.
func (h *Host) CallTools(ctx context.Context, in activities.CallToolsInput) (_ activities.CallToolsResult, err error) {
	defer run.Edge(ctx, &err, "call tools in turn %d of run %s", in.Turn, in.Run.ID)
	defer run.Heartbeat(ctx)()
	start := time.Now()
	m, err := h.calling(ctx, in)
	if err != nil {
		return activities.CallToolsResult{}, err
	}
	dir, name := run.Dir(in.Run, in.Branch, in.Rollout), run.TurnName(in.Rollout, in.Turn, "calls")
	rows := func() ([]run.CallRow, error) { return m.answer(ctx, h.askOnce) }
	var ref store.Ref
	if m.outside() {
		var question string
		if question, err = run.DigestOf(m.replies); err == nil {
			ref, err = tables.First(ctx, h.Store, dir, name, question, rows)
		}
	} else {
		var all []run.CallRow
		if all, err = rows(); err == nil {
			ref, err = tables.Put(ctx, h.Store, dir, name, all)
		}
	}
	if err != nil {
		return activities.CallToolsResult{}, err
	}
	return activities.CallToolsResult{Table: ref, Telemetry: activities.Telemetry{Seconds: time.Since(start).Seconds()}}, nil
}

// made are the calls of a turn.
type made struct {
	task    *run.Task
	replies []called // those with calls or a question, in the order of their rows
	// before are the questions of the turns before, by the row.
	before map[int32][]envs.ToolQuestion
	// dir is the folder of the rollout, turn the name of what is stored about a call of the turn.
	dir, turn string
}

// outside reports whether anything is asked outside of this program.
func (m made) outside() bool {
	return m.task.Grades() || m.task.Protocol.Tools != nil && m.task.Protocol.Tools.AnyOutside()
}

// called are the calls of one reply, and what its action asks.
type called struct {
	Row    int32        `json:"row"`
	Group  int32        `json:"group"`
	Member int32        `json:"member"`
	Calls  []calls.Call `json:"calls"`
	// Action is what the environment asks Grade about; Grade is nil if it asks nothing.
	Action string             `json:"action,omitempty"`
	Grade  *envs.ToolQuestion `json:"grade,omitempty"`
}

// calling reads the calls of a turn's samples.
func (h *Host) calling(ctx context.Context, in activities.CallToolsInput) (made, error) {
	m := made{dir: run.Dir(in.Run, in.Branch, in.Rollout), turn: run.TurnName(in.Rollout, in.Turn, "call")}
	rc, err := h.Contexts.Read(ctx, h.Store, in.Run)
	if err != nil {
		return m, err
	}
	if m.task, err = rc.Task(in.Rollout); err != nil {
		return m, err
	}
	if m.task.Protocol.Tools == nil && !m.task.Grades() {
		return m, fmt.Errorf("the spec has no tools, and its environment asks nothing: %w", store.ErrInvalid)
	}
	generated, err := tables.Get[episode.GenerateRow](ctx, h.Store, in.Generate)
	if err != nil {
		return m, err
	}
	var history []episode.Turn
	if m.task.Grades() {
		wave, err := recorded.Wave(ctx, h.Store, in.Rollout.Wave, in.Turn, in.Turns)
		if err != nil {
			return m, err
		}
		history = wave.Turns
	}
	for _, g := range generated {
		if !g.Alive {
			continue
		}
		env := m.task.Env(int(g.Group))
		reply, _ := m.task.Protocol.ReadReply(m.task.Tokenizer, env, g.SampledIDs)
		c := called{Row: g.Row, Group: g.Group, Member: g.Member, Calls: reply.Calls}
		if _, grades := env.(envs.Grading); grades && len(reply.Actions) > 0 {
			state, _, err := rebuilt(rc, m.task, in.Branch, in.Rollout, g, history)
			if err != nil {
				return m, fmt.Errorf("row %d: %w", g.Row, err)
			}
			if action, q, ok := m.task.Protocol.Question(state, reply); ok {
				c.Action, c.Grade = action, &q
			}
		}
		if len(c.Calls) > 0 || c.Grade != nil {
			m.replies = append(m.replies, c)
		}
	}
	if m.task.Protocol.Tools != nil && m.task.Protocol.Tools.AnyOutside() {
		m.before, err = h.questionsBefore(ctx, m.task.Protocol.Tools, in.Turns)
	}
	return m, err
}

// questionsBefore are the questions to outside tools in the turns before, by the row.
func (h *Host) questionsBefore(ctx context.Context, tools *envs.Toolset, turns []store.TurnRefs) (map[int32][]envs.ToolQuestion, error) {
	out := map[int32][]envs.ToolQuestion{}
	for i, t := range turns {
		rows, err := run.SideTable[run.CallRow](ctx, h.Store, t.Calls, fmt.Sprintf("calls of tools in turn %d", i+1))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if r.Call == run.GradeCall {
				continue
			}
			c := calls.Call{Name: r.Tool, Arguments: json.RawMessage(r.Arguments), Wrong: r.Wrong}
			if q, outside := tools.Outside(c); outside {
				out[r.Row] = append(out[r.Row], q)
			}
		}
	}
	return out, nil
}

// asking asks an outside tool the question of a call; what is stored about the call has the name.
type asking func(ctx context.Context, name string, q ToolAsked) (envs.ToolAnswer, error)

// answer answers the calls, those of outside tools by ask: an episode's one after the other.
func (m made) answer(ctx context.Context, ask asking) ([]run.CallRow, error) {
	answered := make([][]run.CallRow, len(m.replies))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(toolsAtOnce)
	for i, r := range m.replies {
		group.Go(func() error {
			before := slices.Clone(m.before[r.Row])
			for k, c := range r.Calls {
				name := fmt.Sprintf("%s/%s-%d-%d", m.dir, m.turn, r.Row, k)
				q := ToolAsked{Episode: fmt.Sprintf("%s/%d", m.dir, r.Row), Before: before}
				a, err := answerCall(within, m.task, name, c, &q, ask)
				if err != nil {
					return fmt.Errorf("row %d: call %d: %w", r.Row, k, err)
				}
				if q.Kind != "" {
					before = append(before, q.ToolQuestion)
				}
				answered[i] = append(answered[i], run.CallRow{
					Row: r.Row, Group: r.Group, Member: r.Member, Call: int32(k), Tool: c.Name, Arguments: string(c.Arguments), Wrong: c.Wrong,
					Answer: a.Text, Failed: a.Failed, Killed: a.Killed,
				})
			}
			if r.Grade == nil {
				return nil
			}
			row, err := m.grade(within, r, before, ask)
			answered[i] = append(answered[i], row)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(append([][]run.CallRow{{}}, answered...)...), nil
}

// grade asks what the environment wants to know about a reply's action. before are the episode's questions so far.
func (m made) grade(ctx context.Context, r called, before []envs.ToolQuestion, ask asking) (run.CallRow, error) {
	name := fmt.Sprintf("%s/%s-%d-grade", m.dir, m.turn, r.Row)
	a, err := ask(ctx, name, ToolAsked{ToolQuestion: *r.Grade, Episode: fmt.Sprintf("%s/%d", m.dir, r.Row), Before: before})
	if err != nil {
		return run.CallRow{}, fmt.Errorf("row %d: about the action: %w", r.Row, err)
	}
	return run.CallRow{
		Row: r.Row, Group: r.Group, Member: r.Member, Call: run.GradeCall, Tool: m.task.Env(int(r.Group)).Name(), Arguments: r.Action,
		Answer: a.Text, Failed: a.Failed, Killed: a.Killed,
	}, nil
}

// answerCall answers a call. q gets the question if it is one to an outside tool.
func answerCall(ctx context.Context, task *run.Task, name string, c calls.Call, q *ToolAsked, ask asking) (envs.ToolAnswer, error) {
	tools := task.Protocol.Tools
	question, outside := tools.Outside(c)
	if !outside {
		return tools.Answer(task.Tokenizer, c)
	}
	q.ToolQuestion = question
	answer, err := ask(ctx, name, *q)
	if err != nil {
		return answer, fmt.Errorf("tool %s: %w", c.Name, err)
	}
	answer.Text, err = tools.Cut(task.Tokenizer, answer.Text)
	return answer, err
}

// askOnce asks an outside tool unless its answer is stored.
func (h *Host) askOnce(ctx context.Context, name string, q ToolAsked) (envs.ToolAnswer, error) {
	digest, err := run.DigestOf(q.ToolQuestion)
	if err != nil {
		return envs.ToolAnswer{}, err
	}
	key := name + "." + store.ShortDigest(digest) + ".json"
	return firstAnswer(ctx, h.Store, key, func() (envs.ToolAnswer, error) { return h.askTool(ctx, q) })
}

// askTool asks an outside tool.
func (h *Host) askTool(ctx context.Context, q ToolAsked) (envs.ToolAnswer, error) {
	asker := h.Tools[q.Kind]
	if asker == nil {
		return envs.ToolAnswer{}, fmt.Errorf("tools of the kind %s: %w", q.Kind, activities.ErrNotServed)
	}
	var last error
	for range askTries {
		answer, err := asker.Ask(ctx, q)
		answer.Text = strings.ToValidUTF8(answer.Text, "\uFFFD") // what is stored and encoded
		if err == nil || ctx.Err() != nil || errors.Is(err, activities.ErrNotServed) {
			return answer, err
		}
		last = err
	}
	return envs.ToolAnswer{}, fmt.Errorf("asked %d times: %w: %w", askTries, last, activities.ErrEnvironment)
}

// callMetrics adds the figures of the calls of a rollout's turns: calls an episode, all and of each tool; of the calls,
// the share that no tool could answer; of those that one answered, the shares that failed, that were killed and whose
// answers were cut.
func (h *Host) callMetrics(ctx context.Context, m activities.Metrics, task *run.Task, turns []store.TurnRefs, episodes int) error {
	if task.Protocol.Tools == nil || episodes == 0 {
		return nil
	}
	byTool := map[string]int{}
	all, wrong, failed, killed, cut := 0, 0, 0, 0, 0
	for i, t := range turns {
		if t.Calls == nil {
			continue
		}
		rows, err := tables.Get[run.CallRow](ctx, h.Store, *t.Calls)
		if err != nil {
			return fmt.Errorf("calls of tools in turn %d: %w", i+1, err)
		}
		for _, r := range rows {
			if r.Call == run.GradeCall { // the environment counts these: envs.Counting
				continue
			}
			if all++; r.Wrong != "" {
				wrong++
				continue
			}
			byTool[r.Tool]++
			if r.Failed {
				failed++
			}
			if r.Killed {
				killed++
			}
			if envs.IsCut(r.Answer) {
				cut++
			}
		}
	}
	share := func(name string, n, of int) {
		if of > 0 {
			m[name] = canon.Float(float64(n) / float64(of))
		}
	}
	share("tools/calls", all, episodes)
	share("tools/invalid", wrong, all)
	share("tools/failed", failed, all-wrong)
	if killed > 0 {
		share("tools/killed", killed, all-wrong)
	}
	if cut > 0 {
		share("tools/cut", cut, all-wrong)
	}
	for name, n := range byTool {
		share("tools/"+name+"/calls", n, episodes)
	}
	return nil
}
