package bench

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workers/lab/speed"
)

// The rollout to measure with and without kept values: each turn adds a reply of turnNew tokens,
// forced by IgnoreStop, and turnSeen tokens of the environment to a first prompt of
// starterShape.Tokens.
const (
	rolloutTurns = 5
	turnNew      = 32
	turnSeen     = 32
)

// turns is a rollout of several turns: the sampler of each turn.
type turns struct {
	updates  *updates
	samplers []*model.Sampler
	keep     bool
}

// keptValues is a rollout whose turns prefill their whole contexts, and one that keeps their
// keys and values between the turns (rollout.keep_values).
func (u *updates) keptValues() ([]workload, error) {
	whole, err := u.turns(false)
	if err != nil {
		return nil, err
	}
	kept, err := u.turns(true)
	if err != nil {
		return nil, err
	}
	return []workload{
		{fmt.Sprintf("a rollout of %d turns, contexts prefilled whole", rolloutTurns), -1, whole.play},
		{"with kept values", 0, kept.play},
	}, nil
}

// turns prepares the programs of a rollout. Those that keep values have the shapes that a run's
// have: see run.Context.Shapes.
func (u *updates) turns(keep bool) (*turns, error) {
	out := &turns{updates: u, keep: keep}
	width := func(turn int) int { return starterShape.Tokens + turn*(turnNew+turnSeen) }
	for turn := range rolloutTurns {
		sh := model.Shapes{GenerateRows: starterShape.Rows, PromptTokens: width(turn), MaxNewTokens: turnNew}
		if keep {
			sh.Append.Widest = width(rolloutTurns - 1)
			if turn > 0 {
				sh.Append.Before, sh.Append.Tokens = width(turn-1), turnNew+turnSeen
			}
		}
		p, err := u.device.Programs(u.config, nil, sh)
		if err != nil {
			return nil, err
		}
		u.others = append(u.others, p)
		out.samplers = append(out.samplers, p.Sampler)
	}
	return out, nil
}

// play samples all turns of the rollout's rows.
func (r *turns) play(ctx context.Context) (err error) {
	u := r.updates
	contexts, alive := u.opening()
	var kept *model.Kept
	defer func() {
		if kept != nil {
			kept.Free()
		}
	}()
	for turn, p := range r.samplers {
		in := model.GenerateInput{Prompts: contexts, Alive: alive, Temperature: 1, IgnoreStop: true}
		for row := range contexts {
			uniforms := make([]float32, turnNew)
			draw.Address{Purpose: draw.Sample, Member: int64(row), Turn: int64(turn)}.Uniforms(uniforms)
			in.Uniforms = append(in.Uniforms, uniforms)
		}
		if r.keep {
			before := kept
			kept = nil // Append consumes it
			if kept, err = p.Append(ctx, u.policy, before, contexts, alive); err != nil {
				return fmt.Errorf("turn %d: %w", turn+1, err)
			}
			in.Kept = kept
		}
		out, err := p.Generate(ctx, u.policy, in)
		if err != nil {
			return fmt.Errorf("turn %d: %w", turn+1, err)
		}
		for row, tokens := range out.Tokens {
			contexts[row] = append(append(contexts[row], tokens...), seen(u.config, turn, row)...)
		}
	}
	return nil
}

// opening are the contexts of the first turn.
func (u *updates) opening() (contexts [][]int32, alive []bool) {
	for row := range starterShape.Rows {
		rows := starterShape.MicroBatch
		ids := u.all[row/rows%len(u.all)].IDs[row%rows]
		contexts, alive = append(contexts, append([]int32{}, ids...)), append(alive, true)
	}
	return contexts, alive
}

// seen is what a row sees of the environment after a turn.
func seen(c model.Config, turn, row int) []int32 {
	shape := speed.Shape{Tokens: turnSeen, MicroBatch: 1}
	return speed.Rows(c, shape, turn*starterShape.Rows+row).IDs[0]
}
