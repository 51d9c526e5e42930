package sokoban

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs"
)

func benchmarkGenerate(b *testing.B, options string) {
	env, err := envs.New(Name, json.RawMessage(options))
	require.NoError(b, err)
	g := env.(*Sokoban).generator
	k := int64(0)
	for b.Loop() {
		k++
		if _, ok := g.generate(instance(k)); !ok {
			b.Fatal("no room")
		}
	}
}

// gym-sokoban takes 4.9 ms for a 6×6 room and 80 ms for an 8×8 room with two
// boxes on the machine of the project's measurements.
func BenchmarkGenerateSimple(b *testing.B) { benchmarkGenerate(b, "") }

func BenchmarkGenerateLarge(b *testing.B) { benchmarkGenerate(b, `{"preset":"large"}`) }

func BenchmarkSolveLarge(b *testing.B) {
	env, err := envs.New(Name, json.RawMessage(`{"preset":"large"}`))
	require.NoError(b, err)
	cases := env.Cases()
	k := 0
	for b.Loop() {
		k++
		if _, ok := Solve(cases[k%len(cases)].(*episode).room, 0); !ok {
			b.Fatal("not solved")
		}
	}
}

func BenchmarkStep(b *testing.B) {
	env, err := envs.New(Name, nil)
	require.NoError(b, err)
	e := env.Reset(instance(1), instance(1))
	k := 0
	for b.Loop() {
		if e.Done() {
			e = env.Reset(instance(1), instance(1))
		}
		k++
		e.Step(moves[k*k%4])
	}
}
