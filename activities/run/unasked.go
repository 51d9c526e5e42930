package run

import (
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/rewards"
	"github.com/reprise-rl/reprise/infra/strict"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Unasked says in a sentence each which tags a reward or the credit of a run reads in replies that
// neither its prompts ask for nor its warm start teaches; nil if there are none. A policy that does not
// write them by itself earns nothing by them. The error is about a wording or a reward that Decode
// would refuse.
func Unasked(t spec.Train) ([]string, error) {
	r := t.Rollout
	p, err := inWording(envs.Protocol{Think: r.Think, Subgoals: r.Subgoals}, r.Protocol, r.MaxNewTokens)
	if err != nil {
		return nil, err
	}
	var out []string
	note := func(reader string, tags []string, hint string) {
		var missing []string
		for _, tag := range tags {
			if !p.Asks(tag) {
				missing = append(missing, "<"+tag+">")
			}
		}
		if len(missing) > 0 {
			out = append(out, fmt.Sprintf("%s reads %s in replies, and no prompt of the run asks for %s: a policy that does not write it by itself learns nothing from it; %s",
				reader, strings.Join(missing, " and "), map[bool]string{true: "it", false: "them"}[len(missing) == 1], hint))
		}
	}
	warm := t.Policy.WarmStart.Steps > 0
	if t.Credit.BySubgoals() && !warm {
		note("credit.algorithm "+t.Credit.Algorithm, envs.SubgoalTags(), "rollout.protocol "+strings.Join(envs.Wordings(envs.AsksSubgoals), ", ")+" asks, and so does a file with {format}")
	}
	for i, reward := range t.Rewards {
		m, problems, err := rewards.New(reward.Name, reward.Options)
		if err == nil {
			err = strict.Problems(problems).Err()
		}
		if err != nil {
			return nil, fmt.Errorf("rewards[%d]: %w", i, err)
		}
		if warm && t.Policy.WarmStart.Claims {
			continue
		}
		note(fmt.Sprintf("rewards[%d] (%s)", i, reward.Name), m.Tags, "rollout.protocol "+envs.Vagen+" asks")
	}
	return out, nil
}
