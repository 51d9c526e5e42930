package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Ask asks the foreign environments of a rollout about its episodes and stores what they answer.
// The table's name has the digest of the questions. The first stored answers are final: the same
// questions return them, and no environment is asked.
func (h *Host) Ask(ctx context.Context, in activities.AskInput) (_ activities.AskResult, err error) {
	defer run.Edge(ctx, &err, "ask the environment about turn %d of run %s", in.Turn, in.Run.ID)
	defer run.Heartbeat(ctx)()
	start := time.Now()
	rc, err := h.Contexts.Read(ctx, h.Store, in.Run)
	if err != nil {
		return activities.AskResult{}, err
	}
	task, err := rc.Task(in.Rollout)
	if err != nil {
		return activities.AskResult{}, err
	}
	asking, err := h.questions(ctx, rc, task, in)
	if err != nil {
		return activities.AskResult{}, err
	}
	question, err := asking.digest()
	if err != nil {
		return activities.AskResult{}, err
	}
	ref, err := tables.First(ctx, h.Store, run.Dir(in.Run, in.Branch, in.Rollout), run.TurnName(in.Rollout, in.Turn, "answers"), question,
		func() ([]run.AnswerRow, error) {
			if err := h.ask(ctx, rc, task, asking); err != nil {
				return nil, err
			}
			// What is stored counts for good: answers of an environment that must be fixed are not.
			return asking.rows, asking.check(rc, task)
		})
	if err != nil {
		return activities.AskResult{}, err
	}
	return activities.AskResult{Table: ref, Telemetry: activities.Telemetry{Seconds: time.Since(start).Seconds()}}, nil
}

// questions are what foreign environments are asked about a rollout's rows, and the rows of the
// answers.
type questions struct {
	rows []run.AnswerRow
	// of are the environments, an environment a row; nil for a row about which none is asked.
	of []*foreign.Environment
	// asked are the questions, a question a row, with the address of the episode's first chance and
	// how often it was drawn again.
	asked   []foreign.Asked
	chances []draw.Address
	redrawn []int
	// redraws is how often an episode that breaks is drawn again.
	redraws int
	// compared are the recorded answers, if the new ones are only compared with them; else nil.
	compared []run.AnswerRow
	turn     int
	// described is the digest of a resolved spec that took a description after the run's start; "" for the first one.
	// What was answered before is asked again, since it was measured by another description.
	described string
	// before are the answers of the turns before.
	before run.Answers
	// place names the turn to the environment's transport: RUN/b0/iterations/000012/turn-3.ask.
	place string
}

// digest names the questions.
func (q questions) digest() (string, error) {
	type one struct {
		Spec     string          `json:"spec,omitempty"`
		Row      int32           `json:"row"`
		Server   string          `json:"server"`
		Options  json.RawMessage `json:"options"`
		Version  string          `json:"version"`
		Instance string          `json:"instance"`
		Chance   string          `json:"chance"`
		Played   []string        `json:"played"`
		Chain    string          `json:"chain"`
		Next     []string        `json:"next"`
	}
	var all []one
	for i, env := range q.of {
		if env == nil {
			continue
		}
		d, _ := env.Description()
		o := one{Spec: q.described, Row: q.rows[i].Row, Version: d.Version, Instance: q.rows[i].Instance, Chance: q.rows[i].Chance}
		o.Server, o.Options = env.Server()
		o.Played, o.Chain, o.Next = q.asked[i].Played, q.asked[i].Chain, q.asked[i].Next
		all = append(all, o)
	}
	return run.DigestOf(all)
}

