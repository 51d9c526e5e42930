package train

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// ErrTry marks a spec whose policy cannot be tried by itself.
var ErrTry = errors.New("the policy of this spec cannot be tried")

// Tried is what a policy says before it is trained.
type Tried struct {
	// WarmStart is the supervised updates that the policy had.
	WarmStart int `json:"warm_start"`
	// Trajectories are Groups groups, each of one initial state.
	Groups       int `json:"groups"`
	Trajectories int `json:"trajectories"`
	// Valid, Success and Truncated are shares of the trajectories, as valid/mean, success/mean and
	// truncated/mean.
	Valid     float64 `json:"valid"`
	Success   float64 `json:"success"`
	Truncated float64 `json:"truncated"`
	// Tokens is the mean of the tokens sampled in a turn, Turns that of the turns in a trajectory.
	Tokens float64 `json:"tokens"`
	Turns  float64 `json:"turns"`
	// Replies are some replies of first turns.
	Replies []TriedReply `json:"replies"`
}

// TriedReply is a reply of a first turn.
type TriedReply struct {
	// Group and Member say which trajectory's first turn it is.
	Group  int `json:"group"`
	Member int `json:"member"`
	// Prompt is the text that the policy was given, shortened in the middle. Reply follows it.
	Prompt string `json:"prompt"`
	Reply  string `json:"reply"`
	// Actions are those that were executed.
	Actions []string `json:"actions"`
	Valid   bool     `json:"valid"`
	// Truncated says that the length limit cut it.
	Truncated bool `json:"truncated"`
	Tokens    int  `json:"tokens"`
	// Turns are all turns of the trajectory, in ids.
	Turns []TriedTurn `json:"turns"`
}

// TriedTurn is a turn in ids.
type TriedTurn struct {
	// Context is all that the policy was given: the prompt, and in later turns what came before.
	Context []int32 `json:"context"`
	// Sampled is its reply, with the id that ended it.
	Sampled []int32 `json:"sampled"`
}

// TryOptions say how a policy is tried.
type TryOptions struct {
	// Groups is the most groups that are sampled.
	Groups int
	// Replies is the most replies that are shown.
	Replies int
	// Greedy selects the likeliest token in place of sampling at the spec's temperature.
	Greedy bool
}

const (
	// promptRunes is how much of a prompt it shows, in characters.
	promptRunes = 400
	// warmStartChunks is how many chunks a warm start is made in, at most.
	warmStartChunks = 5
)

// Trial is a spec whose policy is tried: some groups of its first rollout are sampled, and nothing
// is learned from them.
type Trial struct {
	runner   *Runner
	resolved activities.ResolveResult
	spec     spec.Train
	options  TryOptions
	say      func(string)
}

// Try resolves a spec for trials of its policy. text is the spec's JSON, and say receives progress.
// The error is an ErrTry for a run that continues another one, and for
// environments outside this program.
func (r *Runner) Try(ctx context.Context, text []byte, o TryOptions, say func(string)) (*Trial, error) {
	t, err := spec.Decode(text, run.Known())
	if err != nil {
		return nil, err
	}
	switch {
	case t.From != nil:
		return nil, fmt.Errorf("%w: it begins with iteration %d of run %s, whose store is not read", ErrTry, t.From.Iteration, t.From.Run)
	case t.Environment.Foreign():
		return nil, fmt.Errorf("%w: its environment is outside this program; try it in an environment of `reprise env list`", ErrTry)
	}
	say("reading the model")
	resolved, err := r.Host.Resolve(ctx, activities.ResolveInput{Run: "try", Spec: text})
	if err != nil {
		return nil, err
	}
	if t, err = run.ReadSpec(ctx, r.Host.Store, resolved.Spec); err != nil {
		return nil, err
	}
	return &Trial{runner: r, resolved: resolved, spec: tried(t, o.Groups), options: o, say: say}, nil
}

// WarmStart is how many supervised updates the spec asks for.
func (t *Trial) WarmStart() int { return t.spec.Policy.WarmStart.Steps }

// tried is a resolved spec of a trial: a plain rollout of at most so many groups in passes, whose rows share
// the prefill of their group's prompt.
func tried(t spec.Train, groups int) spec.Train {
	r := &t.Rollout
	r.Groups = min(r.Groups, groups)
	r.Search, r.Own = "", nil
	r.Workers, r.Lag, r.KeepValues, r.BlockRows = 0, 0, false, 0
	r.Prefill = spec.PrefillGroups
	t.Limits.GenerateRows = 0
	t.Rewards, t.Evaluation.Suites, t.Diagnostics.Every = nil, nil, 0
	return t
}

