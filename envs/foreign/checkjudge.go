package foreign

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/reprise-rl/reprise/infra/strict"
)

// JudgeCheck says how a judge is checked.
type JudgeCheck struct {
	// Episodes are what it is asked about, with their IDs.
	Episodes []Scored
	// PerCall is the most episodes of a call, 1 to MaxEpisodes.
	PerCall int
	// FailedShare is the largest share of episodes that may stay without a verdict.
	FailedShare float64
	// Report gets each finding as soon as it is known; may be nil.
	Report func(Finding)
}

// CheckJudge asks first and second, two processes of one judge, about episodes: whether all get verdicts that a run
// takes, and whether they are the same again, one by one, and in the other process. A judge need not be a pure function, so
// verdicts that differ from one time to the next are a note. A judge that answers the same each time, and otherwise
// alone or in another process, keeps something between requests: that is a problem.
func CheckJudge(ctx context.Context, first, second Judge, o JudgeCheck) ([]Finding, error) {
	var findings []Finding
	add := func(part, problem, note string) {
		f := Finding{Part: part, Problem: problem, Note: note}
		findings = append(findings, f)
		if o.Report != nil && ctx.Err() == nil {
			o.Report(f)
		}
	}
	if len(o.Episodes) == 0 || o.PerCall < 1 || o.PerCall > MaxEpisodes {
		return nil, fmt.Errorf("check a judge: %d episodes, %d a call, want at least 1, and 1 to %d a call", len(o.Episodes), o.PerCall, MaxEpisodes)
	}
	start := time.Now()
	verdicts, err := first.all(ctx, o.Episodes, o.PerCall)
	if err != nil {
		add("verdicts", err.Error(), "")
		return findings, ctx.Err()
	}
	took := time.Since(start)
	add("verdicts", "", fmt.Sprintf("%d episodes, %.1f ms each%s", len(verdicts), float64(took.Microseconds())/1000/float64(len(verdicts)), by(verdicts)))
	failed, why := failures(o.Episodes, verdicts)
	problem := ""
	if float64(failed) > o.FailedShare*float64(len(verdicts)) {
		problem = fmt.Sprintf("%d of %d episodes have none, and failed_share is %v: a run would pause; the first: %s", failed, len(verdicts), o.FailedShare, why)
	}
	add("every episode has a verdict", problem, fmt.Sprintf("%d of %d", len(verdicts)-failed, len(verdicts)))
	if failed == len(verdicts) {
		return findings, ctx.Err()
	}
	for i, name := range first.Components {
		add("component "+name, "", first.spread(verdicts, i))
	}
	again, err := first.all(ctx, o.Episodes, o.PerCall)
	differ, where := first.compared(o.Episodes, verdicts, again)
	switch {
	case err != nil:
		add("the same verdicts twice", err.Error(), "")
		return findings, ctx.Err()
	case differ > 0:
		add("the same verdicts twice", "", fmt.Sprintf("no: %d of %d differ, as %s; a run records the first, and two runs of one spec differ", differ, len(verdicts), where))
		return findings, ctx.Err()
	}
	add("the same verdicts twice", "", "")
	for _, way := range []struct {
		part    string
		judge   Judge
		perCall int
		advice  string
	}{
		{"the same verdicts one by one", first, 1, "a verdict must not depend on the other episodes of a call"},
		{"the same verdicts from another process", second, o.PerCall, "a verdict must not depend on what the process did before"},
	} {
		got, err := way.judge.all(ctx, o.Episodes, way.perCall)
		differ, where := first.compared(o.Episodes, verdicts, got)
		problem := ""
		if err != nil {
			problem = err.Error()
		} else if differ > 0 {
			problem = fmt.Sprintf("%d of %d differ, as %s; %s", differ, len(verdicts), where, way.advice)
		}
		add(way.part, problem, "")
	}
	return findings, ctx.Err()
}

// all asks about episodes, so many in a call.
func (j Judge) all(ctx context.Context, episodes []Scored, perCall int) ([]Verdict, error) {
	var out []Verdict
	for chunk := range slices.Chunk(episodes, perCall) {
		verdicts, err := j.Score(ctx, chunk)
		if err != nil {
			return nil, err
		}
		out = append(out, verdicts...)
	}
	return out, nil
}

// by says what judged; "" if no verdict says so.
func by(verdicts []Verdict) string {
	for _, v := range verdicts {
		if v.Err == nil && v.Prompt != "" {
			return fmt.Sprintf(", by %s with the prompt %s…", strict.Quote(v.Model), v.Prompt[:12])
		}
		if v.Err == nil {
			return fmt.Sprintf(", by %s", strict.Quote(v.Model))
		}
	}
	return ""
}

