// Package terms declares the terms of which losses are made, by name: what each reads, its knobs and what it
// reports. A name of the table stands in a spec (update.surrogate: "clip"), selects the term of a loss
// (Selection) and finds its computation in package model/net/losses, where a term is a file. A test there demands
// that every name has both. How to add one: docs/contributing.md. The page docs/methods.md lists them.
//
// Columns, knobs and metrics have names. Their places in the inputs and outputs of programs follow from the
// order of the table alone.
package terms

import (
	"slices"

	"github.com/reprise-rl/reprise/model/batch"
)

// Kind is the part that a term has in a loss.
type Kind string

const (
	// Frame is what the loss of every policy has. It has no computation of its own: it composes the others.
	Frame Kind = "frame"
	// Surrogate is the loss of a token, from its ratio and its advantage; one in each loss.
	Surrogate Kind = "surrogate"
	// Distance estimates the distance from the reference policy; one or none.
	Distance Kind = "distance"
	// Ratio is the unit by which the new policy is compared with the old one; one in each loss.
	Ratio Kind = "ratio"
	// Guard replaces the surrogate's loss at some tokens by a number that has no gradient; any number of them.
	Guard Kind = "guard"
	// Imitation is the log-likelihood of marked tokens, which have no other term; one or none.
	Imitation Kind = "imitation"
	// Weighing gives a coefficient to each token; any number of them. It is a part of what it weighs.
	Weighing Kind = "weighing"
	// Value is the loss of a critic, which has no other term.
	Value Kind = "value"
)

// Term is what is known of a term.
type Term struct {
	Name string
	Kind Kind
	// Paper says where it comes from.
	Paper string
	// Doc says what it is in a few words, as the pages of the spec have it, and Note what else it reads there.
	Doc, Note string
	// Formula is the loss of a token, of a surrogate; docs/methods.md shows it.
	Formula string
	// Reads are the columns that it reads, besides the frame's.
	Reads []batch.Column
	// Knobs are the numbers that it reads, and Metrics what it reports.
	Knobs   []Knob
	Metrics []Metric
	// Units says of a surrogate that its ratio may be of more than a token, and that a guard for such a surrogate
	// may act on it; of a ratio or a guard that it needs that.
	Units bool
}

// Knob is a number that a term reads: an input of its programs, so that a change compiles nothing.
type Knob struct {
	// Name is the knob's. If Doc is not empty, the spec has a field of that name in its section update.
	Name string
	// Low and High bound it; Low itself is not allowed.
	Low, High float64
	// Default is the number where a spec leaves it out; 0 is none.
	Default float64
	// Source says where the knob comes from, and Doc what it means, without its default.
	Source, Doc string
	// Packing says which programs have it.
	Packing Packing
}

// Packing says which programs have a knob among their inputs.
type Packing int

const (
	// Alone: those of losses with its term.
	Alone Packing = iota
	// Together: those of losses with a term that has a knob of this packing; they have all of these. Only the
	// terms that there were before the table are packed so: another packing would change their programs.
	Together
	// Always: those of every policy, or of a term of kind Value.
	Always
)

// Metric is a number that a loss reports of a micro-batch.
type Metric struct {
	Name string
	// Largest says that micro-batches are combined by the maximum, not by the sum.
	Largest bool
}

// Of are the terms of a kind, in the order of the table.
func Of(k Kind) []Term {
	var out []Term
	for _, t := range Table {
		if t.Kind == k {
			out = append(out, t)
		}
	}
	return out
}

// Names are the names of a kind's terms.
func Names(k Kind) []string {
	var out []string
	for _, t := range Of(k) {
		out = append(out, t.Name)
	}
	return out
}

// Find is the term of a kind and a name; false if there is none.
func Find(k Kind, name string) (Term, bool) {
	at := slices.IndexFunc(Table, func(t Term) bool { return t.Kind == k && t.Name == name })
	if at < 0 {
		return Term{}, false
	}
	return Table[at], true
}

// Knobs are the values of knobs, by name. They are not changed once they are part of settings.
type Knobs map[string]float32

// With are the knobs with another, which replaces the one of its name.
func (k Knobs) With(name string, value float32) Knobs {
	out := Knobs{name: value}
	for other, v := range k {
		if other != name {
			out[other] = v
		}
	}
	return out
}
