package hiper

import (
	"fmt"
	"math"

	"github.com/reprise-rl/reprise/model/credit"
	"github.com/reprise-rl/reprise/model/option"
)

// HiPER's options; those of the rewards are HiPERShaping's.
var (
	segmentLambda = option.Option{
		Section: option.Credit, Name: "segment_lambda", Default: 0.95, High: 1, Above: true, Source: "HiPER (arXiv 2602.16165)",
		Doc: "λ over the segments under one subgoal (%s).",
	}
	keepReward = option.Option{
		Section: option.Credit, Name: "keep_reward", Low: -1000, High: 1000, Source: "HiPER; its ALFWorld: −0.3",
		Doc: "Added to the reward of each turn that does not switch, the first too (%s).",
	}
	keepShared = option.Option{
		Section: option.Credit, Name: "keep_shared", Switch: true, Source: "HiPER; its WebShop: true, with −3.5",
		Doc: "Multiplies `credit.keep_reward` by the trajectory's share of such turns and divides it among them; " +
			"a trajectory of one turn has none (%s).",
	}
	changedReward = option.Option{
		Section: option.Credit, Name: "changed_reward", Low: -1000, High: 1000, Source: "HiPER; its code: −0.3",
		Doc: "Added where a turn keeps its subgoal and writes another than the turn before (%s).",
	}
	invalidPenalty = option.Option{
		Section: option.Credit, Name: "invalid_penalty", High: 1000, Source: "HiPER; its code: 0.1",
		Doc: "Subtracted from the reward of a turn without a legal action, without KEEP or SWITCH, or without a subgoal (%s).",
	}
	bootstrap = option.Option{
		Section: option.Credit, Name: "bootstrap", Switch: true, Source: "HiPER; its ALFWorld: true",
		Doc: "A trajectory that a limit of turns, actions or context ended, and not its environment, continues with the critic's " +
			"last value (%s).",
	}
)

// Entry is the method in the table.
var Entry = credit.Algorithm{
	Name: "hiper", By: "the choice of a subgoal, the subgoal and the action apart (HiPER)",
	Formula: "A^h of segments under one subgoal, A^l of turns inside of one, A^c of the choice to switch; each standardised over the batch", Paper: "HiPER, arXiv 2602.16165", File: "hiper/hiper.go",
	Critic: true, Values: hiperValues, BySubgoals: true,
	Reads:     []string{"turn_gamma", "turn_lambda", "whiten"},
	Own:       []option.Option{segmentLambda, keepReward, keepShared, changedReward, invalidPenalty, bootstrap},
	ReadsOpen: func(o credit.Options) bool { return bootstrap.On(o.Own) },
	Learns:    learnsSubgoals, Compute: bySubgoals,
}

// The numbers that HiPER's critic has for a token, in their order: what it expects of a segment, of
// the turn once the subgoal is written, and before the turn.
const (
	hiperHigh = iota
	hiperLow
	hiperChoice
	hiperValues
)

// places are the tokens at which a turn's three values are read. V^l is read after the subgoal; if no token of the
// turn follows one, after the switch; and else at the first.
func places(g credit.Subgoal, turn credit.Span) [hiperValues]int {
	low := turn.From
	for _, said := range []credit.Span{g.Goal, g.Choice} {
		if wrote(said) && said.To < turn.To {
			low = said.To
			break
		}
	}
	return [hiperValues]int{hiperHigh: turn.From, hiperLow: low, hiperChoice: turn.From}
}

// wrote says whether a turn has what stands in the span.
func wrote(s credit.Span) bool { return s.To > s.From }

// begins says whether turn k of a row begins a segment.
func begins(goals []credit.Subgoal, k int) bool { return k == 0 || goals[k].Switches }

// learnsSubgoals marks the values that are learned: V^l and V^c of every turn, V^h where a segment begins.
func learnsSubgoals(in credit.Input, _ credit.Options) [][]bool {
	out := make([][]bool, len(in.Turns))
	for row, turns := range in.Turns {
		out[row] = make([]bool, hiperValues*in.Lengths[row])
		for k, turn := range turns {
			for value, at := range places(in.Subgoals[row][k], turn) {
				if value != hiperHigh || begins(in.Subgoals[row], k) {
					out[row][hiperValues*at+value] = true
				}
			}
		}
	}
	return out
}

