package mechanism

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Measure gives the figures of all methods, in their order. It takes about a second.
func Measure(ctx context.Context) ([]Method, []Figures, error) {
	lakes, err := newLakes()
	if err != nil {
		return nil, nil, err
	}
	methods, err := Methods()
	if err != nil {
		return nil, nil, err
	}
	judges, plays := make([]*judge, len(methods)), map[string]way{}
	for i, m := range methods {
		judges[i] = newJudge(lakes)
		if plays[m.Play] == nil {
			plays[m.Play] = ways[m.Play]()
		}
	}
	for batch := range Groups / GroupsABatch {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		played := map[string]Batch{}
		for name, play := range plays {
			if played[name], err = play(lakes, batch); err != nil {
				return nil, nil, fmt.Errorf("batch %d, %q: %w", batch, name, err)
			}
		}
		for i, m := range methods {
			advantages, err := m.estimate(played[m.Play])
			if err == nil {
				err = judges[i].add(played[m.Play], advantages)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("%s (%s), batch %d: %w", m.Credit.Algorithm, m.Setting, batch, err)
			}
		}
	}
	figures := make([]Figures, len(methods))
	for i, j := range judges {
		figures[i] = j.figures()
		figures[i].Tokens = float64(j.tokens) / float64(judges[0].tokens) // the first plays plainly
	}
	return methods, figures, nil
}

// newLakes are the lakes of the study.
func newLakes() ([]*Lake, error) {
	lakes := make([]*Lake, len(layouts))
	for i, layout := range layouts {
		l, err := NewLake(layout)
		if err != nil {
			return nil, err
		}
		lakes[i] = l
	}
	return lakes, nil
}

// indistinct is a unit c of chance: there is nothing in which errors could be measured.
const indistinct = 0.05

// Markdown is the table of the figures.
func Markdown(methods []Method, figures []Figures) string {
	var b strings.Builder
	b.WriteString("| advantage | with | unit c | bias | of it tilt | noise | wrong sign | silent | direction | tokens |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for i, f := range figures {
		errors := "– | – | –"
		if f.Scale > indistinct {
			errors = fmt.Sprintf("%.2f | %.2f | %.1f", f.Bias, f.Tilt, f.Noise)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %.2f | %s | %.0f %% | %.0f %% | %.2f | %.1f |\n",
			methods[i].Credit.Algorithm, methods[i].Setting, f.Scale, errors, 100*f.WrongSign, 100*f.Silent, f.Direction, f.Tokens)
	}
	return b.String()
}

// Run prints the tables.
func Run(ctx context.Context, out io.Writer) error {
	methods, figures, err := Measure(ctx)
	if err != nil {
		return fmt.Errorf("study of the mechanism: %w", err)
	}
	gains, err := MeasureSearches(ctx)
	if err != nil {
		return fmt.Errorf("study of searches: %w", err)
	}
	_, err = io.WriteString(out, Markdown(methods, figures)+"\n"+SearchMarkdown(gains))
	return err
}
