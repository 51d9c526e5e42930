package standin

import (
	"encoding/json"
	"fmt"

	"github.com/reprise-rl/reprise/envs/foreign"
)

// score is the answer of a judge to EnvScore: each component is the episode's reward, or with the level
// turn those of its turns. The faults of a judge are Broken (it has no verdict about an episode that it
// sees at the second place of a call), Episode, Lie (it leaves out a component), Noise (another form) and
// Random (its values count its calls).
func (s *Server) score(input []byte) (any, error) {
	var asked struct {
		Components []string         `json:"components"`
		Level      string           `json:"level"`
		Episodes   []foreign.Scored `json:"episodes"`
	}
	if err := json.Unmarshal(input, &asked); err != nil {
		return nil, err
	}
	if s.fault == Noise {
		return []string{"good"}, nil
	}
	verdicts := []any{}
	for i, e := range asked.Episodes {
		if s.fault == Broken && i == 1 {
			verdicts = append(verdicts, map[string]any{"id": e.ID, "error": map[string]string{"kind": "broken", "message": "the reply is not JSON"}})
			continue
		}
		value := func(reward float64) float64 {
			if s.fault == Random {
				return float64(s.requests.Load())
			}
			return reward
		}
		components := map[string]any{}
		for _, name := range asked.Components {
			if asked.Level == "" {
				components[name] = value(e.Reward)
				continue
			}
			turns := make([]float64, len(e.Turns))
			for k, t := range e.Turns {
				turns[k] = value(t.Reward)
			}
			components[name] = turns
		}
		if s.fault == Lie {
			delete(components, asked.Components[0])
		}
		if s.fault == Episode {
			e.ID = foreign.Begin("another")
		}
		raw := fmt.Sprintf("Reward %v in %d turns.", e.Reward, len(e.Turns))
		verdicts = append(verdicts, map[string]any{"id": e.ID, "components": components, "verdict": "by the reward", "raw": raw})
	}
	return map[string]any{"model": "standin", "prompt": foreign.Begin("What was the reward?"), "episodes": verdicts}, nil
}
