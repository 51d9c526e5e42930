package runs

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/infra/human"
)

// Trials are a sweep's, in numbers.
type Trials struct {
	// Done are those that did all their iterations. Of is how many the sweep has; while it
	// runs, those that it has begun.
	Done int `json:"done"`
	Of   int `json:"of"`
}

// String is "18 of 18 trials".
func (t Trials) String() string {
	return fmt.Sprintf("%d of %s", t.Done, human.Plural(t.Of, "trial"))
}

// AddOutcomes gives the sweeps and evaluations among runs that are done what their results
// say: how many trials did all their iterations, and what the first suite measured. What a
// server or this process cannot read is left out.
func AddOutcomes(ctx context.Context, c client.Client, all []Run) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(lookups)
	for i := range all {
		r := &all[i]
		if r.State != "done" || r.Kind != "Sweep" && r.Kind != "Evaluate" {
			continue
		}
		group.Go(func() error {
			r.addOutcome(ctx, c)
			return nil
		})
	}
	_ = group.Wait() // none fails
}

func (r *Run) addOutcome(ctx context.Context, c client.Client) {
	var result struct {
		Counts struct {
			Trials int `json:"trials"`
			Done   int `json:"done"`
		} `json:"counts"`
		Evaluations []struct {
			Metrics activities.Metrics `json:"metrics"`
		} `json:"evaluations"`
	}
	if err := c.GetWorkflow(ctx, r.ID, "").Get(ctx, &result); err != nil {
		return
	}
	if r.Kind == "Sweep" {
		r.Trials = &Trials{Done: result.Counts.Done, Of: result.Counts.Trials}
		return
	}
	if len(result.Evaluations) == 0 {
		return
	}
	metrics := result.Evaluations[0].Metrics
	for name, to := range map[string]**float64{"reward/mean": &r.Reward, "success/mean": &r.Success} {
		if v, ok := metrics[name]; ok && v.Finite() {
			*to = new(float64(v))
		}
	}
}

// trialsOf counts the trials that a list has of a sweep; nil if it has none.
func trialsOf(sweep string, trials map[string]Run) *Trials {
	t := Trials{}
	for _, trial := range trials {
		if trial.Sweep == sweep {
			t.Of++
			if trial.State == "done" {
				t.Done++
			}
		}
	}
	if t.Of == 0 {
		return nil
	}
	return &t
}
