package host

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/episode/recorded"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/envs/starter"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/model/methods/methodstest"
)

// repeats is how often a step is run where its input has ties.
const repeats = 50

// steppingName is an environment in which three steps to the right succeed. Its rewards name the group and, with
// luck, the member whose luck a step meets.
const steppingName = "test-stepping"

func init() {
	envs.Register(steppingName, "", func(o *envs.Options) envs.Environment {
		var s stepping
		o.Bool("luck", &s.luck, false, "rewards have the member in them")
		return s
	})
}

type stepping struct{ luck bool }

func (stepping) Name() string           { return steppingName }
func (stepping) Instructions() string   { return "Go right." }
func (stepping) Actions() []string      { return []string{"Left", "Right"} }
func (stepping) MaxActions() int        { return 6 }
func (stepping) MaxActionsPerTurn() int { return 2 }
func (s stepping) Certain() bool        { return !s.luck }
func (s stepping) Cases() []envs.Episode {
	return []envs.Episode{&walk{env: s, group: 99, at: 9}}
}
func (s stepping) Reset(instance, chance draw.Address) envs.Episode {
	return &walk{env: s, group: instance.Group, member: chance.Member}
}

type walk struct {
	env           stepping
	group, member int64
	at            int
}

func (s *walk) Fork(chance draw.Address)           { s.member = chance.Member }
func (s *walk) Observation() string                { return fmt.Sprintf("%02d at %d", s.group, s.at) }
func (s *walk) Legal(action string) (string, bool) { return envs.Lookup(s.Choices(), action) }
func (s *walk) Choices() []string                  { return s.env.Actions() }
func (s *walk) StateKey() string                   { return s.Observation() }
func (s *walk) Done() bool                         { return s.at == 3 }
func (s *walk) Success() bool                      { return s.at == 3 }
func (s *walk) Step(action string) envs.Outcome {
	before := s.at
	if action == "Right" {
		s.at++
	} else {
		s.at = max(0, s.at-1)
	}
	o := envs.Outcome{Done: s.Done(), Success: s.Success(), Effective: s.at != before}
	if o.Effective {
		o.Reward = float64(s.at-before) + float64(s.group)/16
	}
	if s.env.luck {
		o.Reward += float64(s.member) / 256
	}
	return o
}

// played is a run whose rollouts a test plays without a device.
type played struct {
	t testing.TB
	h *Host
	s *store.Memory
	activities.Run
	activities.Plan
	rc *run.Context
	// sampled counts the tokens of all tables that were generated.
	sampled int
	// say is what a row says in a turn.
	say func(what activities.Rollout, turn int, row episode.GenerateRow) string
}

