package spec

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/infra/strict"
)

// secondRelations are the rules between other fields and a second network, and the subgoals and the criteria
// that an algorithm reads, and a reference that is replaced.
func secondRelations() []relation {
	return []relation{
		{
			paths: []string{"credit.algorithm", "freshness.online", "freshness.reuse", "freshness.replay_iterations", "update.supervised", "rollout.search"},
			doc: "credit.algorithm " + listed(withProcess(), "or") + " excludes freshness.online, reuse and replay_iterations (the process reward model learns once from each trajectory, " +
				"at the parameters that scored it), update.supervised (its rows have no step rewards) and rollout.search (a turn that several rows share would be compared with itself).",
			broken: func(t Train) (bool, string, string) {
				with := inUse(append(t.stored(), use{"update.supervised", t.Update.Supervised.On()}, use{"rollout.search", t.Rollout.Search != ""}))
				return (t.Credit.PRM() || t.Credit.Promises()) && len(with) > 0, strict.Quote(t.Credit.Algorithm) + " with " + listed(with, "and"), "an algorithm without a process reward model, or a rollout for each iteration, without search"
			},
		},
		{
			paths: []string{"credit.algorithm", "rollout.subgoals"},
			doc:   "rollout.subgoals is true if credit.algorithm is " + listed(bySubgoals(), "or") + ", which reads them.",
			broken: func(t Train) (bool, string, string) {
				return t.Credit.BySubgoals() && !t.Rollout.Subgoals, strict.Quote(t.Credit.Algorithm), "rollout.subgoals true beside it, or an algorithm that reads no subgoals"
			},
		},
		{
			paths: []string{"credit.algorithm", "rewards", "update.kl_in"},
			doc: "If credit.algorithm is " + listed(withCriteria(), "or") + ", rewards has criteria by turn (the module checklist, or foreign or judge with its option level: turn), " +
				"and update.kl_in is none or loss: the criteria alone are read, and the distance is none.",
			broken: func(t Train) (bool, string, string) {
				found := strict.Quote(t.Credit.Algorithm)
				if t.Update.KLIn == KLReward {
					found += " with update.kl_in " + KLReward
				}
				return t.Credit.ReadsCriteria() && (t.Update.KLIn == KLReward || !slices.ContainsFunc(t.Rewards, Reward.hasCriteria)), found,
					`a reward checklist, or foreign or judge with the option level "turn", beside it, and update.kl_in none or loss; or an algorithm that reads no criteria`
			},
		},
		{
			paths: []string{"update.reference_every", "update.kl_in", "snapshot.every", "snapshot.retain"},
			doc:   "update.reference_every is given only if update.kl_in is loss or reward. It is a multiple of snapshot.every, and snapshot.retain is 0: a reference is a snapshot that stays.",
			broken: func(t Train) (bool, string, string) {
				every := t.Update.ReferenceEvery
				bad := !t.Update.Reference() || every%t.Snapshot.Every != 0 || t.Snapshot.Retain != 0
				return every > 0 && bad,
					fmt.Sprintf("%d with update.kl_in %s, snapshot.every %d and snapshot.retain %d", every, t.Update.KLIn, t.Snapshot.Every, t.Snapshot.Retain),
					"a multiple of snapshot.every, with update.kl_in loss or reward and snapshot.retain 0; or leave it out, so that version 0 is the reference"
			},
		},
	}
}
