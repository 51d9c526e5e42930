package rewards

import (
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/reward"
)

// tools pays the calls of tools at the end of an episode that succeeds. As in PyVision's
// code, a call that the tool could not answer counts too, unless valid_only is set.
func tools(o *envs.Options) Module {
	var coefficient float64
	var validOnly bool
	o.Number("coefficient", &coefficient, 0.1, 0, 100, "what a call of a tool is worth in an episode that succeeds")
	o.Bool("valid_only", &validOnly, false, "calls that the tool could not answer are worth nothing; PyVision's code pays them")
	return Module{Stage: OfEpisode, tools: true, score: byEpisode(func(e Episode, _ Past) []float64 {
		n := 0
		for _, t := range e.Turns {
			if validOnly {
				n += t.ValidCalls
			} else {
				n += t.Calls
			}
		}
		return atEnd(e, reward.Tools(e.Success, n, coefficient))
	})}
}

// tooled says that an environment has tools with its options.
func tooled(env envs.Environment) bool {
	t, ok := env.(envs.Tooled)
	return ok && len(t.Tools()) > 0
}
