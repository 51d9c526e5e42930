package spec

import (
	"strings"

	"github.com/reprise-rl/reprise/infra/strict"
)

// The wordings of prompts.
const (
	// examplesProtocol is the wording that a spec of another policy than the starter leaves out, and
	// ourProtocol the starter's.
	examplesProtocol = "examples"
	hiperProtocol    = "hiper"
	ragenProtocol    = "ragen"
	ourProtocol      = "reprise"
	vagenProtocol    = "vagen"
	// protocolAllowed are the wordings of prompts, in words.
	protocolAllowed = `"examples", "hiper", "ragen", "reprise", "vagen", or "file:" and the path of a file with templates`
)

// protocolRelations are the rules between the wording of prompts and what is read in replies.
var protocolRelations = []relation{
	{
		paths: []string{"rollout.subgoals", "rollout.think", "rollout.protocol", "policy.starter.tokenizer"},
		doc:   "rollout.subgoals needs rollout.think, a rollout.protocol that asks for subgoals (not ragen or vagen) and, of a starter, policy.starter.tokenizer 2, which has words for subgoals.",
		broken: func(t Train) (bool, string, string) {
			r, s := t.Rollout, t.Policy.Starter
			bad := !r.Think || r.Protocol == ragenProtocol || r.Protocol == vagenProtocol || s != nil && s.Tokenizer < 2
			return r.Subgoals && bad, "true", "rollout.think true, a rollout.protocol other than ragen and vagen, and of a starter policy.starter.tokenizer 2 beside it; or leave it out"
		},
	},
	{
		paths: []string{"rollout.protocol", "rollout.think", "rollout.subgoals", "rollout.context_turns"},
		doc:   "rollout.protocol hiper needs rollout.think, rollout.subgoals, and a context that shows the turn before (rollout.context_turns not 1), in which the current subgoal stands.",
		broken: func(t Train) (bool, string, string) {
			r := t.Rollout
			return r.Protocol == hiperProtocol && (!r.Think || !r.Subgoals || r.ContextTurns == 1), strict.Quote(hiperProtocol), "rollout.think and rollout.subgoals true, and no rollout.context_turns of 1 beside it; or another wording"
		},
	},
	{
		paths: []string{"rollout.protocol", "rollout.think"},
		doc:   "rollout.protocol vagen needs rollout.think: its tags stand in a thought.",
		broken: func(t Train) (bool, string, string) {
			return t.Rollout.Protocol == vagenProtocol && !t.Rollout.Think, strict.Quote(vagenProtocol), "rollout.think true beside it; or another wording"
		},
	},
}

// leftOut is a wording as a spec holds it, where none means inherited: our own is not written where it
// is meant anyway, which inherited says by being empty. So the specs of a starter are as they were
// before there were wordings.
func leftOut(wording, inherited string) string {
	if wording == ourProtocol && inherited == "" {
		return ""
	}
	return wording
}

// inheritedProtocol is what a run's spec without a wording means, as leftOut takes it.
func inheritedProtocol(from string) string {
	if from == FromStarter {
		return ""
	}
	return examplesProtocol
}

// checkProtocol checks the form of a wording's name; see Rollout.Protocol.
func checkProtocol(wording string) string {
	for _, kind := range []string{"file:", "text:"} {
		if text, ok := strings.CutPrefix(wording, kind); ok && text != "" {
			return ""
		}
	}
	names := []string{examplesProtocol, hiperProtocol, ragenProtocol, ourProtocol, vagenProtocol}
	for _, name := range names {
		if wording == name {
			return ""
		}
	}
	if hint := strict.DidYouMean(wording, names); hint != "" {
		return hint
	}
	return "docs/environments.md has an example of a file"
}
