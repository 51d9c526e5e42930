package environments

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/model/statistics"
)

// The rollout whose host work is measured: RAGEN's 8 prompts of 16 members, at
// most 5 turns (paper), and as many actions a turn as keep all of them in play.
const (
	stepGroups, stepMembers = 8, 16
	stepTurns               = 5
	stepActions             = 2
)

// PolicyRate is the new tokens a second that a policy of 0.5 billion parameters is
// taken to sample, all 128 rows together: 156 decoding steps a second on one H100.
// It is an assumption, meant to be on the fast side (the faster the policy, the
// more the host's work counts) and not measured; HostStep.FastestPolicy needs none.
const PolicyRate = 20_000

// ShareGoal is the most of an iteration that a host's steps may take.
const ShareGoal = 0.05

// HostStep is what a host does for the turns of an iteration: activities.Step,
// with the store in memory, on one core.
type HostStep struct {
	Tokenizer string `json:"tokenizer"`
	Members   int    `json:"members"`
	Turns     int    `json:"turns"`
	// Replies were answered: members that solved the task early have fewer.
	Replies int `json:"replies"`
	// Tokens are the ids of all replies.
	Tokens int `json:"tokens"`
	// Seconds of all turns together, and of each.
	Seconds     float64   `json:"seconds"`
	TurnSeconds []float64 `json:"turn_seconds"`
	// PolicySeconds is, by calculation, what sampling the tokens takes at
	// PolicyRate, and Share the host's part of both together. Scoring and updating
	// are left out: with them the share is smaller.
	PolicyRate    float64 `json:"assumed_tokens_per_second"`
	PolicySeconds float64 `json:"policy_seconds"`
	Share         float64 `json:"share"`
	// FastestPolicy is the rate at which Share would be ShareGoal.
	FastestPolicy float64 `json:"fastest_policy_tokens_per_second"`
}

// calculate fills in what is calculated.
func (h *HostStep) calculate(tokensPerSecond float64) {
	h.PolicyRate = tokensPerSecond
	h.PolicySeconds = float64(h.Tokens) / tokensPerSecond
	if whole := h.Seconds + h.PolicySeconds; whole > 0 {
		h.Share = h.Seconds / whole
	}
	if h.Seconds > 0 {
		h.FastestPolicy = float64(h.Tokens) * ShareGoal / ((1 - ShareGoal) * h.Seconds)
	}
}

// iterationOnHost is a run whose turns are stepped again and again.
type iterationOnHost struct {
	*speaker
	host *activities.Host
	run  activities.Run
	// rounds that were stepped: each under a name of its own.
	rounds int
}

func newIterationOnHost(ctx context.Context, m Model) (*iterationOnHost, error) {
	s, err := newSpeaker(m)
	if err != nil {
		return nil, err
	}
	widths, err := envs.MaxPromptTokens(s.env, s.tokenizer, s.protocol, stepTurns, ReplyTokens)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{
		"seed": 1, "iterations": 1,
		"policy":      map[string]any{"from": "starter"},
		"environment": map[string]any{"name": games[0].environment, "options": json.RawMessage(games[0].options)},
		"rollout": map[string]any{
			"groups": stepGroups, "group_size": stepMembers, "turns": stepTurns,
			"max_new_tokens": ReplyTokens, "prompt_tokens": widths, "think": true,
		},
	})
	if err != nil {
		return nil, err
	}
	memory := store.NewMemory()
	it := &iterationOnHost{speaker: s, host: &activities.Host{Store: memory}}
	resolved, err := it.host.Resolve(ctx, activities.ResolveInput{Run: "bench", Spec: text})
	if err != nil {
		return nil, err
	}
	it.run.Spec = resolved.Spec
	// A step looks at the policy's small files alone: no weights are needed.
	var files []store.FolderFile
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		files = append(files, store.FolderFile{Name: name, Body: m.Files[name]})
	}
	folder, err := store.PutFolder(ctx, memory, store.ModelPrefix, files)
	if err != nil {
		return nil, err
	}
	index, err := canon.Marshal(store.ModelRef{Name: m.Name, Dir: folder.Dir, Digest: folder.Digest, Files: folder.Files})
	if err != nil {
		return nil, err
	}
	it.run.Base, err = store.PutArtifact(ctx, memory, folder.Dir, "index", "json", index)
	return it, err
}

// round steps all turns once and measures that alone; what the members say is
// written down before each.
func (it *iterationOnHost) round(ctx context.Context) (HostStep, error) {
	it.rounds++
	run := it.run
	run.ID = fmt.Sprintf("bench-%d", it.rounds)
	out := HostStep{Members: stepGroups * stepMembers, Turns: stepTurns}
	rows, err := it.begin()
	if err != nil {
		return out, err
	}
	var turns []store.TurnRefs
	for turn := 1; turn <= stepTurns; turn++ {
		for i := range rows {
			row := &rows[i]
			if !row.Alive {
				continue
			}
			r := chanceOf(int(row.Group), int(row.Member), turn)
			row.SampledIDs = it.reply(r, ReplyTokens, drawn(r, it.env.Actions(), stepActions))
			row.RolloutLogProbs = make([]float32, len(row.SampledIDs))
			for k := range row.RolloutLogProbs {
				row.RolloutLogProbs[k] = -float32(r.ExpFloat64())
			}
			out.Replies++
			out.Tokens += len(row.SampledIDs)
		}
		generated, err := store.PutTable(ctx, it.host.Store, store.IterationDir(run.ID, 0, 0), fmt.Sprintf("turn-%d.generate", turn), rows)
		if err != nil {
			return out, err
		}
		begin := time.Now()
		got, err := it.host.Step(ctx, activities.StepInput{Run: run, Turn: turn, Turns: turns, Generate: generated})
		if err != nil {
			return out, err
		}
		took := time.Since(begin).Seconds()
		out.Seconds += took
		out.TurnSeconds = append(out.TurnSeconds, took)
		turns = append(turns, store.TurnRefs{Generate: generated, Step: got.Table})
		stepped, err := store.GetTable[activities.StepRow](ctx, it.host.Store, got.Table)
		if err != nil {
			return out, err
		}
		for i, s := range stepped {
			rows[i] = activities.GenerateRow{Row: s.Row, Group: s.Group, Member: s.Member, Alive: !s.Done, PromptIDs: s.NextIDs}
		}
	}
	return out, nil
}

// begin is the rows of turn 1. The prompts are of another room than the run's, and
// as long.
func (it *iterationOnHost) begin() ([]activities.GenerateRow, error) {
	var rows []activities.GenerateRow
	for group := range stepGroups {
		ids, err := it.protocol.PromptIDs(it.tokenizer, it.env, it.env.Reset(it.addresses()))
		if err != nil {
			return nil, err
		}
		for member := range stepMembers {
			rows = append(rows, activities.GenerateRow{
				Row: int32(group*stepMembers + member), Group: int32(group), Member: int32(member), Alive: true, PromptIDs: ids,
			})
		}
	}
	return rows, nil
}

// medianStep is the round in the middle of several, turn by turn.
func medianStep(rounds []HostStep) HostStep {
	if len(rounds) == 0 {
		return HostStep{}
	}
	out := rounds[0]
	out.Seconds = statistics.MedianOf(rounds, func(r HostStep) float64 { return r.Seconds })
	out.TurnSeconds = slices.Clone(out.TurnSeconds)
	for t := range out.TurnSeconds {
		out.TurnSeconds[t] = statistics.MedianOf(rounds, func(r HostStep) float64 { return r.TurnSeconds[t] })
	}
	return out
}
