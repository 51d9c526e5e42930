package environments

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/reprise-rl/reprise/envs"
	_ "github.com/reprise-rl/reprise/envs/all" // registers them
	"github.com/reprise-rl/reprise/model/draw"
)

// Names of what is measured; Python's figures have the same.
const (
	roomsSimple     = "sokoban 6x6, 1 box"
	roomsLarge      = "sokoban 8x8, 2 boxes"
	roomsVocabulary = "sokoban 6x6, new vocabulary"
	lakes           = "frozenlake 4x4"
)

// games are the environments that are measured, in the order they are printed.
var games = []struct {
	name, environment, options string
	// generated: making an instance is measured; played: steps and replays are measured.
	generated, played bool
}{
	{roomsSimple, "sokoban", `{"preset":"simple"}`, true, true},
	{roomsLarge, "sokoban", `{"preset":"large"}`, true, false},
	{roomsVocabulary, "sokoban", `{"preset":"new-vocabulary"}`, true, false},
	{lakes, "frozenlake", `{}`, true, true},
	{"bandit", "bandit", `{}`, false, true},
	{"countdown", "countdown", `{}`, false, true},
}

// game is an environment with a counter of instances: no instance is played twice.
type game struct {
	env  envs.Environment
	next int64
}

func newGame(environment, options string) (*game, error) {
	env, err := envs.New(environment, json.RawMessage(options))
	return &game{env: env}, err
}

// Sizes of one piece of work: long compared with reading a clock, short compared with a
// round.
const (
	episodesAtOnce = 256
	roomsAtOnce    = 64
	// longestEpisode is how many actions are played, the limit of gym-sokoban; a spec's
	// limit is lower.
	longestEpisode = 100
	// replayedTurns of replayedActions each are what Step replays in the last of
	// five turns.
	replayedTurns, replayedActions = 4, 2
)

// addresses returns the addresses of the next episode.
func (g *game) addresses() (instance, chance draw.Address) {
	g.next++
	return draw.Address{Seed: 1, Purpose: draw.Instance, Group: g.next}, draw.Address{Seed: 1, Purpose: draw.Chance, Group: g.next}
}

// generation makes instances.
func (g *game) generation() work {
	return timed(func() (int, error) {
		for range roomsAtOnce {
			g.env.Reset(g.addresses())
		}
		return roomsAtOnce, nil
	})
}

// steps plays random actions. Resetting and drawing are not measured.
func (g *game) steps() work {
	type prepared struct {
		episode envs.Episode
		actions []string
	}
	return func() (int, time.Duration, error) {
		all := make([]prepared, episodesAtOnce)
		for i := range all {
			instance, chance := g.addresses()
			all[i].episode = g.env.Reset(instance, chance)
			r := randomPlayer(chance)
			all[i].actions = drawn(r, all[i].episode.Choices(), longestEpisode)
		}
		count := 0
		begin := time.Now()
		for _, p := range all {
			for _, action := range p.actions {
				if p.episode.Done() {
					break
				}
				p.episode.Step(action)
				count++
			}
		}
		return count, time.Since(begin), nil
	}
}

// replays rebuilds the states of recorded episodes, including their instances.
func (g *game) replays() work {
	type recorded struct {
		instance, chance draw.Address
		turns            [][]string
	}
	return func() (int, time.Duration, error) {
		all := make([]recorded, episodesAtOnce)
		for i := range all {
			e := &all[i]
			e.instance, e.chance = g.addresses()
			episode, r := g.env.Reset(e.instance, e.chance), randomPlayer(e.chance)
			left := g.env.MaxActions()
			for range replayedTurns {
				var turn []string
				for range min(replayedActions, left) {
					if episode.Done() {
						break
					}
					choices := episode.Choices()
					turn = append(turn, choices[r.IntN(len(choices))])
					episode.Step(turn[len(turn)-1])
					left--
				}
				e.turns = append(e.turns, turn)
			}
		}
		begin := time.Now()
		for _, e := range all {
			if _, _, err := envs.Replay(g.env, e.instance, e.chance, e.turns); err != nil {
				return 0, 0, err
			}
		}
		return len(all), time.Since(begin), nil
	}
}

// randomPlayer is the stream of a random player's choices.
func randomPlayer(chance draw.Address) *rand.Rand {
	chance.Purpose = envs.RandomPlay.With(chance.Purpose)
	return chance.Rand()
}
