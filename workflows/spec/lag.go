package spec

import "fmt"

// lagRelations are the rules between rollout.lag and other fields.
var lagRelations = []relation{
	{
		paths: []string{"rollout.lag", "update.mismatch.regime"},
		doc:   "rollout.lag 1 needs update.mismatch.regime: another version samples than the one that learns.",
		broken: func(t Train) (bool, string, string) {
			return t.Rollout.Lag > 0 && t.Update.Mismatch.Regime == "", fmt.Sprintf("%d without update.mismatch", t.Rollout.Lag),
				fmt.Sprintf("%q or %q in update.mismatch.regime, or rollout.lag 0", Decoupled, Bypass)
		},
	},
	{
		paths: []string{"rollout.lag", "credit.algorithm", "freshness", "selection.resample", "update.passes.order", "rollout.search"},
		doc: "rollout.lag 1 excludes freshness.online, reuse and replay_iterations (they say themselves which version's rollouts are learned from), selection.resample " +
			"(another round would be sampled by another version), credit.algorithm state_baseline (a rollout would begin before the baseline has seen the one before it), " +
			"update.passes.order and rollout.search.",
		broken: func(t Train) (bool, string, string) {
			with := inUse(append(t.stored(), use{"selection.resample", t.Selection.Resample > 1}, use{"credit.algorithm " + t.Credit.Algorithm, t.Credit.ObservesStates()},
				use{"update.passes.order", t.Update.Passes.On()}, use{"rollout.search", t.Rollout.Search != ""}))
			names := listed(with, "and")
			return t.Rollout.Lag > 0 && len(with) > 0, fmt.Sprintf("%d with %s", t.Rollout.Lag, names), "rollout.lag 0, or nothing of " + names
		},
	},
}
