package gpu

import (
	"context"
	"fmt"
	"strings"

	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/hf/families"
)

// exact asks whether a row's bits depend on how many rows are computed at once, piece by piece of Qwen2.5-0.5B, and whether the sampler's
// log-probs and entropies are the trainer's (policy.exact). Where they are not, the pieces say what a card would need: parts with other
// settings of its libraries ask the same, the cheapest first.
func exact(ctx context.Context, m *machine) error {
	d, err := m.open()
	if err != nil {
		return err
	}
	defer d.Close()
	c, rows, err := m.exactSubject()
	if err != nil {
		return err
	}
	for _, dtype := range []string{"bfloat16", "float32"} {
		found, err := d.CheckExact(ctx, c, dtype, rows)
		if err != nil {
			return err
		}
		if err := m.found(Figure{Name: dtype + ", tokens that differ", Value: float64(found.Differing), Unit: fmt.Sprintf("of %d", found.Tokens)}); err != nil {
			return err
		}
		for _, p := range found.Pieces {
			told := "same bits in " + strings.Join(p.As, ", ")
			if len(p.Differing) > 0 {
				told = fmt.Sprintf("other bits in %s than in %s", strings.Join(p.Differing, ", "), p.As[0])
			}
			if err := m.text(dtype+", "+p.Name, told); err != nil {
				return err
			}
		}
	}
	return nil
}

// exactSubject is a layer of Qwen2.5-0.5B, and the numbers of rows.
func (m *machine) exactSubject() (model.Config, []int, error) {
	if m.Tiny {
		c, _ := m.starterShape()
		return c, []int{2, 16}, nil
	}
	known, err := families.ByName("qwen2.5-0.5b")
	if err != nil {
		return model.Config{}, nil, err
	}
	c := known.Config
	c.Layers = 1 // all are alike
	return c, []int{2, 8, 64, 512, 8192}, nil
}

// exactPolicy is the part of a run's spec that says whether the sampler's numbers are the trainer's: no card has been asked yet.
func (m *machine) exactPolicy() map[string]any { return map[string]any{"exact": m.Tiny} }
