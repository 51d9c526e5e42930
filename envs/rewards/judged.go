package rewards

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/foreign"
	"github.com/reprise-rl/reprise/envs/judge"
)

// Judge is how a module asks a judge outside this program: a program of one's own, or a language model behind an address.
type Judge struct {
	// Name is that of the worker's --env-process NAME=COMMAND or --env-temporal NAME, Options are
	// the judge's own. Of a language model they are that of --judge NAME=URL, and Form.
	Name    string
	Options json.RawMessage
	// Form is what a language model is asked; nil for a program.
	Form *judge.Form
	// Components are what a verdict has.
	Components []string
	// ByTurn says that a verdict has a number of each component for each turn, and not for the episode.
	ByTurn bool
	// Episodes is the most episodes of one call.
	Episodes int
	// TimeoutSeconds is how long one call may take; 0 is the run's default.
	TimeoutSeconds int
	// FailedShare is the largest share of a rollout's episodes that may stay without a verdict.
	FailedShare float64
}

// Values is how many numbers a verdict about an episode of so many turns has.
func (j *Judge) Values(turns int) int {
	if j.ByTurn {
		return len(j.Components) * turns
	}
	return len(j.Components)
}

// foreignJudge pays what a judge outside this program says: of an episode at its last turn, of a turn there.
func foreignJudge(o *envs.Options) Module {
	var j Judge
	var written, level string
	o.Text("name", &j.Name, "", "which judge: the NAME of the worker's --env-process NAME=COMMAND or --env-temporal NAME")
	o.Object("options", &j.Options, "the options that the judge itself gets")
	o.Text("components", &written, "score 1", "the components of a verdict and their weights: \"correct 0.7, polite 0.3\"")
	o.Choice("level", &level, "episode", []string{"episode", levelTurn},
		"what the judge gives for each component: a number for the episode, paid at its last turn, or an array with a number for each turn, paid there")
	o.Int("episodes", &j.Episodes, 8, 1, foreign.MaxEpisodes, "the most episodes of one call")
	o.Int("timeout_seconds", &j.TimeoutSeconds, 0, 0, 3600,
		"how long one call may take, three times in a row; 0 is 60, or limits.activity_seconds if that is less")
	o.Number("failed_share", &j.FailedShare, 0.05, 0, 1, "the largest share of a rollout's episodes that may stay without a verdict; beyond it the run ends")
	if problem := foreign.BadName(j.Name); problem != "" {
		o.Wrong("name", problem)
	}
	var weights []float64
	j.Components, weights = componentsOf(o, written)
	j.ByTurn = level == levelTurn
	return judged(&j, weights)
}

// levelTurn is the option level of a judge that is asked about each turn.
const levelTurn = "turn"

// componentsOf reads the option components.
func componentsOf(o *envs.Options, written string) (names []string, weights []float64) {
	names, weights, found := parseComponents(written)
	if found != "" {
		o.WrongFound("components", found, fmt.Sprintf("1 to %d components, each once, a name of lower-case letters, digits and underscores with its weight, separated by commas: \"correct 0.7, polite 0.3\"", foreign.MaxComponents))
	}
	return names, weights
}

// judged is the module that pays what a judge says: the weighted sum of its components.
func judged(j *Judge, weights []float64) Module {
	names := j.Components
	m := Module{Stage: OfEpisode, Judge: j}
	m.score = byEpisode(func(e Episode, _ Past) []float64 {
		if j.ByTurn {
			return e.judgedTurns(weights)
		}
		sum := 0.0
		for i, value := range e.Judged {
			sum += float64(weights[i] * value) // rounded, so that no machine fuses it
		}
		return atEnd(e, sum)
	})
	if j.ByTurn {
		m.Criteria = &Criteria{Names: names, Weights: weights, After: slices.Repeat([]int{-1}, len(names)), Holds: func(e Episode) [][]bool {
			held := make([][]bool, len(e.Turns))
			for k := range held {
				for i := range names {
					held[k] = append(held[k], e.Judged[i*len(held)+k] >= half)
				}
			}
			return held
		}}
	}
	m.Figures = func(episodes []Episode) map[string]float64 {
		means := map[string]float64{}
		for i, name := range names {
			sum, n := 0.0, 0
			for _, e := range episodes {
				each := 1
				if j.ByTurn {
					each = len(e.Turns)
				}
				for _, value := range e.Judged[i*each : (i+1)*each] {
					sum += value
				}
				n += each
			}
			means["verdicts/"+name+"/mean"] = sum / float64(max(n, 1))
		}
		return means
	}
	return m
}

// half is the least value of a judge's component at which it holds, where it counts as a criterion.
const half = 0.5

// judgedTurns are the weighted sums of a verdict by turn: [turns].
func (e Episode) judgedTurns(weights []float64) []float64 {
	out := make([]float64, len(e.Turns))
	for k := range out {
		for i, weight := range weights {
			out[k] += float64(weight * e.Judged[i*len(out)+k]) // rounded, so that no machine fuses it
		}
	}
	return out
}

// parseComponents reads "NAME WEIGHT, NAME WEIGHT"; found is what is wrong.
func parseComponents(written string) (names []string, weights []float64, found string) {
	for part := range strings.SplitSeq(written, ",") {
		fields := strings.Fields(part)
		if len(fields) != 2 {
			return nil, nil, strconv.Quote(strings.TrimSpace(part))
		}
		weight, err := strconv.ParseFloat(fields[1], 64)
		if err != nil || math.Abs(weight) > foreign.MaxReward || math.IsNaN(weight) ||
			len(fields[0]) > 64 || strings.Trim(fields[0], "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
			return nil, nil, strconv.Quote(strings.TrimSpace(part))
		}
		if slices.Contains(names, fields[0]) {
			return nil, nil, strconv.Quote(fields[0]) + " twice"
		}
		names, weights = append(names, fields[0]), append(weights, weight)
	}
	if len(names) > foreign.MaxComponents {
		return nil, nil, strconv.Itoa(len(names)) + " components"
	}
	return names, weights, ""
}
