package host

import (
	"context"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/infra/strict"
)

// Drift is a recorded answer of a foreign environment that it gives otherwise now.
type Drift struct {
	// Suite is empty for the rollout, and Round counts its rounds from 0.
	Suite string `json:"suite,omitempty"`
	Round int    `json:"round,omitempty"`
	// Turn counts from 1; 0 is the beginning of the episode.
	Turn   int `json:"turn"`
	Group  int `json:"group"`
	Member int `json:"member"`
	// What is the first field that differs, with both values.
	What     string `json:"what"`
	Recorded string `json:"recorded"`
	Now      string `json:"now"`
}

// String is the drift as a line.
func (d Drift) String() string {
	place := ""
	if d.Suite != "" {
		place = "suite " + d.Suite + ", "
	}
	if d.Round > 0 {
		place += fmt.Sprintf("round %d, ", d.Round+1)
	}
	return fmt.Sprintf("%sturn %d, group %d, member %d: %s: recorded %s, now %s", place, d.Turn, d.Group, d.Member, d.What, d.Recorded, d.Now)
}

// Drifts asks the foreign environments, the tools and language models that judge again about everything that they
// answered for an iteration, and gives the first turn of each episode in which they answer otherwise, and how many answers
// were compared. It writes nothing.
func (h *Host) Drifts(ctx context.Context, r activities.Run, m *store.Manifest) (drifts []Drift, compared int, err error) {
	rc, err := h.Contexts.Read(ctx, h.Store, r)
	if err != nil {
		return nil, 0, err
	}
	one := func(what activities.Rollout, turns []store.TurnRefs) error {
		found, n, err := h.drifts(ctx, rc, activities.AskInput{Run: r, Branch: m.Branch, Rollout: what}, turns)
		drifts, compared = append(drifts, found...), compared+n
		if err != nil {
			return err
		}
		found, n, err = h.toolDrifts(ctx, activities.CallToolsInput{Run: r, Branch: m.Branch, Rollout: what}, turns)
		drifts, compared = append(drifts, found...), compared+n
		if err != nil {
			return err
		}
		found, n, err = h.judgeDrifts(ctx, rc, activities.JudgeInput{Run: r, Branch: m.Branch, Rollout: what, Turns: turns})
		drifts, compared = append(drifts, found...), compared+n
		return err
	}
	for from := 0; from < len(m.Turns); {
		round := m.Turns[from].Round
		to := from
		for to < len(m.Turns) && m.Turns[to].Round == round {
			to++
		}
		if err := one(activities.Rollout{Iteration: m.Iteration, Round: round}, m.Turns[from:to]); err != nil {
			return nil, 0, err
		}
		from = to
	}
	for _, e := range m.Evaluations {
		if err := one(activities.Rollout{Iteration: e.Version, Evaluation: &activities.EvaluationOf{Suite: e.Suite}}, e.Turns); err != nil {
			return nil, 0, err
		}
	}
	return drifts, compared, nil
}

// drifts does so for the turns of one round.
func (h *Host) drifts(ctx context.Context, rc *run.Context, in activities.AskInput,
	turns []store.TurnRefs) (drifts []Drift, compared int, err error) {
	if len(turns) == 0 || turns[0].Opening == nil {
		return nil, 0, nil
	}
	task, err := rc.Task(in.Rollout)
	if err != nil {
		return nil, 0, err
	}
	drifted := map[int]bool{}
	for turn := range len(turns) + 1 {
		recorded := turns[0].Opening
		if in.Turn = turn; turn > 0 {
			in.Turns, in.Opening, in.Generate, recorded = turns[:turn-1], turns[0].Opening, &turns[turn-1].Generate, turns[turn-1].Answers
		}
		q, err := h.questions(ctx, rc, task, in)
		if err != nil {
			return nil, 0, err
		}
		if q.compared, err = tables.Get[run.AnswerRow](ctx, h.Store, *recorded); err != nil {
			return nil, 0, err
		}
		for i, r := range q.compared {
			if drifted[i] || !r.Asked {
				q.of[i] = nil // what follows a drift differs too
				continue
			}
			if q.redrawn[i], err = r.Redraws(); err != nil {
				return nil, 0, fmt.Errorf("row %d: %w", i, err)
			}
			q.draw(i)
			compared++
		}
		if err := h.ask(ctx, rc, task, q); err != nil {
			return nil, 0, err
		}
		for i, r := range q.compared {
			if q.of[i] == nil {
				continue
			}
			if d, differs := drift(r, q.rows[i]); differs {
				d.Round, d.Turn = in.Rollout.Round, turn
				if e := in.Rollout.Evaluation; e != nil {
					d.Suite = e.Suite
				}
				drifts, drifted[i] = append(drifts, d), true
			}
		}
	}
	slices.SortFunc(drifts, func(a, b Drift) int { return a.Turn - b.Turn })
	return drifts, compared, nil
}