// failures counts the episodes without a verdict, and says which is the first and why.
func failures(episodes []Scored, verdicts []Verdict) (n int, first string) {
	for i, v := range verdicts {
		if v.Err == nil {
			continue
		}
		if n++; n == 1 {
			first = fmt.Sprintf("episode %d (%s): %s", i, named(episodes[i]), v.Err)
		}
	}
	return n, first
}

// named is an episode in a few words.
func named(e Scored) string {
	reply := ""
	if len(e.Turns) > 0 {
		reply = e.Turns[len(e.Turns)-1].Reply
	}
	return fmt.Sprintf("reward %v, last reply %s", e.Reward, strict.Quote(strict.Shorten(reply)))
}

// of are the values of a component: one, or one for each turn.
func (j Judge) of(v Verdict, component int) []float64 {
	each := len(v.Values) / len(j.Components)
	return v.Values[component*each : (component+1)*each]
}

// spread says how the values of a component lie.
func (j Judge) spread(verdicts []Verdict, component int) string {
	least, most, sum, n := math.Inf(1), math.Inf(-1), 0.0, 0
	for _, v := range verdicts {
		if v.Err != nil {
			continue
		}
		for _, value := range j.of(v, component) {
			least, most, sum, n = min(least, value), max(most, value), sum+value, n+1
		}
	}
	note, each := fmt.Sprintf("%.4g to %.4g, mean %.4g", least, most, sum/float64(n)), "episode"
	if j.ByTurn {
		note, each = fmt.Sprintf("%s of %d turns", note, n), levelTurn
	}
	if least == most && n > 1 {
		note += ": the same for every " + each + ", so that it teaches nothing about these"
	}
	return note
}

// compared counts the episodes whose verdicts differ, and shows the first.
func (j Judge) compared(episodes []Scored, want, got []Verdict) (n int, first string) {
	for i := range min(len(want), len(got)) {
		if (want[i].Err == nil) == (got[i].Err == nil) && slices.Equal(want[i].Values, got[i].Values) {
			continue
		}
		if n++; n == 1 {
			first = fmt.Sprintf("episode %d (%s): %s, then %s", i, named(episodes[i]), j.valued(want[i]), j.valued(got[i]))
		}
	}
	return n, first
}

// valued is a verdict in a few words.
func (j Judge) valued(v Verdict) string {
	if v.Err != nil {
		return "none"
	}
	parts := make([]string, len(j.Components))
	for i, name := range j.Components {
		parts[i] = name
		for _, value := range j.of(v, i) {
			parts[i] += fmt.Sprintf(" %v", value)
		}
	}
	return strings.Join(parts, ", ")
}

// MadeUp are made-up episodes to check a judge with: solved ones and failed ones, short and long, and replies as
// a policy writes them that has learned little: empty, without an end, in other scripts, with JSON and quotes.
func MadeUp() []Scored {
	const rules = "Find a number from 1 to 9."
	turn := func(observation, reply string, reward float64, actions ...string) ScoredTurn {
		return ScoredTurn{Observation: observation, Reply: reply, Actions: append([]string{}, actions...), Reward: reward}
	}
	think := func(thought, action string) string {
		return "<think> " + thought + " </think><answer> " + action + " </answer>"
	}
	episodes := []Scored{
		{Turns: []ScoredTurn{turn("Guess.", think("The middle first.", "5"), 1, "5")}, Observation: "Found.", Reward: 1, Success: true},
		{Turns: []ScoredTurn{turn("Guess.", think("The middle first.", "5"), -0.1, "5"), turn("Higher.", think("It is 6 to 9.", "7"), 1, "7")}, Observation: "Found.", Reward: 0.9, Success: true},
		{Turns: []ScoredTurn{turn("Guess.", think("I do not know.", "1"), -0.1, "1"), turn("Higher.", think("I do not know.", "1"), -0.1, "1")}, Observation: "Higher.", Reward: -0.2},
		{Turns: []ScoredTurn{turn("Guess.", think("A word.", "seven"), 0)}, Observation: "Guess."},
		{Turns: []ScoredTurn{turn("Guess.", "", 0)}, Observation: "Guess."},
		{Turns: []ScoredTurn{turn("Guess.", "<think> and so and so and so", 0)}, Observation: "Guess."},
		{Turns: []ScoredTurn{turn("Guess.", think(`Ça va? 数字は五 {"score": 1} "quoted" \ `+"\u2028\t", "5"), -0.1, "5")}, Observation: "Lower.", Reward: -0.1},
		{Turns: []ScoredTurn{turn("Guess.", think(strings.Repeat("one two three ", 500), "9"), -0.1, "9")}, Observation: "Lower.", Reward: -0.1},
	}
	for i := range episodes {
		episodes[i].Environment, episodes[i].Instructions = "guess", rules
		episodes[i].Identify()
	}
	return episodes
}