// bySubgoals is HiPER on the rows of an update: rewards are shaped, A^h is at the tokens of subgoals
// with which segments begin, A^l at those of actions and A^c at those that keep or switch. With
// Whiten each of the three has mean 0 and deviation 1 over the turns of the batch that have tokens for it.
// Targets are the advantages before that plus the values, each at its place.
//
// Differences from the authors' code: tags belong to their span, because a policy writes them; subgoals are
// compared as texts with single blanks, there as tokens; a turn with Chinese characters is not invalid.
func bySubgoals(in credit.Input, o credit.Options) (advantages, returns [][]float64, err error) {
	if len(in.Subgoals) != len(in.Turns) || len(in.Values) != len(in.Turns) || len(in.Rewards) != len(in.Turns) ||
		len(in.Invalid) != len(in.Turns) {
		return nil, nil, fmt.Errorf("%w: turns of %d rows, subgoals of %d, values of %d, rewards of %d, invalid turns of %d",
			credit.ErrInput, len(in.Turns), len(in.Subgoals), len(in.Values), len(in.Rewards), len(in.Invalid))
	}
	continues := bootstrap.On(o.Own)
	if continues && len(in.Open) != len(in.Turns) {
		return nil, nil, fmt.Errorf("%w: turns of %d rows, and %d say whether they are open", credit.ErrInput, len(in.Turns), len(in.Open))
	}
	type spot struct {
		row int
		at  credit.Span
	}
	var spots [hiperValues][]spot
	var kinds [hiperValues][]float64
	for row, turns := range in.Turns {
		goals, values := in.Subgoals[row], in.Values[row]
		if len(goals) != len(turns) || len(values) != hiperValues*in.Lengths[row] {
			return nil, nil, fmt.Errorf("%w: row %d has %d turns with %d subgoals, %d tokens with %d values", credit.ErrInput, row, len(turns), len(goals), in.Lengths[row], len(values))
		}
		t := HiPERTurns{Ended: !continues || !in.Open[row]}
		var keeps, changed []bool
		for k, turn := range turns {
			at := places(goals[k], turn)
			t.Switch = append(t.Switch, goals[k].Switches)
			t.High = append(t.High, values[hiperValues*at[hiperHigh]+hiperHigh])
			t.Low = append(t.Low, values[hiperValues*at[hiperLow]+hiperLow])
			t.Choice = append(t.Choice, values[hiperValues*at[hiperChoice]+hiperChoice])
			keeps = append(keeps, !goals[k].Switches)
			changed = append(changed, k > 0 && wrote(goals[k].Goal) && wrote(goals[k-1].Goal) && goals[k].Text != goals[k-1].Text)
		}
		if t.Rewards, err = HiPERShape(in.Rewards[row], keeps, changed, in.Invalid[row], HiPERShaping{
			Keep: keepReward.Number(o.Own), Shared: keepShared.On(o.Own), Changed: changedReward.Number(o.Own),
			Invalid: invalidPenalty.Number(o.Own),
		}); err != nil {
			return nil, nil, err
		}
		a, err := HiPER(t, HiPEROptions{
			Gamma: o.TurnGamma, TurnLambda: o.TurnLambda, SegmentLambda: segmentLambda.Number(o.Own), Bootstrap: continues,
		})
		if err != nil {
			return nil, nil, fmt.Errorf("row %d: %w", row, err)
		}
		targets := make([]float64, hiperValues*in.Lengths[row])
		add := func(kind, k int, advantage, value float64, at credit.Span) {
			targets[hiperValues*places(goals[k], turns[k])[kind]+kind] = advantage + value
			if wrote(at) {
				spots[kind], kinds[kind] = append(spots[kind], spot{row, at}), append(kinds[kind], advantage)
			}
		}
		for j, s := range a.Segments {
			add(hiperHigh, s[0], a.High[j], t.High[s[0]], goals[s[0]].Goal)
		}
		for k := range turns {
			add(hiperLow, k, a.Low[k], t.Low[k], goals[k].Action)
			add(hiperChoice, k, a.Choice[k], t.Choice[k], goals[k].Choice)
		}
		returns, advantages = append(returns, targets), append(advantages, make([]float64, in.Lengths[row]))
	}
	for kind, of := range kinds {
		if o.Whiten {
			if of, err = HiPERScale(of); err != nil {
				return nil, nil, err
			}
		}
		for i, a := range of {
			for at := spots[kind][i].at.From; at < spots[kind][i].at.To; at++ {
				advantages[spots[kind][i].row][at] += a
			}
		}
	}
	return advantages, returns, nil
}