// document is a small spec. The fields of edits take the place of its own; of an environment all of them.
func document(t testing.TB, edits string) json.RawMessage {
	t.Helper()
	methodstest.NeedsOf(t, edits)
	var own, other map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{
		"seed": 1, "iterations": 3, "policy": {"starter": {"layers": 1, "hidden_size": 16, "intermediate_size": 32, "heads": 2, "kv_heads": 1}},
		"environment": {"name": "`+steppingName+`"}, "rollout": {"groups": 2, "group_size": 4, "turns": 3, "max_new_tokens": 20, "think": false},
		"selection": {"method": "all"}, "update": {"micro_batch": 2}, "evaluation": {"every": 0}
	}`), &own))
	require.NoError(t, json.Unmarshal([]byte(edits), &other))
	for name, v := range other {
		fields, ok := own[name].(map[string]any)
		if !ok || name == "environment" {
			own[name] = v
			continue
		}
		maps.Copy(fields, v.(map[string]any))
	}
	b, err := json.Marshal(own)
	require.NoError(t, err)
	return b
}

// tinyFiles are the small files of a model with the starter's tokenizer.
func tinyFiles() map[string][]byte {
	files := starter.Files()
	files[model.ConfigFile] = model.Config{
		VocabSize: starter.VocabSize, HiddenSize: 16, IntermediateSize: 32, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 8, MaxPositions: 4096,
		RMSNormEps: 1e-6, RopeTheta: 10000, TieEmbeddings: true, InitializerRange: 0.05, EOS: model.ID(starter.EndID), Pad: model.ID(starter.First.PadID()),
	}.JSON()
	return files
}

// begin resolves a run of a document in a store of its own.
func begin(t testing.TB, edits string) *played {
	t.Helper()
	p := &played{t: t, s: store.NewMemory()}
	p.h = &Host{Store: p.s, Environments: map[string]foreign.Way{"guess": foreign.Always(standin.Call(standin.None)), "judge": foreign.Always(standin.Call(standin.None))}}
	out, err := p.h.Resolve(t.Context(), activities.ResolveInput{Run: "r", Spec: document(t, edits)})
	require.NoError(t, err)
	base, err := run.PutModel(t.Context(), p.s, run.FolderFiles(tinyFiles()))
	require.NoError(t, err)
	p.Run, p.Plan = activities.Run{ID: "r", Spec: out.Spec, Base: base}, out.Plan
	p.rc, err = p.h.Contexts.Read(t.Context(), p.s, p.Run)
	require.NoError(t, err)
	p.say = wander
	return p
}

// wander says something else in each turn of each row of each round: mostly a step, of replies of several lengths.
func wander(what activities.Rollout, turn int, row episode.GenerateRow) string {
	numbers := rand.New(rand.NewPCG(uint64(1000*what.Round+100*what.Wave+turn), uint64(what.Iteration)<<32|uint64(row.Row)))
	return []string{"Right</answer>", "Left</answer>", "Right || Right</answer>", "Right</answer> and", "Up</answer>", "Left || Right</answer>"}[numbers.IntN(6)]
}

func (p *played) task(what activities.Rollout) *run.Task {
	task, err := p.rc.Task(what)
	require.NoError(p.t, err)
	return task
}

// generate stores what the rows of a turn sample, as Generate does.
func (p *played) generate(what activities.Rollout, turn int, turns []store.TurnRefs, opening *store.Ref) store.Ref {
	p.t.Helper()
	task := p.task(what)
	w, err := recorded.Wave(p.t.Context(), p.s, what.Wave, turn, turns)
	require.NoError(p.t, err)
	answers, err := run.ReadAnswers(p.t.Context(), p.s, opening, nil)
	require.NoError(p.t, err)
	recorded := task
	if opening != nil {
		recorded, err = task.Recorded(answers)
		require.NoError(p.t, err)
	}
	broken := map[int32]bool{}
	for _, b := range answers.Broken() {
		broken[b.Row] = true
	}
	var rows []episode.GenerateRow
	for i := range task.Groups * task.Slots {
		g := episode.GenerateRow{Row: int32(i), Group: int32(i / task.Slots), Member: int32(i % task.Slots)}
		if turn == 1 {
			g.Alive = task.Samples(i%task.Slots, 1) && task.Trees.Wave(i%task.Slots) == what.Wave && (w.Playing == nil || w.Playing[i]) && !broken[g.Row]
			a := p.rc.Address(task, 0, what, int(g.Group), int(g.Member))
			env := recorded.Env(int(g.Group))
			g.PromptIDs, err = task.Protocol.PromptIDs(p.rc.Tokenizer, env, env.Reset(a.Instance, a.Chance))
			require.NoError(p.t, err)
			g.Restart = true
		} else {
			before := w.Turns[turn-2]
			g.Alive = before.Generate[i].Alive && !before.Step[i].Done && task.Samples(i%task.Slots, turn)
			g.PromptIDs, g.Restart = before.Step[i].NextIDs, before.Step[i].NextRestart
		}
		if g.Alive {
			g.SampledIDs = append(p.rc.Tokenizer.Encode(p.say(what, turn, g)), p.rc.Tokenizer.EndOfTurn()[0])
			for n := range g.SampledIDs {
				g.RolloutLogProbs = append(g.RolloutLogProbs, -float32(turn)-float32(i)/16-float32(n)/256)
				g.RolloutEntropies = append(g.RolloutEntropies, float32(turn)/4)
			}
			p.sampled += len(g.SampledIDs)
		}
		rows = append(rows, g)
	}
	ref, err := tables.Put(p.t.Context(), p.s, run.Dir(p.Run, 0, what), run.TurnName(what, turn, "generate"), rows)
	require.NoError(p.t, err)
	return ref
}

// round plays a whole round, with its questions and choices.
func (p *played) round(what activities.Rollout) []store.TurnRefs {
	p.t.Helper()
	ctx, task := p.t.Context(), p.task(what)
	var turns []store.TurnRefs
	var opening *store.Ref
	ask := func(turn int, generate *store.Ref) *store.Ref {
		if !task.Foreign() {
			return nil
		}
		in := activities.AskInput{Run: p.Run, Rollout: what, Turn: turn, Turns: turns, Opening: opening, Generate: generate}
		out, err := p.h.Ask(ctx, in)
		require.NoError(p.t, err)
		return &out.Table
	}
	opening = ask(0, nil)
	for wave := 0; wave <= task.Trees.Expansions; wave++ {
		what.Wave = wave
		turn := 1
		if wave > 0 {
			out, err := p.h.Choose(ctx, activities.ChooseInput{Run: p.Run, Rollout: activities.Rollout{Iteration: what.Iteration, Round: what.Round, Wave: wave - 1}, Turns: turns, Last: true})
			require.NoError(p.t, err)
			turns[len(turns)-1].Forks = &out.Table
			if out.Over {
				break
			}
			turn = out.Turn
		}
		for over := false; !over; turn++ {
			first := opening
			if turn > 1 {
				first = nil
			}
			generate := p.generate(what, turn, turns, opening)
			answers := ask(turn, &generate)
			out, err := p.h.Step(ctx, activities.StepInput{Run: p.Run, Rollout: what, Turn: turn, Turns: turns, Generate: generate, Opening: opening, Answers: answers})
			require.NoError(p.t, err)
			turns = append(turns, store.TurnRefs{Round: what.Round, Generate: generate, Step: out.Table, Opening: first, Answers: answers})
			over = turn == task.Turns || out.Alive == 0
			if p.Plan.Search == "" || what.Evaluation != nil || task.Trees.Branches > 0 || p.Plan.Search == "best_of_n" && !over {
				continue
			}
			choice, err := p.h.Choose(ctx, activities.ChooseInput{Run: p.Run, Rollout: what, Turns: turns, Last: over})
			require.NoError(p.t, err)
			turns[len(turns)-1].Choices = &choice.Table
			over = over || choice.Over
		}
	}
	return turns
}

// selected plays an iteration's rounds until the selection has enough.
func (p *played) selected(iteration int, in activities.SelectInput) (activities.SelectInput, activities.SelectResult) {
	p.t.Helper()
	in.Run, in.Settings = p.Run, p.Plan.SettingsAt(p.Plan.Settings, iteration)
	for round := 0; ; round++ {
		in.Rollout = activities.Rollout{Iteration: iteration, Round: round}
		in.Turns = append(in.Turns, p.round(in.Rollout)...)
		if round+1 < p.Plan.Freshness.Rounds() {
			continue
		}
		out, err := p.h.Select(p.t.Context(), in)
		require.NoError(p.t, err)
		if !out.More {
			return in, out
		}
	}
}

// rows are the trajectories of a selection, with their parts.
func (p *played) rows(out activities.SelectResult) []episode.TrajectoryRow {
	p.t.Helper()
	rows, err := run.ReadTrajectories(p.t.Context(), p.s, out.Trajectories, out.Tables.Ref(activities.ComponentsTable))
	require.NoError(p.t, err)
	return rows
}

// read reads a table.
func read[T any](p *played, ref store.Ref) []T {
	p.t.Helper()
	rows, err := tables.Get[T](p.t.Context(), p.s, ref)
	require.NoError(p.t, err)
	return rows
}

// put stores a table.
func putTable[T any](p *played, rows []T) store.Ref {
	p.t.Helper()
	ref, err := tables.Put(p.t.Context(), p.s, "runs/r", "table", rows)
	require.NoError(p.t, err)
	return ref
}
