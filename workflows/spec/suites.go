package spec

import (
	"fmt"
	"sort"

	"github.com/reprise-rl/reprise/infra/strict"
)

// assembleSuites completes the suites as they were written; none written is the
// run's own. The second result is what is wrong with them.
func (d *decoder) assembleSuites(t Train) ([]Suite, Problems) {
	written, ok := d.values["evaluation.suites"].([]map[string]any)
	if !ok {
		written = []map[string]any{{"suite": InDistribution}}
	}
	var problems Problems
	var suites []Suite
	seen := map[string]int{}
	for i, v := range written {
		s, p := d.assembleSuite(t, v, strict.Index("evaluation.suites", i))
		if s.Environment.ByAgent() && s.PromptTokens == nil && s.Turns == t.Rollout.Turns {
			s.PromptTokens = t.Rollout.PromptTokens // no environment gives them
		}
		problems = append(problems, p...)
		if at, twice := seen[s.Name]; twice && len(p) == 0 {
			problems = append(problems, Problem{Path: strict.Index("evaluation.suites", i), Found: "the name " + strict.Quote(s.Name) + " a second time",
				Allowed: "a name of its own for each suite", Hint: fmt.Sprintf("evaluation.suites[%d] has it; give this one a \"name\"", at)})
		}
		seen[s.Name] = i
		suites = append(suites, s)
	}
	return suites, problems
}

func (d *decoder) assembleSuite(t Train, v map[string]any, path string) (Suite, Problems) {
	s := Suite{
		Instances: t.Evaluation.Instances, Samples: t.Evaluation.Samples, Seed: t.Evaluation.Seed, Temperature: t.Evaluation.Temperature,
		Turns: t.Rollout.Turns, MaxNewTokens: t.Rollout.MaxNewTokens, Think: t.Rollout.Think, Subgoals: t.Rollout.Subgoals,
		FormatPenalty: t.Rollout.FormatPenalty, Penalty: t.Rollout.Penalty, ContextTurns: t.Rollout.ContextTurns, Protocol: t.Rollout.Protocol,
		StopAt: t.Rollout.StopAt, Context: t.Rollout.Context,
	}
	if own := elements(v, "context", ContextCut{}); own != nil {
		s.Context = own
	}
	if problems := checkContext(s.Context, strict.Join(path, "context")); len(problems) > 0 {
		return s, problems
	}
	for key := range inheritedFields {
		if value, ok := v[key]; ok {
			set(&s, key, value)
		}
	}
	s.Protocol = leftOut(s.Protocol, t.Rollout.Protocol)
	if _, own := v["protocol"]; own {
		if problems := d.checkWording(s.Protocol, strict.Join(path, "protocol")); len(problems) > 0 {
			return s, problems
		}
	}
	named, isNamed := v["suite"].(string)
	_, own := v["environment"]
	s.Name, _ = v["name"].(string)
	switch {
	case isNamed && own:
		return s, Problems{{Path: strict.Join(path, "environment"), Found: "an environment beside the suite " + strict.Quote(named), Allowed: "one of the two"}}
	case own:
		s.Environment = assembleEnvironment(v, "environment.").withForeignDefaults(t.Limits.ActivitySeconds)
		if s.Name == "" {
			s.Name = s.Environment.Parts()[0].Label
		}
		return s, d.checkEnvironment(s.Environment, strict.Join(path, "environment"))
	case !isNamed:
		return s, Problems{{Path: path, Found: "no environment", Allowed: `"suite" with a suite's name, or "environment"`}}
	}
	if s.Name == "" {
		s.Name = named
	}
	if named == InDistribution {
		s.Environment = t.Environment
		if d.known.HeldOut != nil && !d.isBad("environment") && !d.isBad(environmentName) && !d.isBad("environment.options") {
			// An error belongs to the options and is reported at their path.
			if e, err := s.Environment.WithOptions(d.known.HeldOut); err == nil {
				s.Environment = e
			}
		}
		return s, nil
	}
	if d.known.Suite != nil {
		if e, ok := d.known.Suite(named); ok {
			s.Environment = e
			return s, nil
		}
	}
	names := append([]string{InDistribution}, d.known.Suites...)
	sort.Strings(names)
	return s, Problems{{Path: strict.Join(path, "suite"), Found: strict.Quote(named), Allowed: oneOf(names), Hint: strict.DidYouMean(named, names)}}
}
