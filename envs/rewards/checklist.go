package rewards

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/model/reward"
)

// predicate is what an item of a checklist asks of the last turn of an episode so far.
type predicate struct {
	name  string
	needs needs
	holds func(Episode) bool
}

func last(e Episode) Turn { return e.Turns[len(e.Turns)-1] }

// needs says what an item reads that not every environment has.
type needs int

const (
	nothing needs = iota
	grids
	calls
)

// predicates are the items that a checklist may have.
var predicates = []predicate{
	{"formatted", nothing, func(e Episode) bool { return last(e).Reply.Formatted }},
	{"acted", nothing, func(e Episode) bool { return last(e).Executed > 0 }},
	{"one_action", nothing, func(e Episode) bool { return last(e).Executed == 1 }},
	{"valid", nothing, func(e Episode) bool { return last(e).Executed > 0 && last(e).Invalid == 0 }},
	{"effective", nothing, func(e Episode) bool { return last(e).Executed > 0 && last(e).Effective == last(e).Executed }},
	{"nearer", grids, func(e Episode) bool {
		l := layouts[e.Environment]
		return distance(l, last(e).After.Grid) < distance(l, last(e).Before.Grid)
	}},
	{"called", calls, func(e Episode) bool { return last(e).Calls > 0 }},
	{"call_valid", calls, func(e Episode) bool { return last(e).Calls > 0 && last(e).ValidCalls == last(e).Calls }},
	{"success", nothing, func(e Episode) bool { return e.Success }},
}

func predicateNames() []string {
	names := make([]string, len(predicates))
	for i, p := range predicates {
		names[i] = p.name
	}
	return names
}

// checklist is CM2 with predicates in the place of a judge's verdicts: an episode is the turn
// of a user, its turns are the steps.
func checklist(o *envs.Options) Module {
	var written, level string
	o.Text("items", &written, "valid 0.25, effective 0.25, success 0.5",
		"the items and their weights, which add up to 1: "+strings.Join(predicateNames(), ", ")+". An item may depend on one before it: \"called 0.4, success 0.6 if called\"")
	o.Choice("level", &level, "episode", []string{"episode", "turn"},
		"when an item that holds is paid: at the end of the episode, or in the first turn in which it holds")
	items, weights, found := parseItems(written)
	if found != "" {
		o.WrongFound("items", found, "an item and its weight, separated by commas, each item once, weights above 0 that add up to 1: \"valid 0.4, success 0.6\"; \"if\" and an item before it for one that depends on that: \"success 0.6 if valid\"; items are "+strings.Join(predicateNames(), ", "))
	}
	reads := func(n needs) bool { return slices.ContainsFunc(items, func(i item) bool { return i.needs == n }) }
	after := make([]int, len(items))
	for k, i := range items {
		after[k] = i.after
	}
	m := Module{Stage: OfEpisode, grids: reads(grids), tools: reads(calls)}
	m.Criteria = &Criteria{Weights: weights, After: after, Holds: func(e Episode) [][]bool {
		steps := make([][]bool, len(e.Turns))
		for k := range steps {
			soFar := Episode{Environment: e.Environment, Turns: e.Turns[:k+1], Success: e.Turns[k].After.Success}
			for _, i := range items {
				steps[k] = append(steps[k], i.holds(soFar))
			}
		}
		return steps
	}}
	for _, i := range items {
		m.Criteria.Names = append(m.Criteria.Names, i.name)
	}
	m.score = byEpisode(func(e Episode, _ Past) []float64 {
		counted, err := reward.Dependent(after, m.Criteria.Holds(e))
		var paid []float64
		switch {
		case err != nil:
		case level == "turn":
			paid, err = reward.ChecklistSteps(weights, counted)
		default:
			var score float64
			score, err = reward.Checklist(weights, counted)
			paid = atEnd(e, score)
		}
		if err != nil {
			panic(fmt.Sprintf("rewards: %v", err)) // every step has all items, which depend on those before them
		}
		return paid
	})
	if level == "turn" {
		m.Stage = OfTurn
	}
	return m
}

// item is a predicate of a checklist.
type item struct {
	predicate
	after int // the item before it that it depends on, −1 for none
}

// parseItems reads "NAME WEIGHT, NAME WEIGHT if NAME, …"; found is what is wrong.
func parseItems(written string) (items []item, weights []float64, found string) {
	at := func(name string) int { return slices.IndexFunc(items, func(i item) bool { return i.name == name }) }
	sum := 0.0
	for text := range strings.SplitSeq(written, ",") {
		words := strings.Fields(text)
		after := -1
		if len(words) == 4 && words[2] == "if" && at(words[3]) >= 0 {
			words, after = words[:2], at(words[3])
		}
		if len(words) != 2 {
			return nil, nil, fmt.Sprintf("%q", strings.TrimSpace(text))
		}
		i := slices.IndexFunc(predicates, func(p predicate) bool { return p.name == words[0] })
		weight, err := strconv.ParseFloat(words[1], 64)
		if i < 0 || err != nil || !(weight > 0 && weight <= 1) || at(words[0]) >= 0 {
			return nil, nil, fmt.Sprintf("%q", strings.TrimSpace(text))
		}
		items, weights, sum = append(items, item{predicates[i], after}), append(weights, weight), sum+weight
	}
	if sum < 1-1e-9 || sum > 1+1e-9 {
		return nil, nil, fmt.Sprintf("weights that add up to %v", sum)
	}
	return items, weights, ""
}
