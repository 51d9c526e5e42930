package workflows

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
)

// A worker that does not have the run's method decides nothing: its workflow task fails, and waits for a worker that has
// it.
func TestNotLinked(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*stage)
		want   string
	}{
		"an algorithm": {func(s *stage) { s.plan.Settings.Credit.Algorithm = "theirs" }, `credit.algorithm`},
		"a search":     {func(s *stage) { s.plan.Search = "theirs" }, `rollout.search`},
		"a surrogate":  {func(s *stage) { s.plan.Settings.Update.Surrogate = "theirs" }, `update.surrogate`},
		"an order":     {func(s *stage) { s.plan.Settings.Update.Passes.Order = "theirs" }, `update.passes.order`},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stage{plan: testPlan()}
			c.change(s)
			p := newPlay(t, s)
			p.train(nil)
			err := p.GetWorkflowError()
			require.ErrorContains(t, err, c.want+` "theirs" is not linked into this program, which has: `)
			var panicked *temporal.PanicError
			require.ErrorAs(t, err, &panicked, "a workflow task that fails, not the run")
			require.Equal(t, fields("Resolve"), s.names())
		})
	}
}
