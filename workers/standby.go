package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.uber.org/zap"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/store"
)

const (
	// standbyEvery is the time between two looks at what other runs have committed. Each prepareEvery-th look is also for their
	// programs.
	standbyEvery = 2 * time.Second
	prepareEvery = 10
	// standbyRuns bounds the runs one look is for.
	standbyRuns = 8
)

// standby does, while no run has the device, what a run would wait for that comes here: it compiles the programs of the running
// runs of its fingerprint, and keeps the newest weights of some of them. It finds them by the search attribute
// RepriseFingerprint; if that is not registered, a run compiles and loads when it comes.
type standby struct {
	client   client.Client
	device   *device.Device
	log      *zap.Logger
	runs     int   // are followed
	bytes    int64 // those may take; 0: the device decides
	followed map[string]*following
}

// following is what is known of a run that is followed.
type following struct {
	seen   int64  // iterations were committed when its weights were brought up to date, or that failed
	failed bool   // the last time
	told   string // what the log says of it
}

// keep looks until the context ends.
func (s *standby) keep(ctx context.Context) {
	s.followed = map[string]*following{}
	query := fmt.Sprintf("WorkflowType = 'Train' AND ExecutionStatus = 'Running' AND RepriseFingerprint = '%s'",
		s.device.Engine.Info().Fingerprint)
	for look := 0; ; look++ {
		select {
		case <-time.After(standbyEvery):
		case <-ctx.Done():
			return
		}
		prepare := look%prepareEvery == 0
		if !prepare && s.runs == 0 || s.device.Engine.Taken() {
			continue
		}
		listed, err := s.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: standbyRuns})
		if err != nil {
			continue // not registered, or the server is away: a run compiles when it comes
		}
		runs := listed.GetExecutions()
		slices.SortFunc(runs, func(a, b *workflowpb.WorkflowExecutionInfo) int { // the one that has run for longest comes first
			return cmp.Or(a.GetStartTime().AsTime().Compare(b.GetStartTime().AsTime()),
				cmp.Compare(a.GetExecution().GetWorkflowId(), b.GetExecution().GetWorkflowId()))
		})
		s.follow(ctx, runs[:min(s.runs, len(runs))])
		if prepare {
			s.prepare(ctx, runs)
		}
	}
}

// prepare compiles the programs of runs.
func (s *standby) prepare(ctx context.Context, runs []*workflowpb.WorkflowExecutionInfo) {
	s.device.Engine.BeginScan()
	for _, e := range runs {
		run, begin := e.GetExecution().GetWorkflowId(), time.Now()
		compiled, err := s.device.Engine.Prepare(ctx, s.device, run)
		switch {
		case err != nil && ctx.Err() == nil:
			s.log.Debug("could not prepare for a run", zap.String("run", run), zap.Error(err))
		case compiled:
			s.log.Info("programs of a run are ready, should it come here", zap.String("run", run), zap.Duration("took", time.Since(begin)))
		}
	}
}

// follow brings the weights of runs up to date that have committed something since the last look, or whose weights made room since.
func (s *standby) follow(ctx context.Context, runs []*workflowpb.WorkflowExecutionInfo) {
	ids := make([]string, len(runs))
	for i, e := range runs {
		ids[i] = e.GetExecution().GetWorkflowId()
	}
	maps.DeleteFunc(s.followed, func(run string, _ *following) bool { return !slices.Contains(ids, run) })
	kept, free := s.device.Engine.Follows(ids)
	if !free {
		return
	}
	for i, e := range runs {
		run, committed := ids[i], committedBy(e)
		f := s.followed[run]
		if f == nil {
			f = &following{}
			s.followed[run] = f
		}
		if committed == f.seen && (kept[run] || f.failed || committed == 0) {
			continue
		}
		got, ok, err := s.device.Engine.Follow(ctx, s.device, run, s.bytes)
		if ctx.Err() != nil {
			return
		}
		if f.failed = err != nil && !errors.Is(err, store.ErrNotFound); f.failed {
			f.seen = committed // else each look would fail so
			s.tell(f, run, "the weights of a run are not kept here, should it come", zap.Error(err))
		} else if ok {
			if got.Version == got.Committed {
				f.seen = committed
			}
			s.tell(f, run, "the weights of a run are kept here, should it come", zap.Int("version", got.Version), zap.Duration("took", got.Took))
		}
	}
}

// committedBy is how many iterations a run has committed, by its search attribute; 0 if that is not there.
func committedBy(e *workflowpb.WorkflowExecutionInfo) (n int64) {
	if p, ok := e.GetSearchAttributes().GetIndexedFields()["RepriseIteration"]; ok {
		// Search attributes are never encoded. One of another type is not ours, and leaves n as it is.
		_ = converter.GetDefaultDataConverter().FromPayload(p, &n)
	}
	return n
}

// tell says something of a run once.
func (s *standby) tell(f *following, run, text string, more ...zap.Field) {
	level := s.log.Debug
	if f.told != text {
		level = s.log.Info
	}
	f.told = text
	level(text, append([]zap.Field{zap.String("run", run)}, more...)...)
}
