package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/reprise-rl/reprise/activities/steps"
	"github.com/reprise-rl/reprise/workers/train"
)

// Beside is a worker's interceptor that makes an iteration directly before each update of a run
// through Temporal. Nothing else of the run is under way at that time: an iteration is committed beside
// the next Generate, and the step after that waits for the commit.
type Beside struct {
	interceptor.WorkerInterceptorBase

	mu     sync.Mutex
	ctx    context.Context // of the direct iterations: they send no heartbeats
	direct *train.Training // nil: updates begin at once
	made   []train.Iteration
	held   []float64 // seconds that each update waited
	failed error
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (b *Beside) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	a := &besideActivity{beside: b}
	a.Next = next
	return a
}

type besideActivity struct {
	interceptor.ActivityInboundInterceptorBase
	beside *Beside
}

func (a *besideActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	if activity.GetInfo(ctx).ActivityType.Name == steps.Update.Name {
		a.beside.iterate()
	}
	return a.Next.ExecuteActivity(ctx, in)
}

// iterate makes the next direct iteration, if there is one.
func (b *Beside) iterate() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.direct == nil || b.failed != nil || b.direct.Ended() {
		return
	}
	began := time.Now()
	i, err := b.direct.Next(b.ctx)
	b.made, b.held, b.failed = append(b.made, i), append(b.held, time.Since(began).Seconds()), err
}

// pair is the same iteration made twice, right beside each other. The Rest of each is among its steps.
type pair struct{ durable, direct train.Iteration }

// ratio is what the iteration took through Temporal, over what it took directly.
func (p pair) ratio() float64 { return p.durable.Seconds / p.direct.Seconds }

// errPairs is the kind of error if the two runs have not the same iterations.
var errPairs = errors.New("the iterations do not pair")

// train makes a run through Temporal and a direct one beside it.
func (b *Beside) train(ctx context.Context, durable Durable, direct *train.Training, runID string,
	text []byte) (train.Trained, []pair, error) {
	b.mu.Lock()
	b.ctx, b.direct, b.made, b.held, b.failed = ctx, direct, nil, nil, nil
	b.mu.Unlock()
	got, err := durable.Train(ctx, runID, text)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.direct = nil
	if err = errors.Join(b.failed, err); err != nil {
		return got, nil, err
	}
	pairs, err := pairsOf(got.Iterations, b.made, b.held)
	return got, pairs, err
}

// pairsOf pairs the iterations of a run through Temporal, without the seconds that its updates waited,
// with the direct ones.
func pairsOf(durable, direct []train.Iteration, held []float64) ([]pair, error) {
	if len(durable) != len(direct) {
		return nil, fmt.Errorf("%w: %d directly, %d through Temporal", errPairs, len(direct), len(durable))
	}
	pairs := make([]pair, len(durable))
	for n, i := range durable {
		i.Seconds -= held[n]
		// Through Temporal the commit takes no time of its own: it runs beside the next Generate.
		pairs[n] = pair{durable: withRest(i, "commit"), direct: withRest(direct[n], "")}
	}
	return pairs, nil
}

// withRest adds an iteration's Rest to its steps. The step named beside runs beside another one.
func withRest(i train.Iteration, beside string) train.Iteration {
	rest := i.Seconds
	for _, name := range slices.Sorted(maps.Keys(i.Steps)) {
		if name != beside {
			rest -= i.Steps[name]
		}
	}
	of := map[string]float64{Rest: rest}
	maps.Copy(of, i.Steps)
	i.Steps = of
	return i
}
