package foreign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-rl/reprise/model/draw"
)

// A measured turn has so many episodes, and no turn begins after the time.
const (
	measuredEpisodes = 2 * MaxEpisodes
	measuredTime     = 5 * time.Second
)

// turns measures the third turn of episodes, or their last if they are shorter. As in a run, each episode is
// asked about its first two turns before, in the same process, which may have kept it. Each process has half of
// the episodes.
func (c *checker) turns(turns int) {
	var took []time.Duration
	for begin := time.Now(); len(took) < turns && (len(took) == 0 || time.Since(begin) < measuredTime); {
		halves := make([][]Asked, 2)
		for i, s := range []*Server{c.first, c.second} {
			var err error
			if halves[i], err = thirdTurns(c.ctx, s, int64(2*len(took)+i)); err != nil {
				c.add("two requests at the same time", err.Error(), "")
				return
			}
		}
		turn := time.Now()
		failed := make(chan error, 2)
		for i, s := range []*Server{c.first, c.second} {
			go func() {
				_, err := s.Play(c.ctx, halves[i])
				failed <- err
			}()
		}
		if err := errors.Join(<-failed, <-failed); err != nil {
			c.add("two requests at the same time", err.Error(), "")
			return
		}
		took = append(took, time.Since(turn))
	}
	slices.Sort(took)
	median := took[len(took)/2]
	c.add("two requests at the same time", "", fmt.Sprintf("a turn of %d episodes takes %.1f ms, the median of %d", measuredEpisodes, float64(median.Microseconds())/1000, len(took)))
}

// thirdTurns plays the first two turns of MaxEpisodes episodes that no other round has, and returns the questions of
// their third turns. An episode that ends before keeps its last question.
func thirdTurns(ctx context.Context, s *Server, round int64) ([]Asked, error) {
	asked := make([]Asked, MaxEpisodes)
	ended := make([]bool, MaxEpisodes)
	for i := range asked {
		asked[i] = Asked{
			Instance: Number(draw.Address{Purpose: draw.Instance, Group: int64(i)}),
			Chance:   Number(draw.Address{Purpose: draw.Chance, Group: int64(i), Iteration: 1 + round}),
		}
	}
	for turn := range int64(2) {
		answers, err := s.Play(ctx, asked)
		if err != nil {
			return nil, err
		}
		for i, a := range answers {
			choices := a.Choices
			if choices == nil {
				choices = s.Description.Actions
			}
			if ended[i] = ended[i] || a.Err != nil || a.Done || len(choices) == 0; ended[i] {
				continue
			}
			for _, step := range a.Steps {
				asked[i].Played = append(slices.Clone(asked[i].Played), step.Action)
			}
			pick := draw.Address{Purpose: draw.Sample, Group: int64(i), Turn: turn, Iteration: 1 + round}
			asked[i].Chain, asked[i].Next = a.Chain, []string{choices[pick.Below(len(choices))]}
		}
	}
	return asked, nil
}
