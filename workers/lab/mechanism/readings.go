package mechanism

import (
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/model/methods"

	"github.com/reprise-rl/reprise/model/credit"
)

// readings are how an algorithm reads a batch, by name.
var readings = map[string]func(Batch, credit.Options) ([][]float64, error){
	"": func(b Batch, o credit.Options) ([][]float64, error) {
		advantages, _, err := compute(b.Input, o)
		return advantages, err
	},
	// What an algorithm does before its critic knows anything.
	"values of 0": func(b Batch, o credit.Options) ([][]float64, error) {
		b.Values = b.zeros()
		advantages, _, err := compute(b.Input, o)
		return advantages, err
	},
	"the choice to switch at every turn": func(b Batch, o credit.Options) ([][]float64, error) {
		rows := b.Subgoals
		b.Subgoals = make([][]credit.Subgoal, len(rows))
		for row, turns := range rows {
			b.Subgoals[row] = slices.Clone(turns)
			for k := range turns {
				b.Subgoals[row][k].Switches = true
			}
		}
		advantages, _, err := compute(b.Input, o)
		return advantages, err
	},
	"each turn among those of its outcome": byOutcome,
	"targets of the critic":                byTargets,
}

// compute applies an algorithm. Its critic is right in all the numbers that it has for a token.
func compute(in credit.Input, o credit.Options) (advantages, returns [][]float64, err error) {
	if a, _ := methods.Find(o.Algorithm); a.Values > 1 {
		values := in.Values
		in.Values = make([][]float64, len(values))
		for row, tokens := range values {
			for _, v := range tokens {
				in.Values[row] = append(in.Values[row], slices.Repeat([]float64{v}, a.Values)...)
			}
		}
	}
	return methods.Compute(in, o)
}

// byOutcome makes each turn a row, in a group with the same turns that began with the same outcome.
// The first turns of a group have one outcome.
func byOutcome(b Batch, o credit.Options) ([][]float64, error) {
	type stratum struct{ group, turn, outcome int }
	numbers := map[stratum]int{}
	var in credit.Input
	for row, spans := range b.Turns {
		for k, span := range spans {
			s := stratum{b.Groups[row], k, b.Outcomes[row][k]}
			if k == 0 {
				s.outcome = 0
			}
			if _, seen := numbers[s]; !seen {
				numbers[s] = len(numbers)
			}
			n := span.To - span.From
			in.Rewards, in.Groups = append(in.Rewards, b.Rewards[row][k:k+1]), append(in.Groups, numbers[s])
			in.Turns, in.Lengths = append(in.Turns, []credit.Span{{From: 0, To: n}}), append(in.Lengths, n)
		}
	}
	apart, _, err := compute(in, o)
	if err != nil {
		return nil, err
	}
	out := b.zeros()
	for row, spans := range b.Turns {
		for _, span := range spans {
			copy(out[row][span.From:span.To], apart[0])
			apart = apart[1:]
		}
	}
	return out, nil
}

// byTargets gives a turn what the critic would learn of the batch about its answer, minus the mean of
// that over the answers in the same state.
//
// Algorithms tell states by all that came before; on a lake the cell and the turn tell them. So each
// turn is read in a row of its own, whose other turns say nothing.
func byTargets(b Batch, o credit.Options) ([][]float64, error) {
	var in credit.Input
	for row, turns := range b.Decisions {
		for k, d := range turns {
			keys := make([]string, len(turns))
			keys[k] = fmt.Sprint(d)
			in.Keys, in.Actions = append(in.Keys, keys), append(in.Actions, make([]string, len(turns)))
			in.Successes, in.Groups = append(in.Successes, b.Successes[row]), append(in.Groups, b.Groups[row])
			in.Values, in.Turns, in.Lengths = append(in.Values, b.Values[row]), append(in.Turns, b.Turns[row]), append(in.Lengths, b.Lengths[row])
		}
	}
	_, targets, err := compute(in, o)
	if err != nil {
		return nil, err
	}
	sum, visits := map[Decision]float64{}, map[Decision]float64{}
	state := func(d Decision) Decision { d.Action = 0; return d }
	given := make([][]float64, len(b.Decisions))
	for row, turns := range b.Decisions {
		for k, d := range turns {
			target := targets[0][b.Turns[row][k].To-1]
			targets, given[row] = targets[1:], append(given[row], target)
			sum[state(d)] += target
			visits[state(d)]++
		}
	}
	for row, turns := range b.Decisions {
		for k, d := range turns {
			given[row][k] -= sum[state(d)] / visits[state(d)]
		}
	}
	return credit.OverTurns(given, b.Turns, b.Lengths)
}
