package mechanism

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Measure gives the figures of all methods, in their order. It takes about a second.
func Measure(ctx context.Context) ([]Method, []Figures, error) {
	lakes := make([]*Lake, len(layouts))
	for i, layout := range layouts {
		l, err := NewLake(layout)
		if err != nil {
			return nil, nil, err
		}
		lakes[i] = l
	}
	methods := Methods()
	judges := make([]*judge, len(methods))
	for i := range methods {
		judges[i] = newJudge(lakes)
	}
	for batch := range Groups / GroupsABatch {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		b, err := Play(lakes, batch)
		if err != nil {
			return nil, nil, fmt.Errorf("batch %d: %w", batch, err)
		}
		for i, m := range methods {
			advantages, err := m.estimate(b)
			if err == nil {
				err = judges[i].add(b, advantages)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("%s (%s), batch %d: %w", m.Name, m.Setting, batch, err)
			}
		}
	}
	figures := make([]Figures, len(methods))
	for i, j := range judges {
		figures[i] = j.figures()
	}
	return methods, figures, nil
}

// indistinct is a unit c of chance: there is nothing in which errors could be measured.
const indistinct = 0.05

// Markdown is the table of the figures.
func Markdown(methods []Method, figures []Figures) string {
	var b strings.Builder
	b.WriteString("| advantage | with | unit c | bias | of it tilt | noise | wrong sign | silent | direction |\n|---|---|---|---|---|---|---|---|---|\n")
	for i, f := range figures {
		errors := "– | – | –"
		if f.Scale > indistinct {
			errors = fmt.Sprintf("%.2f | %.2f | %.1f", f.Bias, f.Tilt, f.Noise)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %.2f | %s | %.0f %% | %.0f %% | %.2f |\n",
			methods[i].Name, methods[i].Setting, f.Scale, errors, 100*f.WrongSign, 100*f.Silent, f.Direction)
	}
	return b.String()
}

// Run prints the table.
func Run(ctx context.Context, out io.Writer) error {
	methods, figures, err := Measure(ctx)
	if err != nil {
		return fmt.Errorf("study of the mechanism: %w", err)
	}
	_, err = io.WriteString(out, Markdown(methods, figures))
	return err
}