// HiPEROptions are the knobs of HiPER. Each is from 0 to 1.
type HiPEROptions struct {
	// Gamma discounts a turn (authors: 1), and a segment by its number of turns.
	Gamma float64
	// TurnLambda is λ of the turns inside a segment (1), SegmentLambda that of segments (0.95).
	TurnLambda, SegmentLambda float64
	// Bootstrap says that a trajectory that did not end continues with its last own value. Otherwise,
	// and if it ended, nothing follows.
	Bootstrap bool
}

// HiPERTurns are the turns of one trajectory: all slices are [turns].
type HiPERTurns struct {
	// Rewards are the turns', after shaping.
	Rewards []float64
	// Switch is true where the policy gave itself another subgoal. Turn 0 begins a segment
	// in any case.
	Switch []bool
	// Low is the critic's value after the subgoal was written, Choice before the turn began,
	// and High what the critic expects of a segment: it is read at first turns of segments.
	Low, High, Choice []float64
	// Ended is false if a limit stopped the trajectory.
	Ended bool
}

// HiPERAdvantages are the advantages of one trajectory. The targets of the critic are these plus
// the values, each at its own place.
type HiPERAdvantages struct {
	// Segments are the first and the last turn of each.
	Segments [][2]int
	// Low, [turns], is for the tokens of actions; High, [segments], for those of the
	// subgoal at a segment's first turn; Choice, [turns], for those that keep or switch.
	Low, High, Choice []float64
}

// HiPER gives the parts of a turn advantages of their own: the choice to switch, the subgoal, and
// the action (hierarchical advantage estimation, arXiv 2602.16165; JonP07/HiPER-agent,
// core_hae.py). A segment is the turns from s to e under one subgoal, d of them, and x what follows
// it: V^h of the next segment's first turn, or at the trajectory's end see Bootstrap. From the
// last to the first,
//
//	δ_k = r_k + γ·V^l_{k+1} − V^l_k, with x for V^l_{e+1}
//	A^l_k = δ_k + γ·λ_turn·A^l_{k+1}, with 0 for A^l_{e+1}
//	A^h_s = Σ_k γ^{k−s}·r_k + γ^d·x − V^h_s + γ^d·λ_segment·A^h of the next segment
//	A^c_k = G_k − V^c_k, G_k = r_k + γ·G_{k+1}, with x for G_{e+1}
//
// where a stopped trajectory that bootstraps has V^l of its last turn as x for A^l, and V^h of its last
// segment for the two others.
//
// The paper's advantage of a switch is (q − β)(V^h − V^l), β the probability of switching: the code
// reads a third head of the critic, as here.
//
// Errors are of kind ErrRewards, ErrNotFinite (a value) or ErrInput.
func HiPER(in HiPERTurns, o HiPEROptions) (HiPERAdvantages, error) {
	if err := in.check(o); err != nil {
		return HiPERAdvantages{}, err
	}
	turns := len(in.Rewards)
	out := HiPERAdvantages{Low: make([]float64, turns), Choice: make([]float64, turns)}
	for k := range turns {
		if k == 0 || in.Switch[k] {
			out.Segments = append(out.Segments, [2]int{k, k})
		}
		out.Segments[len(out.Segments)-1][1] = k
	}
	out.High = make([]float64, len(out.Segments))
	after := 0.0 // the advantage of the next segment
	for j := len(out.Segments) - 1; j >= 0; j-- {
		s, e := out.Segments[j][0], out.Segments[j][1]
		var low, high float64 // what follows the segment
		switch {
		case e+1 < turns:
			low, high = in.High[e+1], in.High[e+1]
		case !in.Ended && o.Bootstrap:
			low, high = in.Low[e], in.High[s]
		}
		advantage, g, next := 0.0, high, low
		for k := e; k >= s; k-- {
			advantage = in.Rewards[k] + float64(o.Gamma*next) - in.Low[k] + float64(float64(o.Gamma*o.TurnLambda)*advantage)
			out.Low[k], next = advantage, in.Low[k]
			g = in.Rewards[k] + float64(o.Gamma*g)
			out.Choice[k] = g - in.Choice[k]
		}
		// g is the segment's discounted rewards and what follows them.
		after = g - in.High[s] + float64(float64(credit.Power(o.Gamma, e-s+1)*o.SegmentLambda)*after)
		out.High[j] = after
	}
	return out, nil
}

