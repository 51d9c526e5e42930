package report

import (
	"fmt"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/report/episodes"
)

// index lists the trajectories and their outcomes: data/index.js.
type index struct {
	ID       string        `json:"id"`
	Rollouts []rolloutPage `json:"rollouts"`
	// Suites are the names of the evaluations' suites.
	Suites []string `json:"suites"`
	// States counts the different initial states.
	States int `json:"states"`
}

// rolloutPage is a rollout in the index.
type rolloutPage struct {
	ID     string `json:"id"`
	Branch int    `json:"b"`
	// Number is the iteration's; an evaluation's is the policy's version.
	Number int `json:"n"`
	// Suite is the place of the suite's name; -1 for training.
	Suite int  `json:"suite"`
	Kept  bool `json:"kept"`
	// Think: what is sampled begins after an opening <think>, else after <answer>.
	Think bool `json:"think"`
	// Members are the episodes of a group, First the rows at which the parts begin.
	Members int   `json:"m"`
	First   []int `json:"first"`
	// Flags are a hex digit an episode (see flagsOf), Rewards the sums of rewards.
	Flags   string `json:"f"`
	Rewards points `json:"r"`
	// States are numbers of the groups' initial states: equal ones are the same.
	States []int `json:"k"`
}

// rollout is a rollout that is to be read.
type rollout struct {
	page   rolloutPage
	source episodes.Source
	keys   []string // of the groups' initial states
}

// rollouts are all of a run, in the order of the page: branch by branch, iteration by
// iteration, training before evaluations.
func (r *Run) rollouts() (out []rollout, suites []string) {
	at := map[string]int{}
	for _, s := range r.suites() {
		at[s.Name] = len(suites)
		suites = append(suites, s.Name)
	}
	think := map[string]bool{}
	for _, s := range r.Spec.Evaluation.Suites {
		think[s.Name] = s.Think
	}
	first := map[string]int{} // by the table's key: iterations may share a rollout
	for b, it := range r.all() {
		m := it.Manifest
		kept := m.Iteration <= b.Kept
		if i, shared := sharedBy(first, m, len(out)); shared {
			out[i].source.Batches = append(out[i].source.Batches, episodes.OfIteration(m).Batches...)
		} else {
			out = append(out, rollout{
				page: rolloutPage{ID: fmt.Sprintf("b%d-%06d", b.Number, m.Iteration), Branch: b.Number, Number: m.Iteration, Suite: -1,
					Kept: kept, Think: r.Spec.Rollout.Think},
				source: episodes.OfIteration(m),
			})
		}
		for i, e := range m.Evaluations {
			source, err := episodes.OfEvaluation(m, i)
			if err != nil {
				continue // the place is the loop's own
			}
			out = append(out, rollout{
				page: rolloutPage{
					ID: fmt.Sprintf("b%d-e%06d-%d", b.Number, e.Version, at[e.Suite]), Branch: b.Number, Number: e.Version, Suite: at[e.Suite],
					Kept: kept, Think: think[e.Suite],
				},
				source: source,
			})
		}
	}
	return out, suites
}

// sharedBy finds the rollout that an iteration learned from among those before it; the
// next one will be number n.
func sharedBy(first map[string]int, m *store.Manifest, n int) (at int, shared bool) {
	if m.Trajectories == nil {
		return 0, false
	}
	at, shared = first[m.Trajectories.Key]
	if !shared {
		first[m.Trajectories.Key] = n
	}
	return at, shared
}

// partName is the id of a rollout's part; its file is data/ID.js.
func partName(id string, part int) string { return fmt.Sprintf("%s.%d", id, part) }

// describe notes the outcomes of the episodes.
func (r *rollout) describe(all []episodes.Episode) {
	flags := make([]byte, len(all))
	r.page.Rewards = make(points, len(all))
	for i := range all {
		e := &all[i]
		flags[i] = "0123456789abcdef"[flagsOf(e)]
		r.page.Rewards[i] = e.Reward
		if e.Member == 0 {
			r.keys = append(r.keys, e.Environment+"\x00"+e.StateKey)
		}
		r.page.Members = max(r.page.Members, e.Member+1)
	}
	r.page.Flags = string(flags)
}

// number gives the initial states numbers, in the order of the rollouts.
func (x *index) number(all []rollout) {
	numbers := map[string]int{}
	for i := range all {
		page := all[i].page
		for _, key := range all[i].keys {
			n, ok := numbers[key]
			if !ok {
				n = len(numbers)
				numbers[key] = n
			}
			page.States = append(page.States, n)
		}
		if len(page.Flags) > 0 {
			x.Rollouts = append(x.Rollouts, page)
		}
	}
	x.States = len(numbers)
}

// unreadable counts unreadable objects. Load has counted the missing ones.
func unreadable(all [][]episodes.Missing) []Missing {
	var found missingCounts
	seen := map[string]bool{}
	for _, missing := range all {
		for _, m := range missing {
			why := reason(m.Err)
			if why == store.ErrNotFound.Error() || seen[m.Key] {
				continue
			}
			seen[m.Key] = true
			found.add(m.What, why, m.Key)
		}
	}
	return found
}
