package spec

import (
	"fmt"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/infra/strict"
)

// ContextCut is a rule that shortens older observations in a context.
type ContextCut struct {
	// KeepLast is how many of the newest observations the rule leaves as they are.
	KeepLast int `json:"keep_last"`
	// CutObservations is how many tokens it leaves of each older one: its first; 0 leaves none.
	CutObservations int `json:"cut_observations"`
}

// maxContextCuts bounds the rules of a context.
const maxContextCuts = 8

const contextDoc = "Rules that shorten older observations, so that long episodes fit: each leaves the newest `keep_last` observations as they are, and of those before them the first `cut_observations` tokens. Of several rules that fit, the one with the largest `keep_last` counts. The first message, with the rules of the environment, stays whole, and so do all replies. An observation that has become older is shorter in the next turn's context, so that this turn is a row of its own in the update, as with `rollout.context_turns`."

// contextRules are the fields of such a rule, in the order of its type.
var contextRules = []*rule{
	{path: "keep_last", typ: typeInteger, required: true, span: between(1, maxTurns), source: fromOurs,
		doc: "How many of the newest observations stay as they are. Each rule has its own."},
	{path: "cut_observations", typ: typeInteger, required: true, span: between(0, 32768), source: fromOurs,
		doc: "How many tokens stay of each older one."},
}

// Restart is the first turn whose context does not continue that of the turn before, because an observation is cut; 0 if
// there is none.
func Restart(cuts []ContextCut, turns int) int {
	first := 0
	for _, c := range cuts {
		// The second turn's observation is the first that may be cut.
		if t := c.KeepLast + 2; t <= turns && (first == 0 || t < first) {
			first = t
		}
	}
	return first
}

// Cuts are the rules as the protocol has them.
func Cuts(cuts []ContextCut) []envs.Cut {
	var out []envs.Cut
	for _, c := range cuts {
		out = append(out, envs.Cut{KeepLast: c.KeepLast, Tokens: c.CutObservations})
	}
	return out
}

// checkContext checks the rules together; path is theirs.
func checkContext(cuts []ContextCut, path string) Problems {
	seen := map[int]bool{}
	for i, c := range cuts {
		if seen[c.KeepLast] {
			return Problems{{Path: strict.Join(strict.Index(path, i), "keep_last"), Found: fmt.Sprintf("%d a second time", c.KeepLast), Allowed: "each number once"}}
		}
		seen[c.KeepLast] = true
	}
	return nil
}

// contextRelations are the rules between rules for contexts and other fields.
var contextRelations = []relation{
	{
		paths: []string{"rollout.context", "rollout.context_turns", "rollout.keep_values", "rollout.search"},
		doc:   "rollout.context excludes rollout.context_turns, rollout.keep_values and rollout.search: it rewrites contexts in its own way, and begins rows anew.",
		broken: func(t Train) (bool, string, string) {
			r, with := t.Rollout, ""
			switch {
			case len(r.Context) == 0:
				return false, "", ""
			case r.ContextTurns > 0:
				with = "rollout.context_turns"
			case r.KeepValues:
				with = "rollout.keep_values"
			case r.Search != "":
				with = "rollout.search"
			}
			return with != "", fmt.Sprintf("%d rules with %s", len(r.Context), with), "one of the two: leave rollout.context out, or " + with
		},
	},
}
