package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/infra/store"
)

// claimTime is how long a start waits for the bucket to say whose runs it has.
const claimTime = 5 * time.Second

// claimAgain is how often a bucket that did not answer is asked again.
const claimAgain = 15 * time.Second

// claim refuses a prefix of the bucket that has the runs of another namespace, and ties one that has none to this worker's. A
// bucket that does not answer keeps no worker from starting, as it keeps none from serving: it is asked again until it answers,
// and then a refusal ends the worker. A process that decides only writes nothing, and does not ask.
func (o Options) claim(ctx context.Context, s store.Store, again time.Duration, fatal chan<- error) error {
	if o.Namespace == "" || !o.Has(RoleHost) && !o.Has(RoleDevice) {
		return nil
	}
	refused, err := o.claimOnce(ctx, s)
	if err == nil || refused {
		return err
	}
	o.Logger.Warn("the bucket does not say whose runs it has; it is asked again", zap.Error(err))
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(again):
			}
			if refused, err := o.claimOnce(ctx, s); err == nil {
				return
			} else if refused {
				fatal <- err
				return
			}
		}
	}()
	return nil
}

// claimOnce asks once; refused says that another answer will not come.
func (o Options) claimOnce(ctx context.Context, s store.Store) (refused bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, claimTime)
	defer cancel()
	me := store.Owner{Namespace: o.Namespace}
	// A server that does not say is not told from another one of the namespace.
	if about, err := o.Client.WorkflowService().GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{}); err == nil {
		me.Cluster = about.GetClusterId()
	}
	owner, fresh, err := store.Claim(ctx, s, me)
	switch {
	case errors.Is(err, store.ErrOtherNamespace) || errors.Is(err, store.ErrInvalid):
		return true, fmt.Errorf("worker: %w", err)
	case err != nil:
		return false, err
	case fresh:
		o.Logger.Warn("another server of this namespace served this prefix of the bucket before: well if it lost its database; if it "+
			"still serves, give one of the two another prefix (--s3-prefix)",
			zap.String("namespace", me.Namespace), zap.String("before", owner.Cluster), zap.String("now", me.Cluster))
	}
	return false, nil
}
