package spec

import (
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/strict"
)

// protocolAllowed are the wordings of prompts, in words.
var protocolAllowed = strings.Join(quoted(envs.Wordings(envs.AnyWording)), ", ") + `, or "file:" and the path of a file with templates`

// protocolRelations are the rules between the wording of prompts and what is read in replies.
var protocolRelations = []relation{
	{
		paths: []string{"rollout.subgoals", "rollout.think", "rollout.protocol", "policy.starter.tokenizer"},
		doc: "rollout.subgoals needs rollout.think, a rollout.protocol that asks for subgoals (not " + listed(envs.Wordings(envs.MuteOfSubgoals), "or") +
			") and, of a starter, policy.starter.tokenizer 2, which has words for subgoals.",
		broken: func(t Train) (bool, string, string) {
			r, s := t.Rollout, t.Policy.Starter
			mute := envs.Wordings(envs.MuteOfSubgoals)
			bad := !r.Think || slices.Contains(mute, r.Protocol) || s != nil && s.Tokenizer < 2
			return r.Subgoals && bad, "true", "rollout.think true, a rollout.protocol other than " + listed(mute, "and") +
				", and of a starter policy.starter.tokenizer 2 beside it; or leave it out"
		},
	},
	{
		paths: []string{"rollout.protocol", "rollout.think", "rollout.subgoals", "rollout.context_turns"},
		doc: "rollout.protocol " + listed(envs.Wordings(envs.AsksSubgoals), "or") +
			" needs rollout.think, rollout.subgoals, and a context that shows the turn before (rollout.context_turns not 1), in which the current subgoal stands.",
		broken: func(t Train) (bool, string, string) {
			r := t.Rollout
			asks := slices.Contains(envs.Wordings(envs.AsksSubgoals), r.Protocol)
			return asks && (!r.Think || !r.Subgoals || r.ContextTurns == 1), strict.Quote(r.Protocol),
				"rollout.think and rollout.subgoals true, and no rollout.context_turns of 1 beside it; or another wording"
		},
	},
	{
		paths: []string{"rollout.protocol", "rollout.think"},
		doc:   "rollout.protocol " + listed(envs.Wordings(envs.ThoughtAlone), "or") + " needs rollout.think: its tags stand in a thought.",
		broken: func(t Train) (bool, string, string) {
			p := t.Rollout.Protocol
			return slices.Contains(envs.Wordings(envs.ThoughtAlone), p) && !t.Rollout.Think, strict.Quote(p), "rollout.think true beside it; or another wording"
		},
	},
}

// leftOut is a wording as a spec holds it, where none means inherited: our own is not written where it
// is meant anyway, which inherited says by being empty. So the specs of a starter are as they were
// before there were wordings.
func leftOut(wording, inherited string) string {
	if wording == envs.Ours && inherited == "" {
		return ""
	}
	return wording
}

// inheritedProtocol is what a run's spec without a wording means, as leftOut takes it.
func inheritedProtocol(from string) string {
	if from == FromStarter {
		return ""
	}
	return envs.Examples
}

// checkProtocol checks the form of a wording's name; see Rollout.Protocol.
func checkProtocol(wording string) string {
	for _, kind := range []string{"file:", "text:"} {
		if text, ok := strings.CutPrefix(wording, kind); ok && text != "" {
			return ""
		}
	}
	names := envs.Wordings(envs.AnyWording)
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
