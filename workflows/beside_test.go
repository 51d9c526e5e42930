package workflows

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/reprise-rl/reprise/activities"
)

func (s *stage) Publish(ctx context.Context, in activities.PublishInput) (activities.PublishResult, error) {
	if err := s.begin(ctx, "Publish", in); err != nil {
		return activities.PublishResult{}, err
	}
	return activities.PublishResult{Published: activities.Published{Sampler: in.Policy.State}}, s.holds(in.Policy)
}

func (s *stage) Block(ctx context.Context, in activities.BlockInput) (activities.BlockResult, error) {
	if activity.GetInfo(ctx).TaskQueue == activities.HelperQueue(testPrint) {
		s.mu.Lock()
		s.offers++
		n := s.offers
		s.mu.Unlock()
		if err := s.helps(n, in); err != nil {
			return activities.BlockResult{}, err
		}
		s.mu.Lock()
		s.helped++
		s.mu.Unlock()
		return activities.BlockResult{Table: ref("block", in), Telemetry: s.helperTook}, nil
	}
	if err := s.begin(ctx, "Block", in); err != nil {
		return activities.BlockResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resident != in.Policy.State {
		s.late++
	}
	return activities.BlockResult{Table: ref("block", in)}, nil
}

func (s *stage) Join(ctx context.Context, in activities.JoinInput) (activities.GenerateResult, error) {
	return activities.GenerateResult{Table: ref("joined", in)}, s.begin(ctx, "Join", in)
}

// notFree is what an offer comes to that no worker takes.
func notFree(int, activities.BlockInput) error {
	return temporal.NewTimeoutError(enums.TIMEOUT_TYPE_SCHEDULE_TO_START, nil)
}

// lagging is a run of three iterations with a lag, of two turns of four blocks.
func lagging(helps func(n int, in activities.BlockInput) error) *stage {
	s := &stage{plan: testPlan(), base: true, helps: helps}
	s.plan.EvaluateEvery, s.plan.Turns, s.plan.Lag = 0, 2, 1
	s.plan.Workers, s.plan.BlockRows, s.plan.Beside = 3, 4, true
	return s
}

// blocksOfLag are all that lagging samples: three rollouts of two turns of four blocks.
const blocksOfLag = 3 * 2 * 4

// The next rollout is made by other workers as far as they are free, before, beside and after the update; what
// is left the session does. What is committed does not depend on it.
func TestLagOnOtherWorkers(t *testing.T) {
	alone := lagging(notFree)
	p := newPlay(t, alone)
	p.train(nil)
	p.result()
	require.Zero(t, alone.helped)
	require.Zero(t, alone.late, "nobody helps, so the session samples before the update")
	require.Equal(t, blocksOfLag, alone.counts["Block"])
	want := manifests(alone.commits)
	require.Len(t, want, 3)

	var once sync.Once
	var updated chan struct{}
	for name, c := range map[string]struct {
		helps func(n int, in activities.BlockInput) error
		check func(t *testing.T, s *stage)
	}{
		"always free": {func(int, activities.BlockInput) error { return nil }, func(t *testing.T, s *stage) {
			require.Greater(t, s.helped, blocksOfLag/2)
		}},
		"then and again": {func(n int, in activities.BlockInput) error {
			if n%3 == 0 {
				return notFree(n, in)
			}
			return nil
		}, func(t *testing.T, s *stage) { require.Positive(t, s.helped) }},
		"dies": {func(n int, _ activities.BlockInput) error {
			if n%2 == 0 {
				return fmt.Errorf("try %d: killed", n)
			}
			return nil
		}, func(t *testing.T, s *stage) { require.Positive(t, s.helped) }},
		"until the update has ended": {func(n int, in activities.BlockInput) error {
			if in.Rollout.Iteration == 1 && in.Turn == 1 && in.Block == 0 {
				<-updated
				return nil
			}
			if in.Rollout.Iteration == 1 {
				return notFree(n, in)
			}
			return nil
		}, func(t *testing.T, s *stage) {
			require.GreaterOrEqual(t, s.late, 7, "of two turns of four blocks, by what was published")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := lagging(c.helps)
			p := newPlay(t, s)
			once, updated = sync.Once{}, make(chan struct{})
			p.told = func(info *activity.Info, err error) {
				if info.ActivityType.Name == "Update" && err == nil {
					once.Do(func() { close(updated) })
				}
			}
			p.train(nil)
			p.result()
			require.Equal(t, want, manifests(s.commits))
			require.Equal(t, blocksOfLag, s.counts["Block"]+s.helped)
			require.Equal(t, alone.counts["Join"], s.counts["Join"])
			c.check(t, s)
		})
	}
}

// A device that is lost while others sample, and a pause, cost neither blocks that were done nor bytes.
func TestLagOnOtherWorkersIsInterrupted(t *testing.T) {
	alone := lagging(notFree)
	p := newPlay(t, alone)
	p.train(nil)
	p.result()
	want := manifests(alone.commits)
	free := func(int, activities.BlockInput) error { return nil }
	for _, at := range []string{"Score", "Update", "Snapshot"} {
		t.Run(at, func(t *testing.T) {
			s := lagging(free)
			p := newPlay(t, s)
			p.loseAt(at, 1)
			p.train(nil)
			p.result()
			require.Equal(t, want, manifests(s.commits))
			require.Equal(t, blocksOfLag, s.counts["Block"]+s.helped)
		})
		t.Run("pause at "+at, func(t *testing.T) {
			s := lagging(free)
			p := newPlay(t, s)
			p.when(at, 1, func() {
				p.send("pause")
				p.RegisterDelayedCallback(func() { p.send("resume") }, 60e9)
			})
			p.train(nil)
			p.result()
			require.Equal(t, want, manifests(s.commits))
			require.Equal(t, blocksOfLag, s.counts["Block"]+s.helped)
		})
	}
}

// What other workers did is held, useful or waited for, and paid, by the run that they helped: nothing of it is lost
// and nothing is counted twice.
func TestCostsOfOtherWorkers(t *testing.T) {
	costs := func(took activities.Telemetry) (activities.Cost, float64) {
		s := lagging(func(int, activities.BlockInput) error { return nil })
		s.helperTook = took
		p := newPlay(t, s)
		p.train(nil)
		p.result()
		require.Greater(t, s.helped, blocksOfLag/2)
		sum := activities.Cost{}
		for _, c := range p.status().Costs {
			sum = sum.Plus(c)
		}
		return sum, float64(s.helped)
	}
	without, _ := costs(activities.Telemetry{})
	for _, price := range []float64{0, 3.6} {
		with, helped := costs(activities.Telemetry{Seconds: 10, WaitSeconds: 2, PriceHour: price})
		const each = 1e-6 // the workflow's clock is the same in both runs
		require.InDelta(t, 12*helped, with.Held-without.Held, each)
		require.InDelta(t, 10*helped, with.Useful-without.Useful, each)
		require.InDelta(t, 2*helped, with.Waiting-without.Waiting, each)
		require.Equal(t, without.Lost+without.Recomputed, with.Lost+with.Recomputed)
		if price == 0 {
			require.InDelta(t, 12*helped, with.Unpriced-without.Unpriced, each)
			require.Zero(t, with.Money)
		} else {
			require.InDelta(t, 0.012*helped, with.Money, each)
			require.InDelta(t, without.Unpriced, with.Unpriced, each)
		}
	}
}
