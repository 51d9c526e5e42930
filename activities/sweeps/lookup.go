package sweeps

import (
	"context"
	"fmt"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

// LookUp asks the server for the states of trials that cannot report any longer, because
// somebody terminated them or the sweep was not running. A trial that the server has
// forgotten, because its workflow was deleted or is past the namespace's retention, is
// looked up in the store.
func (s *Sweeps) LookUp(ctx context.Context, in activities.LookUpInput) (activities.LookUpResult, error) {
	defer run.Heartbeat(ctx)()
	var out activities.LookUpResult
	for _, id := range in.IDs {
		f, err := s.Look(ctx, id)
		if err == nil && f.State == "" {
			f, err = s.forgotten(ctx, id)
		}
		if err != nil {
			run.Edge(ctx, &err, "look up trial %s", id)
			return activities.LookUpResult{}, err
		}
		out.Found = append(out.Found, f)
	}
	return out, nil
}

// forgotten is what the store knows of a trial: it is done if all iterations of its spec
// are committed. Why another ended, nobody knows any more.
func (s *Sweeps) forgotten(ctx context.Context, id string) (activities.Found, error) {
	t, _, err := run.WrittenSpec(ctx, s.Store, id)
	if err != nil || t == nil {
		return activities.Found{}, err
	}
	heads, err := s.heads(ctx, id, false)
	if err != nil {
		return activities.Found{}, err
	}
	committed := 0
	if len(heads) > 0 {
		committed = heads[0].Manifest.Iteration + 1
	}
	if committed >= t.Iterations {
		return activities.Found{State: sweep.Done}, nil
	}
	return activities.Found{State: sweep.Failed, Reason: fmt.Sprintf(
		"the server has forgotten its workflow; the store has %d of its %d iterations", committed, t.Iterations)}, nil
}
