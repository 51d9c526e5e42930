package envs

import (
	"errors"
	"fmt"

	"github.com/reprise-rl/reprise/model/draw"
)

// ErrCases is the kind of the error about an environment whose episodes show wider
// observations than its Cases.
var ErrCases = errors.New("observation wider than all cases")

// probed is how many random episodes are played to check an environment's Cases.
const probed = 100

// checkCases plays random episodes and compares their observations with those of the
// cases: widths are of the contexts as the cases need them, and wider tells those that
// the cases and another episode need. Where random play needs more, the error is an
// [ErrCases]: a run would end in the rollout that meets the observation.
func checkCases(env Environment, tok Tokenizer, cases []Episode, widths []int, wider func(Episode) ([]int, error)) error {
	width := func(observation string) (int, error) {
		ids, err := tok.Continuation(observation)
		return len(ids), err
	}
	allowed := 0
	for _, episode := range cases {
		n, err := width(episode.Observation())
		if err != nil {
			return err
		}
		allowed = max(allowed, n)
	}
	widest, most, err := widestPlayed(env, width)
	if err != nil || most <= allowed {
		return err
	}
	needed, err := wider(widest)
	if err != nil {
		return err
	}
	// Widths are rounded up, so that there may be room for the observation all the same.
	for i := range needed {
		if needed[i] > widths[i] {
			return fmt.Errorf("%w: environment %s shows %q (%d tokens), and the widest of its Cases() has %d: turn %d needs a context of %d tokens, not %d. Add an episode with this observation to Cases()",
				ErrCases, env.Name(), shortened(widest.Observation()), most, allowed, i+1, needed[i], widths[i])
		}
	}
	return nil
}

// shortened is the beginning of a text, for an error.
func shortened(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// widestPlayed plays random episodes and returns a state whose observation has most
// tokens, and that number. A stretch of random play finds what an author forgot, not
// everything that could occur: of that, Cases are the promise.
func widestPlayed(env Environment, width func(observation string) (int, error)) (widest Episode, most int, err error) {
	measured := map[string]bool{}
	for n := range int64(probed) {
		instance := draw.Address{Purpose: draw.Instance, Group: n}
		chance := draw.Address{Purpose: draw.Chance, Group: n}
		choose := draw.Address{Purpose: draw.Sample, Group: n}.Rand()
		var actions []string
		episode := env.Reset(instance, chance)
		for !episode.Done() {
			text := episode.Observation()
			if !measured[text] {
				measured[text] = true
				wide, err := width(text)
				if err != nil {
					return nil, 0, err
				}
				if wide > most {
					// Another episode in the same state: this one is played on.
					if widest, _, err = Replay(env, instance, chance, [][]string{actions}); err != nil {
						return nil, 0, err
					}
					most = wide
				}
			}
			choices := episode.Choices()
			if len(actions) == env.MaxActions() || len(choices) == 0 {
				break
			}
			action, ok := episode.Legal(choices[choose.IntN(len(choices))])
			if !ok {
				return nil, 0, fmt.Errorf("%w: a choice is not legal: %q", ErrCases, choices)
			}
			episode.Step(action)
			actions = append(actions, action)
		}
	}
	return widest, most, nil
}
