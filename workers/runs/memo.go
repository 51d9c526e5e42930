package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workflows"
)

// memoTimeout bounds the question of what a run's memo says.
const memoTimeout = 5 * time.Second

// ErrNoMemo is a run of which Temporal does not say which manifest is its newest.
var ErrNoMemo = errors.New("no manifest is in the run's memo")

// NewestManifest is the newest manifest that a run has committed as its memo has it, which no worker has to answer. by decodes
// what a codec has encoded. [ErrNoMemo] if Temporal does not know the run, or the run has not said.
func NewestManifest(ctx context.Context, c client.Client, run string, by converter.DataConverter) (store.Ref, error) {
	ctx, cancel := context.WithTimeout(ctx, memoTimeout)
	defer cancel()
	described, err := lookUp(ctx, c, run)
	if err != nil {
		return store.Ref{}, err
	}
	if described == nil {
		return store.Ref{}, fmt.Errorf("%w: this server has no workflow %q", ErrNoMemo, run)
	}
	payload, ok := described.GetWorkflowExecutionInfo().GetMemo().GetFields()[workflows.MemoManifest]
	if !ok {
		return store.Ref{}, fmt.Errorf("%w: nothing is committed yet, or an earlier build has begun it", ErrNoMemo)
	}
	var ref store.Ref
	if err := by.FromPayload(payload, &ref); err != nil {
		return store.Ref{}, fmt.Errorf("read the memo of %s: %w", run, err)
	}
	return ref, nil
}
