package iteration

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// What is counted are the calls of the order, worked by hand for some plans.
func TestCount(t *testing.T) {
	two := []activities.PlanSuite{{Name: "near", Turns: 2}, {Name: "far", Turns: 1}}
	for name, test := range map[string]struct {
		change func(*activities.Plan)
		want   Counts
	}{
		// Generate, Step, Select, Score, Credit, Update, Commit.
		"one turn": {func(*activities.Plan) {}, Counts{Iteration: 7, Snapshot: 1, Diagnosis: 1}},
		// Two more for each turn; an evaluation has its turns and Measure, a suite.
		"three turns": {func(p *activities.Plan) { p.Turns, p.Suites = 3, two }, Counts{Iteration: 11, Snapshot: 1, Evaluation: 5 + 3, Diagnosis: 1}},
		// The rollout's beginning and each turn are asked about.
		"foreign, three turns": {func(p *activities.Plan) { p.Turns, p.Foreign = 3, true }, Counts{Iteration: 15, Snapshot: 1, Diagnosis: 1}},
		// The calls of each turn are answered.
		"tools, three turns": {func(p *activities.Plan) { p.Turns, p.Tools = 3, true }, Counts{Iteration: 14, Snapshot: 1, Diagnosis: 1}},
		// The calls of each turn are taken and answered, the ends are taken, and turns are made of the calls; Select, Score, Credit,
		// Update, Commit. A suite has its turns, and Measure.
		"agent, three turns": {func(p *activities.Plan) {
			p.Turns, p.Agent, p.Suites = 3, true, []activities.PlanSuite{{Name: "near", Turns: 2, Agent: true}}
		}, Counts{Iteration: 2*3 + 2 + 5, Snapshot: 1, Evaluation: 2*2 + 2 + 1, Diagnosis: 1}},
		// What other workers sample by, and three blocks of 6 rows for each of two turns.
		"blocks": {func(p *activities.Plan) { p.Turns, p.Workers, p.BlockRows = 2, 2, 6 }, Counts{Iteration: 7 + 2 + 1 + 6, Snapshot: 1, Diagnosis: 1}},
		// 16 rows in four pieces of 5, Score in 3, Update in 6, Diagnose in 4; two suites of 8
		// rows.
		"pieces": {func(p *activities.Plan) {
			p.Suites = []activities.PlanSuite{{Name: "near", Turns: 1, Rows: 8}, {Name: "far", Turns: 1, Rows: 4}}
		}, Counts{Iteration: 7 + 3 + 2 + 5, Snapshot: 3, Evaluation: (2 + 2) + (1 + 2), Diagnosis: 4}},
		// The verdicts of a judge; where the run judges itself, its questions before, and its answers in pieces of 5.
		"judge": {func(p *activities.Plan) { p.Judged = true }, Counts{Iteration: 7 + 1, Snapshot: 1, Diagnosis: 1}},
		"pieces of its own judge": {func(p *activities.Plan) { p.Judged, p.Questions = true, 16 },
			Counts{Iteration: 7 + 3 + 2 + 5 + 2 + 4, Snapshot: 3, Diagnosis: 4}},
		// Two rounds of a rollout for two iterations. The second has what was rolled out,
		// selected and scored: Credit, Update, Commit are left.
		"online 2": {func(p *activities.Plan) { p.Freshness = spec.Freshness{Online: 2, Reuse: 1} }, Counts{Iteration: (9 + 3) / 2., Snapshot: 1, Diagnosis: 1}},
		// Score, Credit and Update again for each turn before the last.
		"passes":  {func(p *activities.Plan) { p.Turns, p.Settings.Update.Passes.Order = 3, "turns_reversed" }, Counts{Iteration: 11 + 2*3, Snapshot: 1, Diagnosis: 1}},
		"reuse 3": {func(p *activities.Plan) { p.Freshness = spec.Freshness{Online: 1, Reuse: 3} }, Counts{Iteration: (7 + 3 + 3) / 3., Snapshot: 1, Diagnosis: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			pieces := spec.Pieces{}
			if strings.HasPrefix(name, "pieces") {
				pieces = spec.Pieces{GenerateRows: 5, Score: 3, Update: 6, Diagnose: 4, Snapshot: 3}
			}
			plan := activities.Plan{Turns: 1, Rows: 16, Settings: settings(""), Diagnostics: spec.Diagnostics{Every: 5, Samples: 2}}
			test.change(&plan)
			counts, err := Count(plan, pieces)
			require.NoError(t, err)
			require.InDelta(t, test.want.Iteration, counts.Iteration, 1e-12)
			counts.Iteration = test.want.Iteration
			require.Equal(t, test.want, counts)
		})
	}
}
