package run

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// paying is an environment of one action that pays ten times its group and its member; those of one kind know their
// best play.
type paying struct {
	addressed
	best  bool
	begun *atomic.Int64
}

func (p paying) MaxActions() int { return 1 }
func (p paying) Reset(instance, chance draw.Address) envs.Episode {
	p.begun.Add(1)
	e := paid{toldEpisode: &toldEpisode{env: p.addressed, group: instance.Group, member: chance.Member}}
	if p.best {
		return &knownPaid{e}
	}
	return &e
}

type paid struct{ *toldEpisode }

func (p *paid) Done() bool    { return p.taken > 0 }
func (p *paid) Success() bool { return p.taken > 0 && p.group == 1 }
func (p *paid) Step(action string) envs.Outcome {
	o := p.toldEpisode.Step(action)
	o.Reward = float64(10*p.group + p.member)
	return o
}

type knownPaid struct{ paid }

func (k *knownPaid) Advice(int) []string     { return k.Choices() }
func (k *knownPaid) BestSuccess(int) float64 { return 0.5 }
func (k *knownPaid) BestReward(int) float64  { return float64(100 * (k.group + 1)) }

// A suite's lines are means over all of its instances, each played by its own environment and by its own draws. Best
// play is a line if all environments know it.
func TestRefer(t *testing.T) {
	rc := &Context{}
	begun := &atomic.Int64{}
	one, other := paying{addressed{"one"}, true, begun}, paying{addressed{"other"}, true, begun}
	s := &Task{
		Groups: 4, Members: 2, Turns: 3, Suite: &spec.Suite{Name: "s", Seed: 3}, order: []int{0, 1, 0, 0},
		Parts: envs.Mixture{{Label: "one", Environment: one}, {Label: "other", Environment: other}, {Label: "none", Environment: paying{addressed{"none"}, false, begun}}},
	}
	lines := Refer(rc, s)
	// Sixteen members, 0 to 15, of each group: the first environment has the groups 0, 2 and 3.
	require.InDelta(t, .75*(50.0/3+7.5)+.25*(10+7.5), lines.RandomReward, 1e-12)
	m := activities.Metrics{}
	lines.Add(m)
	for name, want := range map[string]float64{
		"reference/random_reward": lines.RandomReward, "reference/random_success": .25, "reference/best_success": .5, "reference/best_reward": .75*(100+300+400)/3 + .25*200,
	} {
		require.InDelta(t, want, float64(m[name]), 1e-9, name)
	}
	s.Parts[1].Environment = paying{addressed{"other"}, false, begun}
	lines = Refer(rc, s)
	m = activities.Metrics{}
	lines.Add(m)
	require.Len(t, m, 2, "one of the environments does not know it")
	require.InDelta(t, .25, float64(m["reference/random_success"]), 1e-12)
}

// Lines are computed once for a suite, and another suite has lines of its own: whatever of it differs.
func TestReferencesAreKept(t *testing.T) {
	rc := &Context{}
	begun := &atomic.Int64{}
	suite := spec.Suite{Name: "s", Environment: spec.Environment{Name: "x", Options: []byte(`{"a":1}`)}, Instances: 2, Samples: 1, Seed: 3, Turns: 2, MaxNewTokens: 5, PromptTokens: []int{7}}
	task := func(s spec.Suite) *Task {
		return &Task{Groups: 2, Members: 1, Turns: 2, Suite: &s, order: []int{0, 0}, Parts: envs.Mixture{{Label: "one", Environment: paying{addressed{"one"}, true, begun}}}}
	}
	var r References
	want, err := r.Of(rc, task(suite))
	require.NoError(t, err)
	played := begun.Load()
	require.Positive(t, played)
	again, err := r.Of(&Context{Train: spec.Train{Seed: 9}}, task(suite))
	require.NoError(t, err)
	require.Equal(t, want, again)
	require.Equal(t, played, begun.Load(), "nothing is played again, in whatever run")
	for i, change := range []func(*spec.Suite){
		func(s *spec.Suite) { s.Seed++ }, func(s *spec.Suite) { s.Instances++ }, func(s *spec.Suite) { s.Turns++ }, func(s *spec.Suite) { s.Environment.Options = []byte(`{"a":2}`) },
		func(s *spec.Suite) { s.Environment.Name = "y" }, func(s *spec.Suite) { s.Name = "t" },
	} {
		other := suite
		change(&other)
		_, err := r.Of(rc, task(other))
		require.NoError(t, err)
		require.Equal(t, int64(i+2)*played, begun.Load(), fmt.Sprint(i))
	}
	_, err = r.Of(rc, task(suite))
	require.NoError(t, err)
	require.Equal(t, 7*played, begun.Load())
}
