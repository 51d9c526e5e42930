package environments

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/envs"
)

// Names of what is measured of a shop of 1,000 products.
const (
	shopsIndexed  = "webshop, 1,000 products"
	shopsSearched = "webshop, searches"
	shopsClicked  = "webshop, clicks"
	shopsShown    = "webshop, pages shown"
)

// shopFigures are of webshop, whose actions depend on the page.
func shopFigures() ([]*figures, error) {
	env, err := envs.New("webshop", nil)
	if err != nil {
		return nil, err
	}
	return []*figures{
		{section: "generation", name: shopsIndexed, work: shops()},
		{section: "steps", name: shopsSearched, work: visits(env, searched)},
		{section: "steps", name: shopsClicked, work: visits(env, clicked)},
		{section: "steps", name: shopsShown, work: visits(env, shown)},
	}, nil
}

// shops makes catalogues that were not made before, with their indexes.
func shops() work {
	number := 0
	return timed(func() (int, error) {
		number++
		_, err := envs.New("webshop", json.RawMessage(fmt.Sprintf(`{"number":%d}`, number)))
		return 1, err
	})
}

// What is timed of a visit to the shop.
const (
	searched = iota
	clicked
	shown
)

// visits plays random episodes that begin with a search for the instruction, and times one
// kind of what they do.
func visits(env envs.Environment, kind int) work {
	g := &game{env: env}
	return func() (count int, took time.Duration, err error) {
		all, first := make([]envs.Episode, episodesAtOnce), make([]string, episodesAtOnce)
		for i := range all {
			all[i] = env.Reset(g.addresses())
			first[i] = all[i].(envs.Advised).Advice(env.MaxActions())[0]
		}
		_, chance := g.addresses()
		r := randomPlayer(chance)
		for i, episode := range all {
			for action := first[i]; action != ""; action = wandering(r, episode) {
				begin := time.Now()
				if kind == shown {
					_ = episode.Observation()
					took += time.Since(begin)
					count++
				}
				search := strings.HasPrefix(action, "search[")
				begin = time.Now()
				episode.Step(action)
				if kind == searched && search || kind == clicked && !search {
					took += time.Since(begin)
					count++
				}
			}
		}
		return count, took, nil
	}
}

// wandering is a random click that does not go back to the search, "" if there is none: so
// a visit ends with the purchase, or at the latest with no more to click.
func wandering(r *rand.Rand, episode envs.Episode) string {
	choices := slices.DeleteFunc(episode.Choices(), func(c string) bool { return c == "click[back to search]" })
	if len(choices) == 0 {
		return ""
	}
	return choices[r.IntN(len(choices))]
}