func (in HiPERTurns) check(o HiPEROptions) error {
	for _, k := range []struct {
		name string
		v    float64
	}{{"Gamma", o.Gamma}, {"TurnLambda", o.TurnLambda}, {"SegmentLambda", o.SegmentLambda}} {
		if err := credit.CheckUnit(k.name, k.v); err != nil {
			return err
		}
	}
	turns := len(in.Rewards)
	if len(in.Switch) != turns || len(in.Low) != turns || len(in.High) != turns || len(in.Choice) != turns {
		return fmt.Errorf("%w: %d rewards, %d switches, %d low, %d high and %d choice values", credit.ErrInput, turns, len(in.Switch), len(in.Low), len(in.High), len(in.Choice))
	}
	if err := credit.CheckTurns([][]float64{in.Rewards}); err != nil {
		return err
	}
	for k := range turns {
		boundary := k == 0 || in.Switch[k]
		if !credit.Finite(in.Low[k]) || !credit.Finite(in.Choice[k]) || boundary && !credit.Finite(in.High[k]) {
			return fmt.Errorf("%w: the values of turn %d are %v (low), %v (high) and %v (choice)", credit.ErrNotFinite, k, in.Low[k], in.High[k], in.Choice[k])
		}
	}
	return nil
}

// hiperEpsilon is added to the deviation.
const hiperEpsilon = 1e-8

// HiPERScale gives one kind of HiPER's advantages mean 0 and deviation 1, over all turns of a batch
// that carry it: (A − mean) / (std + 1e-8), with the deviation of a population. Advantages that are
// equal become 0. The result has the order of advantages. Errors are of kind ErrNotFinite.
func HiPERScale(advantages []float64) ([]float64, error) {
	for i, a := range advantages {
		if !credit.Finite(a) {
			return nil, fmt.Errorf("%w: advantage %d is %v", credit.ErrNotFinite, i, a)
		}
	}
	n := float64(len(advantages))
	mean, std := credit.MeanStd(advantages)
	std *= math.Sqrt((n - 1) / max(n, 1))
	out := make([]float64, len(advantages))
	for i, a := range advantages {
		if a != mean {
			out[i] = (a - mean) / (std + hiperEpsilon)
		}
	}
	return out, nil
}

// HiPERShaping are what HiPER adds to rewards.
type HiPERShaping struct {
	// Keep is added to every turn that does not switch (authors, ALFWorld: −0.3).
	Keep float64
	// Shared says that Keep is instead multiplied by the trajectory's share of such turns, and
	// divided among them (WebShop: −3.5). A trajectory of one turn has none.
	Shared bool
	// Changed is added where a turn keeps its subgoal and writes another (−0.3).
	Changed float64
	// Invalid is subtracted from a turn that is not valid (0.1).
	Invalid float64
}

// HiPERShape shapes the rewards of one trajectory before HiPER reads them. All slices are
// [turns]; keeps is true where the policy did not switch, changed where what it wrote as subgoal
// differs from the turn before, and invalid where the turn was not valid. The first turn changes nothing.
// Errors are of kind ErrInput.
func HiPERShape(rewards []float64, keeps, changed, invalid []bool, s HiPERShaping) ([]float64, error) {
	turns := len(rewards)
	if len(keeps) != turns || len(changed) != turns || len(invalid) != turns {
		return nil, fmt.Errorf("%w: %d rewards, %d keeps, %d changes and %d invalid actions", credit.ErrInput, turns, len(keeps), len(changed), len(invalid))
	}
	each := s.Keep
	switch {
	case s.Shared && turns > 1:
		each = s.Keep / float64(turns) // Keep · (kept/turns) / kept
	case s.Shared:
		each = 0
	}
	out := append([]float64(nil), rewards...)
	for k := range out {
		if keeps[k] {
			out[k] += each
			if changed[k] && k > 0 {
				out[k] += s.Changed
			}
		}
		if invalid[k] {
			out[k] -= s.Invalid
		}
	}
	return out, nil
}
