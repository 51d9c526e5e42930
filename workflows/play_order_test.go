package workflows

import (
	"slices"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"github.com/reprise-rl/reprise/activities"
)

// A run has a commit and the first samples of the next iteration under way at once. Which of the
// two a worker begins first is chance, so a play orders them: the samples begin when the run has
// moved to their iteration, when the commit is given up or, beside a slow commit, before that begins.

// held is an activity that a worker has taken and that waits for its turn.
type held struct {
	id    string
	turn  func() bool
	begin func()
	begun chan struct{}
}

// turn says when an activity's turn is; nil is at once.
func (p *play) turn(info *activity.Info, args converter.EncodedValues) func() bool {
	commit := p.ended["Commit"] + 1
	switch info.ActivityType.Name {
	case "Commit":
		var in activities.CommitInput
		require.NoError(p.t, args.Get(&in))
		if p.slow[commit] {
			return func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.sampled[in.Iteration+1] || p.gone == p.opened
			}
		}
	case "Generate":
		var in activities.GenerateInput
		require.NoError(p.t, args.Get(&in))
		if in.Rollout.Evaluation == nil {
			p.samples[info.ActivityID] = in.Rollout.Iteration
		}
		if in.Rollout.Evaluation == nil && in.Rollout.Iteration > p.status().Iteration && !p.slow[commit] && p.s.plan.Lag == 0 {
			// Each try of the commit before has samples beside it; it may be refused before they begin.
			p.beside[in.Rollout.Iteration-1]++
			try := p.beside[in.Rollout.Iteration-1]
			return func() bool {
				return p.status().Iteration >= in.Rollout.Iteration || p.refused[in.Rollout.Iteration-1] >= try
			}
		}
	}
	return nil
}

// holds keeps an activity until its turn.
func (p *play) holds(info *activity.Info, turn func() bool, begin func()) {
	h := &held{id: info.ActivityID, turn: turn, begin: begin, begun: make(chan struct{})}
	p.mu.Lock()
	p.gates[info.ActivityID] = h.begun
	p.mu.Unlock()
	p.waiting = append(p.waiting, h)
}

// next begins the activities whose turn it is, when the workflow has taken the end of another.
func (p *play) next() {
	waiting := p.waiting
	p.waiting = nil
	for _, h := range waiting {
		if !h.turn() {
			p.waiting = append(p.waiting, h)
			continue
		}
		h.begin()
		close(h.begun)
	}
}

// drops forgets an activity that was cancelled before its turn.
func (p *play) drops(info *activity.Info) {
	p.waiting = slices.DeleteFunc(p.waiting, func(h *held) bool { return h.id == info.ActivityID })
}

// gate is closed when an activity that was held begins; nil for one that was not held.
func (p *play) gate(id string) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if begun, ok := p.gates[id]; ok {
		return begun
	}
	return nil
}
