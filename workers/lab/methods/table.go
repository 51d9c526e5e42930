package methods

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/model/statistics"
)

// confidence is that of all intervals of means over seeds, by Student's distribution.
const confidence = 0.95

// result is what the seeds of a method gave.
type result struct {
	method Method
	runs   []Record
	// before is the warm start's success, and success is the last version's.
	before, success statistics.Estimate
}

// ended are the records of the runs that are compared: those of the most tokens, or none where rates are still tried.
func ended(records []Record) []Record {
	most := 0
	for _, r := range records {
		most = max(most, r.Until)
	}
	return slices.DeleteFunc(slices.Clone(records), func(r Record) bool { return r.Until < most })
}

// results are those of the methods that have records, in the order of Methods.
func results(records []Record) []result {
	records = ended(records)
	var out []result
	for _, m := range Methods {
		r := result{method: m}
		var first, last []float64
		for _, record := range records {
			if record.Method == m.Name {
				r.runs, first, last = append(r.runs, record), append(first, record.first()), append(last, record.last())
			}
		}
		if len(r.runs) > 0 {
			r.before, r.success = statistics.Mean(first, confidence), statistics.Mean(last, confidence)
			out = append(out, r)
		}
	}
	return out
}

// plainOf is the result of the plain method from a method's warm start, or of the first that has records.
func plainOf(all []result, m Method) result {
	return all[slices.IndexFunc(all, func(r result) bool { return r.method.Start == m.Start })]
}

// above reports whether a's interval lies above b's, both over the seeds that both methods have: the others may be of
// another device, whose warm start has other bits. An interval of one seed is not known, so it lies above nothing; nor
// does that of a method from another kind of warm start.
func above(a, b result) bool {
	return a.method.Start == b.method.Start && a.over(b).Low > b.over(a).High
}

// over is the success of the last version over the seeds that another method has too.
func (r result) over(other result) statistics.Estimate {
	var last []float64
	for _, run := range r.runs {
		if slices.ContainsFunc(other.runs, func(o Record) bool { return o.Seed == run.Seed }) {
			last = append(last, run.last())
		}
	}
	return statistics.Mean(last, confidence)
}

// beyond is the success of the last version above another method's, paired by the seeds that both have.
func (r result) beyond(other result) statistics.Estimate {
	var gaps []float64
	for _, run := range r.runs {
		for _, o := range other.runs {
			if o.Seed == run.Seed {
				gaps = append(gaps, run.last()-o.last())
			}
		}
	}
	return statistics.Mean(gaps, confidence)
}

// table renders records as Markdown: what each method reached, which differ, which learning rates were tried, and what a
// search of the first version gives beside the plain rollouts of the same version, seed by seed.
func (t task) table(records []Record) string {
	if len(records) == 0 {
		return ""
	}
	all := results(records)
	var b strings.Builder
	fmt.Fprintf(&b, "Success of the last version on fixed instances, without a search, after %d sampled tokens: the mean over seeds with\nits %g %% interval by Student's distribution. Methods whose intervals overlap, over the seeds that both have, are called\nequal.",
		all[0].runs[0].Until, 100*confidence)
	if len(t.Starts) > 0 {
		fmt.Fprintf(&b, " Methods with %s have another warm start and are compared with each other only.", strings.Join(slices.Sorted(maps.Keys(t.Starts)), " or "))
	}
	b.WriteString("\n\n")
	b.WriteString("| method | learning rate | seeds | iterations | warm start | success | above the first, seed by seed | above | below | by seed, % |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range all {
		var over, under []string
		for _, other := range all {
			if above(r, other) {
				over = append(over, other.method.Title)
			}
			if above(other, r) {
				under = append(under, other.method.Title)
			}
		}
		beyond := "–"
		if plain := plainOf(all, r.method); plain.method != r.method {
			beyond = interval(r.beyond(plain), 100, 1, "")
		}
		iterations := statistics.Mean(of(r.runs, func(r Record) float64 { return float64(len(r.Tokens)) }), confidence)
		fmt.Fprintf(&b, "| %s | %g | %d | %.0f | %.1f %% | %s | %s | %s | %s | %s |\n", r.method.Title, r.runs[0].Rate, len(r.runs), iterations.Mean, 100*r.before.Mean,
			interval(r.success, 100, 1, " %"), beyond, words(over), words(under), bySeed(r.runs))
	}
	t.writeRates(&b, records)
	searches := searchesOf(all)
	if len(searches) == 0 {
		return b.String()
	}
	b.WriteString("\nThe first rollout, by the warm start: the mean reward of the kept trajectories minus the mean reward of the plain rollout\nwith the same seed. A plain rollout has the same mean at any number of tokens. Tokens are those sampled for a trajectory that is kept.\n\n")
	b.WriteString("| method | reward above plain | tokens a trajectory | plain |\n|---|---|---|---|\n")
	for _, s := range searches {
		fmt.Fprintf(&b, "| %s | %s | %.1f | %.1f |\n", s.method.Title, interval(s.reward, 1, 3, ""), s.tokens.Mean, s.plain.Mean)
	}
	return b.String()
}

