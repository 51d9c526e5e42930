package envs_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all"
	"github.com/reprise-rl/reprise/model/draw"
)

// addresses are the addresses of an evaluation's instances and chance.
func addresses(n int) ([]draw.Address, func(instance, sample int) draw.Address) {
	instances := make([]draw.Address, n)
	for i := range instances {
		instances[i] = draw.Address{Seed: 5, Purpose: draw.Evaluation.With(draw.Instance), Group: int64(i)}
	}
	return instances, func(instance, sample int) draw.Address {
		return draw.Address{Seed: 5, Purpose: draw.Evaluation.With(draw.Chance), Group: int64(instance), Member: int64(sample)}
	}
}

func environment(t testing.TB, name, options string) envs.Environment {
	t.Helper()
	env, err := envs.New(name, json.RawMessage(options))
	require.NoError(t, err)
	return env
}

// The same references again are part of the bits of every evaluation: numbers that
// change here change all of them.
func TestReferPinned(t *testing.T) {
	instances, chance := addresses(256)
	for _, c := range []struct {
		name, options string
		turns         int
		want          envs.Reference
	}{
		{"bandit", ``, 1, envs.Reference{RandomSuccess: 0.490234375, RandomReward: 0.19658203124999274, BestSuccess: 1, BestReward: 0.25, HasBest: true, HasBestReward: true}},
		{"sokoban", ``, 5, envs.Reference{RandomSuccess: 0.094482421875, RandomReward: 0.0923828124999693, BestSuccess: 0.9140625, BestReward: 9.539843750000006, HasBest: true, HasBestReward: true}},
		{"sokoban", `{"preset":"large"}`, 5, envs.Reference{RandomSuccess: 0.0087890625, RandomReward: -0.7147216796869865, BestSuccess: 0.9375, BestReward: 10.59648437499999, HasBest: true, HasBestReward: true}},
		{"sokoban", `{"preset":"large"}`, 1, envs.Reference{RandomSuccess: 0.003662109375, RandomReward: -0.3243652343749703, BestSuccess: 0.125, BestReward: 2.0292968750000018, HasBest: true, HasBestReward: true}},
		{"frozenlake", ``, 5, envs.Reference{RandomSuccess: 0.221435546875, RandomReward: 0.221435546875, BestSuccess: 0.5058428699046553, BestReward: 0.5058428699046553, HasBest: true, HasBestReward: true}},
		{"countdown", `{"split":"test"}`, 1, envs.Reference{RandomSuccess: 0.19384765625, RandomReward: 0.2744628906250066, BestSuccess: 1, BestReward: 1, HasBest: true, HasBestReward: true}},
		{"lookup", `{"size":"tiny"}`, 1, envs.Reference{RandomSuccess: 0.045654296875, RandomReward: 0.045654296875, BestSuccess: 1, BestReward: 1, HasBest: true, HasBestReward: true}},
		{"mathqa", ``, 3, envs.Reference{RandomSuccess: 0.032958984375, RandomReward: 0.02105712890625, BestSuccess: 1, BestReward: 1, HasBest: true, HasBestReward: true}},
	} {
		env := environment(t, c.name, c.options)
		got := envs.Refer(env, instances, chance, 16, c.turns)
		require.Equal(t, c.want, got, "%s %s %#v", c.name, c.options, got)
	}
}

// The random player against what it reaches in expectation.
func TestReferRandomPlay(t *testing.T) {
	instances, chance := addresses(400)
	const samples = 20
	within := func(want, got, deviation float64) {
		t.Helper()
		require.InDelta(t, want, got, 4*deviation/math.Sqrt(400*samples))
	}
	// Which arm is chosen and what it pays.
	r := envs.Refer(environment(t, "bandit", ``), instances, chance, samples, 3)
	within(0.5, r.RandomSuccess, 0.5)
	within(0.2, r.RandomReward, 0.35)
	require.Equal(t, 0.25, r.BestReward)
	require.Equal(t, 1.0, r.BestSuccess)
	// Half of the corridor's groups begin at its left end, from where RRR and LRRR
	// reach the goal; the others a step on: RR, LRRR and RLRR.
	r = envs.Refer(corridor{}, instances, chance, samples, 9)
	within((3.0+6.0)/32, r.RandomSuccess, 0.5)
	require.False(t, r.HasBest || r.HasBestReward)
	require.Zero(t, r.BestSuccess)
	// No action, and two that are not enough.
	require.Zero(t, envs.Refer(corridor{}, instances, chance, samples, 0).RandomReward)
	require.Equal(t, -0.2, math.Round(envs.Refer(corridor{}, instances[:1], chance, samples, 1).RandomReward*1e9)/1e9)
	// Value of the random player on slippery lakes, by their tables.
	env := environment(t, "frozenlake", ``)
	expected := 0.0
	for i, instance := range instances {
		e := env.Reset(instance, chance(i, 0))
		expected += randomValue(e.(envs.Tabular).Transitions(), start(e), 10)
	}
	within(expected/400, envs.Refer(env, instances, chance, samples, 5).RandomSuccess, 0.5)
}

// start is the player's cell.
func start(e envs.Episode) int {
	at := 0
	for _, row := range e.(envs.Gridded).Grid() {
		for _, glyph := range row {
			if glyph == 'P' {
				return at
			}
			at++
		}
	}
	panic("no player")
}

// randomValue is the expected sum of rewards of uniform choices.
func randomValue(table envs.Table, state, actions int) float64 {
	values := make([]float64, len(table))
	for range actions {
		next := make([]float64, len(table))
		for s, outcomes := range table {
			for _, action := range outcomes {
				for _, o := range action {
					worth := o.Reward
					if !o.Done {
						worth += values[o.Next]
					}
					next[s] += o.Probability * worth / float64(len(outcomes))
				}
			}
		}
		values = next
	}
	return values[state]
}

func TestReferWithout(t *testing.T) {
	instances, chance := addresses(3)
	bandit := environment(t, "bandit", ``)
	require.Equal(t, envs.Reference{}, envs.Refer(bandit, nil, chance, 4, 1))
	r := envs.Refer(bandit, instances, chance, 0, 1)
	require.Equal(t, envs.Reference{BestSuccess: 1, BestReward: 0.25, HasBest: true, HasBestReward: true}, r)
	// Rooms of more states than are searched.
	r = envs.Refer(environment(t, "sokoban", `{"width":20,"height":12,"boxes":8,"search_depth":200,"max_actions":100}`), instances, chance, 1, 100)
	require.False(t, r.HasBest || r.HasBestReward)
	require.Zero(t, r.BestSuccess)
}

func BenchmarkReferLarge(b *testing.B) {
	instances, chance := addresses(256)
	env := environment(b, "sokoban", `{"preset":"large"}`)
	for b.Loop() {
		envs.Refer(env, instances, chance, 16, 5)
	}
}
