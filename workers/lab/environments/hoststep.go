package environments

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/workers/lab/medians"
)

// The rollout whose host work is measured: RAGEN's 8 prompts of 16 members, at
// most 5 turns (paper), and few enough actions per turn that hardly any episode ends early.
const (
	stepGroups, stepMembers = 8, 16
	stepTurns               = 5
	stepActions             = 2
)

// PolicyRate is the assumed sampling rate of a policy of 0.5 billion parameters in new
// tokens per second over all 128 rows: 156 decoding steps per second on one H100. It is
// deliberately high, since a faster policy makes the host's share larger, and not
// measured. HostStep.FastestPolicy does not depend on it.
const PolicyRate = 20_000

// ShareGoal is the maximum share of an iteration that a host's steps may take.
const ShareGoal = 0.05

// HostStep is the cost of a host's part of an iteration: activities.Step for each turn,
// with the store in memory, on one core.
type HostStep struct {
	Tokenizer string `json:"tokenizer"`
	Members   int    `json:"members"`
	Turns     int    `json:"turns"`
	// Replies is the number of replies; members that solve the task early have fewer.
	Replies int `json:"replies"`
	// Tokens is the number of ids of all replies.
	Tokens int `json:"tokens"`
	// Seconds is the time of all turns, TurnSeconds of each.
	Seconds     float64   `json:"seconds"`
	TurnSeconds []float64 `json:"turn_seconds"`
	// PolicySeconds is the calculated time to sample the tokens at PolicyRate, Share the
	// host's share of both together. Scoring and updating would make it smaller.
	PolicyRate    float64 `json:"assumed_tokens_per_second"`
	PolicySeconds float64 `json:"policy_seconds"`
	Share         float64 `json:"share"`
	// FastestPolicy is the rate at which Share would be ShareGoal.
	FastestPolicy float64 `json:"fastest_policy_tokens_per_second"`
}

// calculate fills in the calculated fields.
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

// iterationOnHost is an iteration whose turns are stepped repeatedly.
type iterationOnHost struct {
	*speaker
	host *host.Host
	run  activities.Run
	// rounds counts the rounds so far: each has a run id of its own.
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
	it := &iterationOnHost{speaker: s, host: &host.Host{Store: memory}}
	resolved, err := it.host.Resolve(ctx, activities.ResolveInput{Run: "bench", Spec: text})
	if err != nil {
		return nil, err
	}
	it.run.Spec = resolved.Spec
	// A step reads only the small files of the policy, not its weights.
	it.run.Base, err = run.PutModel(ctx, memory, run.FolderFiles(m.Files))
	return it, err
}

// round steps all turns once and measures the steps alone. The members' replies are
// stored before each step.
func (it *iterationOnHost) round(ctx context.Context) (HostStep, error) {
	it.rounds++
	of := it.run
	of.ID = fmt.Sprintf("bench-%d", it.rounds)
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
		generated, err := tables.Put(ctx, it.host.Store, store.IterationDir(of.ID, 0, 0), fmt.Sprintf("turn-%d.generate", turn), rows)
		if err != nil {
			return out, err
		}
		begin := time.Now()
		got, err := it.host.Step(ctx, activities.StepInput{Run: of, Turn: turn, Turns: turns, Generate: generated})
		if err != nil {
			return out, err
		}
		took := time.Since(begin).Seconds()
		out.Seconds += took
		out.TurnSeconds = append(out.TurnSeconds, took)
		turns = append(turns, store.TurnRefs{Generate: generated, Step: got.Table})
		stepped, err := tables.Get[episode.StepRow](ctx, it.host.Store, got.Table)
		if err != nil {
			return out, err
		}
		for i, s := range stepped {
			rows[i] = episode.GenerateRow{Row: s.Row, Group: s.Group, Member: s.Member, Alive: !s.Done, PromptIDs: s.NextIDs}
		}
	}
	return out, nil
}

// begin is the rows of turn 1. Their prompts are of other rooms than the run's, of the
// same length.
func (it *iterationOnHost) begin() ([]episode.GenerateRow, error) {
	var rows []episode.GenerateRow
	for group := range stepGroups {
		ids, err := it.protocol.PromptIDs(it.tokenizer, it.env, it.env.Reset(it.addresses()))
		if err != nil {
			return nil, err
		}
		for member := range stepMembers {
			rows = append(rows, episode.GenerateRow{
				Row: int32(group*stepMembers + member), Group: int32(group), Member: int32(member), Alive: true, PromptIDs: ids,
			})
		}
	}
	return rows, nil
}

// medianStep is the median of the rounds, turn by turn.
func medianStep(rounds []HostStep) HostStep {
	if len(rounds) == 0 {
		return HostStep{}
	}
	out := rounds[0]
	out.Seconds = medians.By(rounds, func(r HostStep) float64 { return r.Seconds })
	out.TurnSeconds = slices.Clone(out.TurnSeconds)
	for t := range out.TurnSeconds {
		out.TurnSeconds[t] = medians.By(rounds, func(r HostStep) float64 { return r.TurnSeconds[t] })
	}
	return out
}