// Sample samples the groups by version 0, as it is after so many updates of the warm start: all that the
// spec asks for, or none.
func (t *Trial) Sample(ctx context.Context, warmStart int) (Tried, error) {
	s := t.spec
	s.Policy.WarmStart.Steps = warmStart
	b, err := s.JSON()
	if err != nil {
		return Tried{}, err
	}
	of := activities.Run{ID: fmt.Sprintf("try-%d", warmStart)}
	if of.Spec, err = store.Commit(ctx, t.runner.Host.Store, store.SpecKey(of.ID), b); err != nil {
		return Tried{}, err
	}
	if of.Base, err = t.version0(ctx, of, s); err != nil {
		return Tried{}, err
	}
	t.say("loading the policy")
	version := activities.Version{Run: of}
	restored, err := t.runner.Device.Restore(ctx, activities.RestoreInput{Version: version, Evaluate: true})
	if err != nil {
		return Tried{}, err
	}
	version.State = restored.State
	settings := spec.SettingsOf(s)
	if t.options.Greedy {
		settings.Rollout.Temperature = 0
	}
	var turns []store.TurnRefs
	for alive := 1; alive > 0; {
		turn := len(turns) + 1
		t.say(fmt.Sprintf("sampling %d trajectories, turn %d of at most %d (programs are compiled first)", s.Rollout.Trajectories(), turn, s.Rollout.Turns))
		in := activities.GenerateInput{Policy: version, Settings: settings, Turn: turn, Turns: turns}
		generated, err := t.runner.Device.Generate(ctx, in)
		if err != nil {
			return Tried{}, err
		}
		stepped, err := t.runner.Host.Step(ctx, activities.StepInput{Run: of, Turn: turn, Turns: turns, Generate: generated.Table,
			TurnLimit: s.Rollout.TurnLimit})
		if err != nil {
			return Tried{}, err
		}
		turns, alive = append(turns, store.TurnRefs{Generate: generated.Table, Step: stepped.Table}), stepped.Alive
	}
	return t.measure(ctx, of, turns, warmStart)
}

// version0 makes the policy that is sampled, or finds it.
func (t *Trial) version0(ctx context.Context, of activities.Run, s spec.Train) (store.Ref, error) {
	steps := s.Policy.WarmStart.Steps
	if s.Policy.Starter == nil && steps == 0 {
		return *t.resolved.Base, nil
	}
	// Progress is told between chunks, each of which stores its state: few chunks cost little.
	chunk := max(1, (steps+warmStartChunks-1)/warmStartChunks)
	in := activities.WarmStartInput{Run: of.ID, Spec: of.Spec, Base: t.resolved.Base, Steps: chunk}
	for done := 0; ; {
		what := "drawing the starter"
		if steps > 0 {
			what = fmt.Sprintf("warm start: %d of %d steps are done", done, steps)
		}
		t.say(what)
		w, err := t.runner.Device.WarmStart(ctx, in)
		if err != nil {
			return store.Ref{}, err
		}
		if w.Base != nil {
			return *w.Base, nil
		}
		in.From, done = w.Snapshot, w.Steps
	}
}

// measure reads what the turns recorded.
func (t *Trial) measure(ctx context.Context, of activities.Run, refs []store.TurnRefs, warmStart int) (Tried, error) {
	rc, err := t.runner.Host.Contexts.Read(ctx, t.runner.Host.Store, of)
	if err != nil {
		return Tried{}, err
	}
	task, err := rc.Task(activities.Rollout{})
	if err != nil {
		return Tried{}, err
	}
	turns, err := recorded.Turns(ctx, t.runner.Host.Store, refs)
	if err != nil {
		return Tried{}, err
	}
	rows := episode.Trajectories(turns, task.Label)
	m := run.RolloutMetrics(task, rows)
	out := Tried{
		WarmStart: warmStart, Groups: task.Groups, Trajectories: len(rows),
		Valid: float64(m["valid/mean"]), Success: float64(m["success/mean"]), Truncated: float64(m["truncated/mean"]),
		Tokens: float64(m["response_length/mean"]) / float64(m["turns/mean"]), Turns: float64(m["turns/mean"]),
	}
	for _, i := range shown(t.options.Replies, task.Groups, task.Members) {
		row := rows[i]
		prompt, sampled := row.Turn(0)
		reply := TriedReply{
			Group: int(row.Group), Member: int(row.Member),
			Prompt: shorten(rc.Tokenizer.Decode(prompt)), Reply: rc.Tokenizer.Decode(sampled), Actions: append([]string{}, row.Executes(0)...),
			Valid: turns[0].Step[i].Valid, Truncated: turns[0].Generate[i].Truncated, Tokens: len(sampled),
		}
		for k := range row.PromptLengths {
			context, sampled := row.Turn(k)
			reply.Turns = append(reply.Turns, TriedTurn{Context: context, Sampled: sampled})
		}
		out.Replies = append(out.Replies, reply)
	}
	return out, nil
}

// shown are the rows whose replies are shown, in order: at most so many, of different groups where there are
// several, and of different members.
func shown(replies, groups, members int) []int {
	n := min(replies, groups*members)
	var rows []int
	for k := range n {
		if n > groups { // spread over all rows
			rows = append(rows, k*groups*members/n)
		} else {
			rows = append(rows, k*groups/n*members+k*members/n)
		}
	}
	return rows
}

// shorten leaves the middle of a long text out.
func shorten(text string) string {
	if utf8.RuneCountInString(text) <= promptRunes {
		return text
	}
	runes := []rune(text)
	return strings.Join([]string{string(runes[:promptRunes/2]), string(runes[len(runes)-promptRunes/2:])}, " … ")
}
