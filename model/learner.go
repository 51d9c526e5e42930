package model

import (
	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// Learner makes optimizer steps of a policy or a critic. It has the programs of Shapes.MicroBatch that
// sum up gradients and apply them.
type Learner struct {
	*core
	scorer *Scorer      // the loss reads its log-probs or values
	layout terms.Layout // what the programs of the loss read and report
	// widths are the learners of micro-batches, by width: it itself, and those of Shapes.Narrower.
	widths []*Learner
}

func newLearner(scorer *Scorer) *Learner {
	l := &Learner{core: scorer.core, scorer: scorer, layout: scorer.sh.Loss.PolicyLayout()}
	if l.c.ValueHead {
		l.layout = l.sh.Loss.CriticLayout()
	}
	l.widths = []*Learner{l}
	return l
}

// of is the learner of micro-batches of the width that b has.
func (l *Learner) of(b batch.MicroBatch) (*Learner, error) {
	i, err := l.scorer.place(b)
	if err != nil {
		return nil, err
	}
	return l.widths[i], nil
}

// at is the learner as it runs on device k, on which spread has been.
func (l *Learner) at(k int) *Learner {
	q := *l
	q.scorer = l.scorer.at(k)
	q.core = q.scorer.core
	return &q
}
