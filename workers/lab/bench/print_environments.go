package bench

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/reprise-rl/reprise/workers/lab/environments"
)

func printEnvironments(b *strings.Builder, e environments.Speeds) {
	fmt.Fprintf(b, "\nEnvironments, on one core; %s\n\n", pythonText(e.Python))
	table(b, "\ta second\teach\tPython\tratio\trecorded Python\tratio\t", func(w io.Writer) {
		for _, section := range []struct {
			name  string
			rates []environments.Rate
		}{{"made", e.Generation}, {"actions", e.Steps}, {"replayed", e.Replays}} {
			for _, r := range section.rates {
				fmt.Fprintf(w, "%s, %s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Name, section.name, countText(r.PerSecond), eachText(r.PerSecond),
					countText(r.Python), ratioText(r.Ratio), countText(r.Recorded), ratioText(r.RecordedRatio))
			}
		}
	})
	if len(e.Generation) > 0 {
		fmt.Fprintf(b, "\n  %s\n", roomText(e.Generation[0]))
	}
	fmt.Fprintf(b, "  recorded: gym-sokoban and gymnasium on the machine of the project's measurements; a\n  reference, not measured here\n")
	fmt.Fprintf(b, "\nThe turn protocol on one core, with Sokoban's texts and replies of %d tokens\n\n", environments.ReplyTokens)
	table(b, "tokenizer\tfirst prompts a second\t(tokens)\tlater prompts a second\t(tokens)\treplies read a second\tparsed alone\t", func(w io.Writer) {
		for _, t := range e.Text {
			fmt.Fprintf(w, "%s\t%s\t(%.0f)\t%s\t(%.0f)\t%s\t%s\t\n", t.Tokenizer, countText(t.Prompts), t.PromptTokens,
				countText(t.Continuations), t.ContinuationTokens, countText(t.Replies), countText(t.Parses))
		}
	})
	for _, s := range e.Step {
		fmt.Fprintf(b, "\n%s", stepText(s))
	}
}

// pythonText describes the Python that was measured.
func pythonText(p environments.Python) string {
	if p.Version == "" {
		if p.Path != "" {
			return fmt.Sprintf("Python not measured, %s: %s", p.Path, p.Missing)
		}
		return fmt.Sprintf("Python not measured: %s (%s names another)", p.Missing, pythonEnv)
	}
	text := "Python " + p.Version
	for _, name := range environments.PythonPackages {
		if version := p.Packages[name]; version != "" {
			text += ", " + name + " " + version
		}
	}
	if len(p.Packages) > 0 {
		text += ", in turns"
	}
	if p.Missing != "" {
		text += " (" + p.Missing + ")"
	}
	return text
}

// roomText compares the rooms' rate with its goal.
func roomText(r environments.Rate) string {
	if r.Ratio > 0 {
		return fmt.Sprintf("%s: %s times as fast as gym-sokoban (goal: at least %d)", r.Name, ratioText(r.Ratio), environments.RoomGoal)
	}
	return fmt.Sprintf("%s: %s times as fast as gym-sokoban's recorded %s (goal: at least %d); not measured here",
		r.Name, ratioText(r.RecordedRatio), eachText(r.Recorded), environments.RoomGoal)
}

// stepText describes the host's share of an iteration.
func stepText(s environments.HostStep) string {
	turns := make([]string, len(s.TurnSeconds))
	for i, seconds := range s.TurnSeconds {
		turns[i] = strconv.FormatFloat(seconds*1e3, 'f', 0, 64)
	}
	return fmt.Sprintf(`A host's part of an iteration, tokenizer %s: Step for %d members and %d turns, the store in memory
  %.3f s on one core (turns: %s ms) for %d replies of %d tokens
  by calculation, a 0.5B policy at an assumed %s new tokens/s samples them in %.1f s:
  the host's share is %.1f %% (goal: at most %.0f %%); it reaches %.0f %% at %s tokens/s
`, s.Tokenizer, s.Members, s.Turns, s.Seconds, strings.Join(turns, ", "), s.Replies, environments.ReplyTokens,
		countText(s.PolicyRate), s.PolicySeconds, 100*s.Share, 100*environments.ShareGoal, 100*environments.ShareGoal, countText(s.FastestPolicy))
}

// countText formats a count with three digits and separated thousands; "-" for 0.
func countText(n float64) string {
	if n <= 0 {
		return "-"
	}
	if n < 100 {
		return strconv.FormatFloat(n, 'g', 3, 64)
	}
	unit := math.Pow(10, math.Floor(math.Log10(n))-2)
	digits := strconv.FormatFloat(math.Round(n/unit)*unit, 'f', 0, 64)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// eachText formats the time of one of n per second.
func eachText(n float64) string {
	if n <= 0 {
		return "-"
	}
	for _, u := range []struct {
		name string
		in   float64
	}{{"s", 1}, {"ms", 1e3}, {"µs", 1e6}} {
		if each := u.in / n; each >= 1 {
			return strconv.FormatFloat(each, 'g', 3, 64) + " " + u.name
		}
	}
	return strconv.FormatFloat(1e9/n, 'g', 3, 64) + " ns"
}

// ratioText formats a ratio; "-" if there is none.
func ratioText(r float64) string {
	switch {
	case r <= 0:
		return "-"
	case r < 10:
		return strconv.FormatFloat(r, 'f', 1, 64)
	}
	return strconv.FormatFloat(r, 'f', 0, 64)
}
