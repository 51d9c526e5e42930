package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/lab/medians"
	"github.com/reprise-rl/reprise/workers/train"
)

// Tax compares an iteration through Temporal and S3 with the same activities called
// directly in one process.
type Tax struct {
	// Iterations is the number of iterations through Temporal that the medians are over.
	Iterations int `json:"iterations"`
	// Durable, Bucket and Direct are the median seconds of an iteration: through
	// Temporal and S3; called directly with S3; called directly with a store in memory.
	Durable float64 `json:"durable_seconds"`
	Bucket  float64 `json:"direct_s3_seconds"`
	Direct  float64 `json:"direct_memory_seconds"`
	// Ratio is the durability tax: the median, over Pairs pairs, of an iteration through Temporal and
	// S3 over the same one called directly with a store in memory, right beside it. Low and High are the
	// ends of its 95 % interval; both are 0 where the pairs are too few.
	Ratio float64 `json:"ratio"`
	Pairs int     `json:"pairs"`
	Low   float64 `json:"ratio_low"`
	High  float64 `json:"ratio_high"`
	// BucketRatio is that over an iteration called directly with S3: Temporal's part alone.
	BucketRatio float64 `json:"ratio_to_direct_s3"`
	// OwnRatio is Temporal's part by its own runs alone: Durable over what is left of it without the
	// time between the steps. The machine's speed, which drifts from run to run, disturbs it least.
	OwnRatio float64 `json:"ratio_of_own_runs"`
	// Goal is the most that Ratio should be.
	Goal float64 `json:"goal"`
	// Steps split an iteration.
	Steps []Step `json:"steps"`
	// Dispatches are what Temporal takes around each activity: what is left of the tax besides the
	// bucket's part.
	Dispatches []Dispatch `json:"dispatches"`
	// State is the state fingerprint that all ways ended with.
	State string `json:"state"`
}

// Step is the median seconds of one step's own work.
type Step struct {
	Name    string  `json:"name"`
	Durable float64 `json:"durable_seconds"`
	Bucket  float64 `json:"direct_s3_seconds"`
	Direct  float64 `json:"direct_memory_seconds"`
	// More is how much longer it took through Temporal and S3 than directly in memory, the median of
	// the pairs.
	More float64 `json:"more_seconds"`
}

// Rest names the time of an iteration in which none of its steps ran: queues, the server, heartbeats.
const Rest = "between the steps"

// ErrBitsDiffer is the kind of error if two ways did not compute the same policy.
var ErrBitsDiffer = errors.New("the same spec gave other bits")

// MeasureTax trains a spec through Temporal, once in each turn. Before each update of such a run, beside,
// an interceptor of the worker that serves it, makes the same iteration directly. So both are made within
// a second or two, and a machine whose speed changes is as fast for one as for the other. In every third
// turn the direct iterations use the bucket, in the others a store in memory. say receives progress.
// The runs are called name-0, name-1 and so on.
func MeasureTax(ctx context.Context, durable Durable, engine *device.Engine, beside *Beside, name string, text []byte, turns int,
	say func(string)) (Tax, error) {
	inMemory := &way{"directly, in memory", train.New(engine, store.NewMemory()), nil}
	inBucket := &way{"directly, with S3", train.New(engine, store.NewCache(durable.Store, cacheBytes)), nil} // as a worker has it
	around := dispatches{}
	var out Tax
	// Turn 0 warms everything up: programs, the starter, pages.
	for turn := range turns + 1 {
		direct := inMemory
		if turn%3 == 2 {
			direct = inBucket
		}
		runID := fmt.Sprintf("%s-%d", name, turn)
		training, err := direct.runner.Begin(ctx, runID+"-direct", text)
		if err != nil {
			return out, fmt.Errorf("%s: %w", direct.name, err)
		}
		got, pairs, err := beside.train(ctx, durable, training, runID, text)
		if err != nil {
			return out, fmt.Errorf("%s, beside one %s: %w", runID, direct.name, err)
		}
		if out.State == "" {
			out.State = got.State
		}
		for _, state := range []string{got.State, training.State()} {
			if state != out.State {
				return out, fmt.Errorf("%s: state %s, before it was %s: %w", runID, state, out.State, ErrBitsDiffer)
			}
		}
		if turn == 0 {
			continue
		}
		pairs = pairs[1 : len(pairs)-1] // the first iteration loads the policy, the last stores it
		direct.pairs = append(direct.pairs, pairs...)
		if err := around.read(ctx, durable.Client, runID); err != nil {
			return out, err
		}
		say(fmt.Sprintf("turn %d of %d: through Temporal and S3 %.3f times an iteration %s", turn, turns, medians.By(pairs, pair.ratio), direct.name))
	}
	out.summarize(inMemory.pairs, inBucket.pairs)
	out.Dispatches = around.medians()
	return out, nil
}

// way is a way to make iterations directly, with the pairs that were made with it.
type way struct {
	name   string
	runner *train.Runner
	pairs  []pair
}

// summarize fills in the medians, of the pairs whose direct iterations had a store in memory, and of
// those with the bucket.
func (t *Tax) summarize(memory, bucket []pair) {
	all := slices.Concat(memory, bucket)
	direct := func(p pair) float64 { return p.direct.Seconds }
	t.Iterations, t.Pairs = len(all), len(memory)
	t.Durable = medians.By(all, func(p pair) float64 { return p.durable.Seconds })
	t.Direct, t.Bucket = medians.By(memory, direct), medians.By(bucket, direct)
	t.Ratio, t.BucketRatio = medians.By(memory, pair.ratio), medians.By(bucket, pair.ratio)
	ratios := make([]float64, len(memory))
	for n, p := range memory {
		ratios[n] = p.ratio()
	}
	t.Low, t.High, _ = medians.Interval(ratios, 0.95)
	for _, name := range stepOrder {
		durable := func(p pair) float64 { return p.durable.Steps[name] }
		direct := func(p pair) float64 { return p.direct.Steps[name] }
		step := Step{
			Name: name, Durable: medians.By(all, durable),
			Bucket: medians.By(bucket, direct), Direct: medians.By(memory, direct),
			More: medians.By(memory, func(p pair) float64 { return durable(p) - direct(p) }),
		}
		if step.Durable > 0 {
			t.Steps = append(t.Steps, step)
		}
		if name == Rest {
			t.OwnRatio = t.Durable / (t.Durable - step.Durable)
		}
	}
}

// cacheBytes is the size of a worker's cache.
const cacheBytes = 64 << 20

// stepOrder is the order of an iteration.
var stepOrder = []string{"generate", "step", "select", "score", "credit", "update", "commit", Rest}