// questions puts the questions of a turn together, from the recorded turns alone.
func (h *Host) questions(ctx context.Context, rc *run.Context, task *run.Task, in activities.AskInput) (questions, error) {
	n := task.Rows()
	q := questions{rows: make([]run.AnswerRow, n), of: make([]*foreign.Environment, n), asked: make([]foreign.Asked, n),
		chances: make([]draw.Address, n), redrawn: make([]int, n), turn: in.Turn,
		place: strings.TrimPrefix(run.Dir(in.Run, in.Branch, in.Rollout), store.RunsDir+"/") + "/" + run.TurnName(in.Rollout, in.Turn, "ask")}
	if task.Suite == nil && rc.Train.Environment.OnBroken == spec.Redraw {
		q.redraws = maxRedraws
	}
	if key := in.Run.Spec.Key; key != store.SpecKey(in.Run.ID) && strings.HasPrefix(key, store.RunDir(in.Run.ID)+"/") {
		q.described = in.Run.Spec.Digest
	}
	var generated []episode.GenerateRow
	var answers run.Answers
	if in.Turn > 0 {
		if in.Opening == nil || in.Generate == nil {
			return q, fmt.Errorf("ask about turn %d without its beginning or its samples: %w", in.Turn, store.ErrInvalid)
		}
		var err error
		if generated, err = tables.Get[episode.GenerateRow](ctx, h.Store, *in.Generate); err != nil {
			return q, err
		}
		var before []*store.Ref
		for _, t := range in.Turns {
			before = append(before, t.Answers)
		}
		if answers, err = run.ReadAnswers(ctx, h.Store, in.Opening, before); err != nil {
			return q, err
		}
		q.before = answers
		if len(generated) != len(q.rows) || len(answers.Opening) != len(q.rows) {
			return q, fmt.Errorf("%d samples and answers about %d episodes, want %d: %w", len(generated), len(answers.Opening), len(q.rows), store.ErrInvalid)
		}
	}
	for i := range q.rows {
		group, member := i/task.Members, i%task.Members
		r := &q.rows[i]
		r.Row, r.Group, r.Member = int32(i), int32(group), int32(member)
		env, ok := task.Env(group).(*foreign.Environment)
		if !ok || in.Turn > 0 && !generated[i].Alive {
			continue
		}
		a := rc.Address(task, in.Branch, in.Rollout, group, member)
		asked := foreign.Asked{Instance: foreign.Number(a.Instance)}
		if in.Turn > 0 {
			for _, turn := range answers.Turns {
				asked.Played = append(asked.Played, turn[i].Actions...)
			}
			last, _ := answers.Last(i)
			if last == nil || last.Broken != "" {
				return q, fmt.Errorf("row %d goes on after no answer: %w", i, store.ErrInvalid)
			}
			var err error
			if q.redrawn[i], err = last.Redraws(); err != nil {
				return q, fmt.Errorf("row %d: %w", i, err)
			}
			reply, _ := task.Protocol.ReadReply(rc.Tokenizer, env, generated[i].SampledIDs)
			actions := task.Protocol.WithoutPlaceholders(reply.Actions)
			for _, action := range actions[:min(len(actions), env.MaxActions()-len(asked.Played))] {
				asked.Next = append(asked.Next, strings.ToValidUTF8(action, "\uFFFD"))
			}
			asked.Chain = last.Chain
			if len(asked.Next) == 0 { // nothing to ask about: the state stays
				r.Observation, r.Choices, r.Chain = last.Observation, last.Choices, last.Chain
			}
		}
		r.Asked, r.Next = true, asked.Next
		r.Instance = strconv.FormatUint(asked.Instance, 10)
		q.of[i], q.asked[i], q.chances[i] = env, asked, a.Chance
		q.draw(i)
	}
	return q, nil
}

// maxRedraws is how often an episode that breaks is drawn again, where a spec asks for it.
const maxRedraws = 2

// draw gives a row the chance of the episode that it is about now.
func (q questions) draw(i int) {
	q.asked[i].Chance = foreign.Number(run.Redrawn(q.chances[i], q.redrawn[i]))
	q.rows[i].Chance = run.ChanceName(q.chances[i], q.redrawn[i])
}

