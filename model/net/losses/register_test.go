package losses

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/model/batch"
	"github.com/reprise-rl/reprise/model/loss"
	"github.com/reprise-rl/reprise/model/loss/terms"
)

// A surrogate of somebody else has its place behind the others, whose programs stay as they are.
func TestRegister(t *testing.T) {
	table := terms.Table
	t.Cleanup(func() {
		terms.Table = table
		delete(registered[terms.Surrogate], "plain")
	})
	plain := func(x Tokens) (value, slope, bound *graph.Node) {
		value = graph.Neg(graph.Mul(x.Ratio, x.Column(batch.Advantages)))
		return value, value, graph.NotEqual(x.Ratio, x.Ratio)
	}
	entry := terms.Term{Name: "plain", Kind: terms.Surrogate, Doc: "the ratio alone", Knobs: []terms.Knob{{Name: "plainness", Default: 1}}}
	var before []terms.Layout
	for _, of := range terms.Of(terms.Surrogate) {
		before = append(before, terms.Selection{Surrogate: loss.Surrogate(of.Name), Guards: terms.OffPolicy}.PolicyLayout())
	}

	require.NoError(t, Register(entry, plain))
	own := terms.Selection{Surrogate: "plain"}
	require.NoError(t, own.Check())
	require.NotPanics(t, func() { find[surrogate]((&objective{of: own}).selected(terms.Surrogate)[0]) })
	require.GreaterOrEqual(t, own.PolicyLayout().Knob("plainness"), 0)
	for i, of := range terms.Of(terms.Surrogate)[:len(before)] {
		require.Equal(t, before[i], terms.Selection{Surrogate: loss.Surrogate(of.Name), Guards: terms.OffPolicy}.PolicyLayout(), of.Name)
	}

	for name, c := range map[string]struct {
		change func(*terms.Term)
		want   string
	}{
		"a name twice":       {func(e *terms.Term) { e.Name = string(loss.Clip) }, `surrogate "clip" is there already`},
		"a name in words":    {func(e *terms.Term) { e.Name = "Two words" }, "needs a name"},
		"another kind":       {func(e *terms.Term) { e.Kind = terms.Guard }, "is no surrogate"},
		"no doc":             {func(e *terms.Term) { e.Doc = "" }, "has no Doc"},
		"metrics":            {func(e *terms.Term) { e.Metrics = []terms.Metric{{Name: "plain"}} }, "has metrics"},
		"a field of a spec":  {func(e *terms.Term) { e.Knobs = []terms.Knob{{Name: "own", Doc: "own"}} }, "no Doc"},
		"a knob of another":  {func(e *terms.Term) { e.Knobs = []terms.Knob{{Name: terms.RatioCap}} }, "which is there already"},
		"a program's column": {func(e *terms.Term) { e.Knobs = []terms.Knob{{Name: "own", Packing: terms.Always}} }, "not its own"},
	} {
		e := entry
		e.Name, e.Knobs = "other", nil
		c.change(&e)
		n := len(terms.Table)
		require.ErrorContains(t, Register(e, plain), c.want, name)
		require.Len(t, terms.Table, n, name)
	}
	require.ErrorContains(t, Register(terms.Term{Name: "other", Kind: terms.Surrogate, Doc: "other"}, nil), "no computation")
}