// writeRates writes what each method reached with each learning rate that was tried.
func (t task) writeRates(b *strings.Builder, records []Record) {
	least := slices.MinFunc(records, func(a, b Record) int { return a.Until - b.Until }).Until
	if least == ended(records)[0].Until {
		return
	}
	fmt.Fprintf(b, "\nThe learning rates that were tried for %d sampled tokens on %d seeds: the mean success at the end.\n\n| method |", least, triedSeeds)
	for _, rate := range t.Rates {
		fmt.Fprintf(b, " %g |", rate)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(t.Rates)) + "\n")
	for _, m := range Methods {
		if _, ok := better(records, m.Name, t.Rates, least); !ok {
			continue
		}
		fmt.Fprintf(b, "| %s |", m.Title)
		for _, rate := range t.Rates {
			var last []float64
			for _, r := range records {
				if r.Method == m.Name && r.Rate == rate && r.Until == least {
					last = append(last, r.last())
				}
			}
			fmt.Fprintf(b, " %.1f %% |", 100*statistics.Mean(last, confidence).Mean)
		}
		b.WriteByte('\n')
	}
}

// searched is what a method's first rollouts gave beside those of the plain method with the same seeds.
type searched struct {
	method        Method
	reward        statistics.Estimate
	tokens, plain statistics.Estimate
}

// searchesOf are those of the methods whose first rollouts differ from the plain method's in tokens.
func searchesOf(all []result) []searched {
	if all[0].method != Methods[0] {
		return nil
	}
	var out []searched
	for _, r := range all[1:] {
		var reward, tokens, plain []float64
		for _, run := range r.runs {
			for _, p := range all[0].runs {
				if p.Seed == run.Seed && p.Tokens[0] != run.Tokens[0] && r.method.Start == "" {
					reward = append(reward, float64(run.Rewards[0]-p.Rewards[0]))
					tokens = append(tokens, float64(run.Tokens[0])/float64(run.Trajectories[0]))
					plain = append(plain, float64(p.Tokens[0])/float64(p.Trajectories[0]))
				}
			}
		}
		if len(reward) > 0 {
			out = append(out, searched{r.method, statistics.Mean(reward, confidence), statistics.Mean(tokens, confidence),
				statistics.Mean(plain, confidence)})
		}
	}
	return out
}

// bySeed are the runs' seeds, each with the success of the last version.
func bySeed(runs []Record) string {
	var each []string
	for _, run := range runs {
		each = append(each, fmt.Sprintf("%d: %.1f", run.Seed, 100*run.last()))
	}
	return strings.Join(each, ", ")
}

func of(runs []Record, figure func(Record) float64) []float64 {
	out := make([]float64, len(runs))
	for i, r := range runs {
		out[i] = figure(r)
	}
	return out
}

// interval writes an estimate, scaled.
func interval(e statistics.Estimate, scale float64, digits int, unit string) string {
	if math.IsNaN(e.Low) {
		return fmt.Sprintf("%.*f%s", digits, scale*e.Mean, unit)
	}
	return fmt.Sprintf("%.*f ± %.*f%s", digits, scale*e.Mean, digits, scale*(e.High-e.Mean), unit)
}

func words(names []string) string {
	if len(names) == 0 {
		return "–"
	}
	return strings.Join(names, ", ")
}
