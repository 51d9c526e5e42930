package episodes

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/store"
)

// Source names what a rollout's episodes are read from.
type Source struct {
	// Trajectories is the table of whole episodes; nothing is read without it.
	Trajectories *store.Ref
	// Components is the table of the rewards in parts; nil if there are none, as in an
	// evaluation.
	Components *store.Ref
	// Turns are the tables of each turn, round by round, for texts and boards.
	Turns []store.TurnRefs
	// Batches are the batches of the updates that learned from it; they have the
	// advantages. An evaluation has none. Of their rows those count that Iteration rolled
	// out.
	Batches []store.Ref
	// Passes are the batches of an update in passes instead, by turn: each has the advantages of
	// its turn's tokens.
	Passes    []store.Ref
	Iteration int
	// Base is the model whose tokenizer decodes.
	Base store.ModelRef
}

// OfIteration is the source of the rollout that an iteration learned from, with the
// iteration's own batch. If it shares the rollout with other iterations, the turns are
// the first one's, and the caller must add the others' batches.
func OfIteration(m *store.Manifest) Source {
	s := Source{Trajectories: m.Trajectories, Turns: m.Turns, Base: m.Base, Iteration: m.Iteration}
	s.Components = activities.Tables(m.Artifacts).Ref(activities.ComponentsTable)
	if m.Rollout != nil {
		s.Iteration = m.Rollout.Iteration
	}
	if m.Batch != nil {
		s.Batches = []store.Ref{*m.Batch}
	}
	for _, p := range slices.SortedFunc(slices.Values(m.Passes), func(a, b store.Pass) int { return a.Turn - b.Turn }) {
		s.Passes = append(s.Passes, p.Batch)
	}
	return s
}

// OfEvaluation is the source of an evaluation's rollout, by its place in the
// manifest.
func OfEvaluation(m *store.Manifest, at int) (Source, error) {
	if at < 0 || at >= len(m.Evaluations) {
		return Source{}, fmt.Errorf("evaluation %d of iteration %d: it has %d: %w", at, m.Iteration, len(m.Evaluations), store.ErrNotFound)
	}
	e := m.Evaluations[at]
	return Source{Trajectories: e.Trajectories, Turns: e.Turns, Base: m.Base, Iteration: m.Iteration}, nil
}
