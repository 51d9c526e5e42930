package runs

import (
	"context"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"
)

// lookups is how many runs are looked up at once.
const lookups = 8

// AddPending looks those of the runs up that have not ended, and notes of each the activity that is tried again most often. A run that
// cannot be looked up, as one that ends meanwhile, stays as it is. by decodes what a codec has encoded.
func AddPending(ctx context.Context, c client.Client, all []Run, by converter.DataConverter) error {
	var group errgroup.Group
	group.SetLimit(lookups)
	for i, r := range all {
		if r.Ended != nil {
			continue
		}
		group.Go(func() error {
			described, err := c.DescribeWorkflowExecution(ctx, r.ID, "")
			if err != nil {
				return ctx.Err()
			}
			if pending := Retried(described.GetPendingActivities(), by); len(pending) > 0 {
				all[i].Pending = &pending[0]
			}
			return nil
		})
	}
	return group.Wait()
}