// drift compares a recorded answer with the one of now.
func drift(recorded, now run.AnswerRow) (Drift, bool) {
	d := Drift{Group: int(recorded.Group), Member: int(recorded.Member)}
	for _, f := range []struct {
		what     string
		was, now any
	}{
		{"broken", recorded.Broken != "", now.Broken != ""}, // messages may have addresses and times
		{"rewards", recorded.Rewards, now.Rewards},
		{"actions", recorded.Actions, now.Actions},
		{"observations", recorded.Observations, now.Observations},
		{"observation", recorded.Observation, now.Observation},
		{"texts", recorded.Texts, now.Texts},
		{"choices", recorded.Choices, now.Choices},
		{"effective", recorded.Effective, now.Effective},
		{"invalid", recorded.Invalid, now.Invalid},
		{"done", recorded.Done, now.Done},
		{"success", recorded.Success, now.Success},
		{"chain", recorded.Chain, now.Chain},
	} {
		was, is := shown(f.was), shown(f.now)
		if was == is {
			continue
		}
		d.What, d.Recorded, d.Now = f.what, was, is
		if f.what == "broken" && now.Broken != "" {
			d.Now += ": " + now.Broken
		}
		return d, true
	}
	return d, false
}

// shown is a field's value as canonical JSON; an empty list is none.
func shown(v any) string {
	b, err := canon.Marshal(v)
	if err != nil || string(b) == "null" {
		return "[]"
	}
	return string(b)
}

// toolDrifts asks the tools again about the calls of one round's turns.
func (h *Host) toolDrifts(ctx context.Context, in activities.CallToolsInput,
	turns []store.TurnRefs) (drifts []Drift, compared int, err error) {
	drifted := map[int32]bool{}
	for i, t := range turns {
		if t.Calls == nil {
			continue
		}
		answers, err := tables.Get[run.CallRow](ctx, h.Store, *t.Calls)
		if err != nil {
			return nil, 0, err
		}
		in.Turns, in.Generate = turns[:i], t.Generate
		if in.Rollout.Wave, in.Turn, err = recorded.Next(ctx, h.Store, in.Turns); err != nil {
			return nil, 0, err
		}
		m, err := h.calling(ctx, in)
		if err != nil {
			return nil, 0, err
		}
		now, err := m.answer(ctx, func(ctx context.Context, _ string, q ToolAsked) (envs.ToolAnswer, error) {
			q.Episode += "/again" // a session of its own
			return h.askTool(ctx, q)
		})
		if err != nil {
			return nil, 0, err
		}
		if len(now) != len(answers) {
			return nil, 0, fmt.Errorf("turn %d has %d calls, and %d are recorded: %w", in.Turn, len(now), len(answers), store.ErrInvalid)
		}
		compared += len(now)
		for k, was := range answers {
			is := now[k]
			if was == is || drifted[was.Row] {
				continue
			}
			d := Drift{Round: in.Rollout.Round, Turn: in.Turn, Group: int(was.Group), Member: int(was.Member),
				What: whatDrifts(was), Recorded: strict.Quote(was.Answer), Now: strict.Quote(is.Answer)}
			if e := in.Rollout.Evaluation; e != nil {
				d.Suite = e.Suite
			}
			drifts, drifted[was.Row] = append(drifts, d), true
		}
	}
	return drifts, compared, nil
}

// whatDrifts names an answer.
func whatDrifts(was run.CallRow) string {
	if was.Call == run.GradeCall {
		return "answer about the action in " + was.Tool
	}
	return fmt.Sprintf("answer %d of tool %s", was.Call+1, was.Tool)
}
