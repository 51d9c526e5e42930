package mechanism

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/model/methods"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/selection"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// settings are the rows of the table. A section of a row has the fields of the spec's section, and
// a field that is left out is 0, not the spec's default.
//
//go:embed settings.json
var settings []byte

// Method is a way to give credit.
type Method struct {
	// Setting says with which settings, where it is not with the defaults.
	Setting string
	// Credit are the algorithm and its options. Of Selection are read Method with its number, DropFlat,
	// Members and LeastAdvantage, and of Update BranchWeight.
	Credit    spec.Credit
	Selection spec.Selection
	Update    spec.Update
	// Play is the way to roll out, and Reading how the algorithm reads the batch: names of ways and
	// readings, empty for plainly.
	Play, Reading string
}

// Methods are all ways to give credit, in the order of the table: the settings whose algorithms
// there are.
func Methods() ([]Method, error) {
	var all []Method
	if err := json.Unmarshal(settings, &all); err != nil {
		return nil, fmt.Errorf("settings.json: %w", err)
	}
	var known []Method
	for _, m := range all {
		if _, ok := methods.Find(m.Credit.Algorithm); !ok {
			continue
		}
		if ways[m.Play] == nil || readings[m.Reading] == nil {
			return nil, fmt.Errorf("settings.json: %s (%s) plays %q and reads %q", m.Credit.Algorithm, m.Setting, m.Play, m.Reading)
		}
		known = append(known, m)
	}
	return known, nil
}

// estimate returns the advantages, [rows][tokens]; rows that the update does not learn from have zeros.
func (m Method) estimate(b Batch) ([][]float64, error) {
	advantages, err := m.among(b)
	if err != nil {
		return nil, err
	}
	if least := m.Selection.LeastAdvantage; least > 0 {
		worth, err := credit.WorthAStep(advantages, least)
		if err != nil {
			return nil, err
		}
		for row, yes := range worth {
			if !yes {
				clear(advantages[row])
			}
		}
	}
	if weight, _ := m.Update.Own["branch_weight"].(float64); weight > 0 {
		return advantages, b.weigh(advantages, weight)
	}
	return advantages, nil
}

// among estimates the advantages of the rows that the selection keeps among themselves; the others
// get 0.
func (m Method) among(b Batch) ([][]float64, error) {
	read := readings[m.Reading]
	kept, err := m.kept(b)
	if err != nil {
		return nil, err
	}
	if kept == nil {
		return read(b, credit.Options(m.Credit))
	}
	var part Batch
	for _, row := range kept {
		part.Returns, part.Rewards = append(part.Returns, b.Returns[row]), append(part.Rewards, b.Rewards[row])
		part.Groups, part.Mask = append(part.Groups, b.Groups[row]), append(part.Mask, b.Mask[row])
	}
	advantages, err := read(part, credit.Options(m.Credit))
	if err != nil {
		return nil, fmt.Errorf("%d of %d rows: %w", len(kept), len(b.Returns), err)
	}
	out := b.zeros()
	for i, row := range kept {
		out[row] = advantages[i]
	}
	return out, nil
}

// kept are the rows that the selection keeps, in their order; nil if there is none to make.
func (m Method) kept(b Batch) ([]int, error) {
	var rows []int
	switch s := m.Selection; {
	case s.Method != "":
		chosen, err := selection.Select(b.groups(), selection.Options{Method: s.Method, Value: s.Value(), DropFlat: s.DropFlat})
		if err != nil {
			return nil, err
		}
		for row := range b.Returns {
			if slices.Contains(chosen.Kept, row/Members) {
				rows = append(rows, row)
			}
		}
	case s.Members > 0:
		chosen, err := selection.Members(b.groups(), s.MemberMetric, s.Members)
		if err != nil {
			return nil, err
		}
		for row := range b.Returns {
			if slices.Contains(chosen[row/Members], row%Members) {
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// groups is the batch as selections read it.
func (b Batch) groups() selection.Groups {
	var g selection.Groups
	for group := range GroupsABatch {
		rows := b.Returns[group*Members : (group+1)*Members]
		var lengths []float64
		for _, spans := range b.Turns[group*Members : (group+1)*Members] {
			n := 0
			for _, s := range spans {
				n += s.To - s.From
			}
			lengths = append(lengths, float64(n))
		}
		g.Rewards, g.Lengths = append(g.Rewards, rows), append(g.Lengths, lengths)
	}
	return g
}

// weigh multiplies each token's advantage by its weight in the loss of trajectories and their
// branches, so that the weight of a trajectory from the root is 1.
func (b Batch) weigh(advantages [][]float64, weight float64) error {
	mask := make([][]bool, len(b.Mask))
	for row, sampled := range b.Mask {
		mask[row] = slices.Clone(sampled)
		if from := b.Copied[row]; from > 0 {
			clear(mask[row][:b.Turns[row][from-1].To])
		}
	}
	weights, err := loss.BranchWeights(mask, b.Branches, weight)
	if err != nil {
		return err
	}
	unit := weights[0][slices.Index(mask[0], true)] // row 0 begins at the root
	for row := range advantages {
		for t := range advantages[row] {
			advantages[row][t] = float64(advantages[row][t] * weights[row][t] / unit)
		}
	}
	return nil
}

// zeros are numbers of all tokens, [rows][tokens].
func (b Batch) zeros() [][]float64 {
	out := make([][]float64, len(b.Lengths))
	for row, n := range b.Lengths {
		out[row] = make([]float64, n)
	}
	return out
}