// ask asks the environments and fills in the rows.
func (h *Host) ask(ctx context.Context, rc *run.Context, task *run.Task, q questions) error {
	var envs []*foreign.Environment // in the order of the rows
	byEnv := map[*foreign.Environment][]int{}
	for i, env := range q.of {
		if env == nil || q.turn > 0 && len(q.asked[i].Next) == 0 {
			continue
		}
		if byEnv[env] == nil {
			envs = append(envs, env)
		}
		byEnv[env] = append(byEnv[env], i)
	}
	group, within := errgroup.WithContext(ctx)
	for _, env := range envs {
		name, options := env.Server()
		way, err := h.way(name)
		if err != nil {
			return err
		}
		timeout := rc.Train.Environment.Timeout()
		if task.Suite != nil {
			timeout = task.Suite.Environment.Timeout()
		}
		d, _ := env.Description()
		server := foreign.Described(name, options, d, way(q.place, timeout))
		wide, err := d.WidestTokens(rc.Tokenizer)
		if err != nil {
			return err
		}
		for at := range slices.Chunk(byEnv[env], foreign.MaxEpisodes) {
			group.Go(func() error { return q.chunk(within, rc, server, timeout, at, wide) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return q.sameBeginnings()
}

// sameBeginnings compares what the members of a group show at their beginning: a group shares its
// prompt.
func (q questions) sameBeginnings() error {
	first := map[int32]run.AnswerRow{}
	for _, r := range q.rows {
		if q.turn > 0 || q.compared != nil || !r.Asked || r.Broken != "" {
			continue
		}
		f, ok := first[r.Group]
		if !ok {
			first[r.Group] = r
		} else if f.Observation != r.Observation {
			return fmt.Errorf("group %d: member %d begins with %s, member %d with %s; the beginning of an episode must come from the instance alone: %w",
				r.Group, f.Member, strict.Quote(f.Observation), r.Member, strict.Quote(r.Observation), activities.ErrEnvironment)
		}
	}
	return nil
}

// check is an error if more episodes broke than the spec allows, those of the turns before included.
func (q questions) check(rc *run.Context, task *run.Task) error {
	answers := q.before
	if q.turn == 0 {
		answers.Opening = q.rows
	} else {
		answers.Turns = append(answers.Turns[:len(answers.Turns):len(answers.Turns)], q.rows)
	}
	share, redrawn := rc.Train.Environment.BrokenShare, answers.Redrawn()
	if task.Suite != nil {
		share, redrawn = task.Suite.Environment.BrokenShare, 0
	}
	return run.CheckBroken(answers.Broken(), redrawn, len(q.rows), task.Members, share)
}

// way is the way to an environment or a judge. The error of a worker that lacks it is of kind ErrNotServed.
func (h *Host) way(name string) (foreign.Way, error) {
	if way, ok := h.Environments[name]; ok {
		return way, nil
	}
	if h.More == nil {
		return nil, notServed(name)
	}
	way, ok, err := h.More(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("environment %q: %w: %w", name, activities.ErrNotServed, err)
	case !ok:
		return nil, fmt.Errorf("environment %q: %w: add it with reprise env add %[1]s=COMMAND, and this is tried again", name, activities.ErrNotServed)
	}
	return way, nil
}

// notServed is the error of a worker that lacks an environment.
func notServed(name string) error {
	return fmt.Errorf("environment %q: %w: start it with --env-process %[1]s=COMMAND, or --env-temporal %[1]s if its workers serve it over Temporal, or --env-openenv %[1]s=URL", name, activities.ErrNotServed)
}

// askTries is how often an environment is asked that did not answer.
const askTries = 3

// chunk asks one environment about some of the rows, and again about those that are drawn again.
// wide are the tokens of its widest observation.
func (q questions) chunk(ctx context.Context, rc *run.Context, server *foreign.Server, timeout time.Duration, at []int, wide int) error {
	for again := false; len(at) > 0; again = true {
		asked := make([]foreign.Asked, len(at))
		for k, i := range at {
			asked[k] = q.asked[i]
		}
		answers, err := play(ctx, server, timeout, asked)
		if err != nil {
			return err
		}
		var left []int
		for k, i := range at {
			if err := q.take(rc, i, answers[k], wide, again); err != nil {
				return err
			}
			if q.rows[i].Broken != "" && q.redrawn[i] < q.redraws {
				q.redrawn[i]++
				q.draw(i)
				left = append(left, i)
			}
		}
		at = left
	}
	return nil
}

// take takes an answer into a row. An episode that is drawn again in its middle may have gone
// otherwise under the new chance: then it is as broken as before.
func (q questions) take(rc *run.Context, i int, a foreign.Answer, wide int, again bool) error {
	r := &q.rows[i]
	switch {
	case again && errors.Is(a.Err, foreign.ErrDrift):
		return nil
	case q.compared != nil && errors.Is(a.Err, foreign.ErrDrift):
		r.Broken = "the actions before lead elsewhere now"
		return nil
	case a.Err != nil && !errors.Is(a.Err, foreign.ErrBroken):
		return fmt.Errorf("group %d, member %d, turn %d, after the actions %q: %w: %w", r.Group, r.Member, q.turn, q.asked[i].Played, a.Err, activities.ErrEnvironment)
	}
	r.Record(a)
	if a.Err != nil {
		return nil
	}
	if q.turn == 0 && a.Done {
		r.Broken = "the episode had ended before its first turn"
	}
	n, err := foreign.Tokens(rc.Tokenizer, a.Observation)
	if err != nil {
		return err
	}
	if n > wide {
		r.Broken = fmt.Sprintf("the observation has %d tokens, the widest of its description %d: add it to widest", n, wide)
	}
	return nil
}

// busyPause is the wait before a busy environment is asked again.
const busyPause = 50 * time.Millisecond

// play asks a server, and asks again about episodes for which it was busy. One that did not answer
// gets as many tries as askTries. Errors are of kind ErrEnvironment unless ctx has ended.
func play(ctx context.Context, server *foreign.Server, timeout time.Duration, asked []foreign.Asked) ([]foreign.Answer, error) {
	var last error
	for range askTries {
		answers, err := playOnce(ctx, server, timeout, asked)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err == nil:
			return answers, nil
		case !errors.Is(err, foreign.ErrTimeout) && !errors.Is(err, foreign.ErrExited) && !errors.Is(err, foreign.ErrBusy):
			return nil, fmt.Errorf("%w: %w", err, activities.ErrEnvironment)
		}
		last = err
	}
	return nil, fmt.Errorf("asked %d times: %w: %w", askTries, last, activities.ErrEnvironment)
}

// playOnce asks until no episode is busy any more, or the time is up.
func playOnce(ctx context.Context, server *foreign.Server, timeout time.Duration, asked []foreign.Asked) ([]foreign.Answer, error) {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	answers, err := server.Play(ctx, asked)
	for err == nil {
		var again []int
		var busy []foreign.Asked
		for i, a := range answers {
			if errors.Is(a.Err, foreign.ErrBusy) {
				again, busy = append(again, i), append(busy, asked[i])
			}
		}
		if len(again) == 0 {
			return answers, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w for %v about %d episodes", foreign.ErrBusy, timeout, len(again))
		case <-time.After(busyPause):
		}
		var more []foreign.Answer
		if more, err = server.Play(ctx, busy); err == nil {
			for k, i := range again {
				answers[i] = more[k]
			}
		}
	}
	return nil, err
}
