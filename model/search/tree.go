package search

import (
	"fmt"

	"github.com/reprise-rl/reprise/activities/episode"
)

// Leaf is a trajectory of a tree.
type Leaf struct {
	// Inherited is how many of its turns are another leaf's, which comes before it, and Turns how
	// many it has in all.
	Inherited, Turns int
}

// LeafOf is a row as a leaf of its tree: the turns that it sampled itself are not inherited.
func LeafOf(turns []episode.Turn, row int) (l Leaf) {
	for _, t := range turns {
		if !t.Generate[row].Alive {
			break
		}
		l.Turns++
		if t.Slot(row) != int32(row) {
			l.Inherited++
		}
	}
	return l
}

// Place is where a tree can branch: after so many turns of a leaf. 0 turns are the tree's
// beginning.
type Place struct{ Leaf, Turns int }

// Places are where a tree can branch (Tree-GRPO, arXiv 2509.21240): its beginning, and after each
// turn that another one follows. A turn that leaves share is one place, of the first of them. They
// are in the order of the leaves, then of the turns. The authors' get_expand_node has the
// same. Errors are of kind ErrInput.
func Places(leaves []Leaf) ([]Place, error) {
	out := []Place{{}}
	for i, l := range leaves {
		if l.Turns < 1 || l.Inherited < 0 || l.Inherited >= l.Turns || i == 0 && l.Inherited > 0 {
			return nil, fmt.Errorf("%w: leaf %d has %d turns, %d of them inherited", ErrInput, i, l.Turns, l.Inherited)
		}
		for turns := l.Inherited + 1; turns < l.Turns; turns++ {
			out = append(out, Place{Leaf: i, Turns: turns})
		}
	}
	return out, nil
}

// Among is the place that a draw from [0, 1) takes: all are as likely, and several branches may
// begin at one. Errors are of kind ErrInput.
func Among(places []Place, draw float64) (Place, error) {
	if len(places) == 0 || !(draw >= 0 && draw < 1) {
		return Place{}, fmt.Errorf("%w: draw %v among %d places", ErrInput, draw, len(places))
	}
	return places[int(draw*float64(len(places)))], nil
}
