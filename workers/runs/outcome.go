package runs

import (
	"context"
	"fmt"
	"sync"

	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/activities"
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
	if t.Of == 1 {
		return fmt.Sprintf("%d of 1 trial", t.Done)
	}
	return fmt.Sprintf("%d of %d trials", t.Done, t.Of)
}

// results is how many results are asked for at once.
const results = 8

// AddOutcomes gives the sweeps and evaluations among runs that are done what their results
// say: how many trials did all their iterations, and what the first suite measured. What a
// server or this process cannot read is left out.
func AddOutcomes(ctx context.Context, c client.Client, all []Run) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var group sync.WaitGroup
	free := make(chan struct{}, results)
	for i := range all {
		r := &all[i]
		if r.State != "done" || r.Kind != "Sweep" && r.Kind != "Evaluate" {
			continue
		}
		group.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			r.addOutcome(ctx, c)
		})
	}
	group.Wait()
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
