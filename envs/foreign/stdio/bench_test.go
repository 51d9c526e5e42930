package stdio

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/foreign/standin"
	"github.com/reprise-rl/reprise/model/draw"
)

// BenchmarkTurn plays the third turn of 128 episodes in two processes, the replay of the two
// before it included: what a turn of a run would cost.
func BenchmarkTurn(b *testing.B) {
	commands := map[string][]string{"go": {os.Args[0], "serve", standin.None, ""}}
	if _, err := exec.LookPath("python3"); err == nil {
		commands["python"] = []string{"../../../docs/own/bare.py"}
	}
	for _, name := range []string{"go", "python"} {
		command := commands[name]
		if command == nil {
			b.Log("SKIPPED: there is no python3")
			continue
		}
		b.Run(name, func(b *testing.B) {
			p, err := Open(Config{Command: command, Processes: 2})
			require.NoError(b, err)
			b.Cleanup(p.Close)
			s, err := foreign.Connect(context.Background(), "guess", nil, p.Call)
			require.NoError(b, err)
			asked := make([]foreign.Asked, 128)
			for i := range asked {
				asked[i].Instance = foreign.Number(draw.Address{Purpose: draw.Instance, Group: int64(i)})
			}
			for turn := range 3 {
				for i, a := range playAll(b, s, asked) {
					if turn > 0 {
						asked[i].Played = append(slices.Clone(asked[i].Played), asked[i].Next[:len(a.Steps)]...)
					}
					asked[i].Chain, asked[i].Next = a.Chain, []string{"1"}
				}
			}
			for b.Loop() {
				playAll(b, s, asked)
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/turn")
		})
	}
}

// playAll asks about all episodes, in calls of the greatest size at the same time.
func playAll(b testing.TB, s *foreign.Server, asked []foreign.Asked) []foreign.Answer {
	chunks := slices.Collect(slices.Chunk(asked, foreign.MaxEpisodes))
	answers := make([][]foreign.Answer, len(chunks))
	errs := make([]error, len(chunks))
	var calls sync.WaitGroup
	for i, chunk := range chunks {
		calls.Go(func() {
			answers[i], errs[i] = s.Play(context.Background(), chunk)
		})
	}
	calls.Wait()
	for _, err := range errs {
		require.NoError(b, err)
	}
	return slices.Concat(answers...)
}
