package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/model/statistics"
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

// Rest names the time of an iteration outside its steps: queues, the server, heartbeats.
const Rest = "between the steps"

// ErrBitsDiffer is the kind of error if two ways did not compute the same policy.
var ErrBitsDiffer = errors.New("the same spec gave other bits")

// MeasureTax trains a spec through Temporal, once in each turn. Before each update of such a run, beside,
// an interceptor of the worker that serves it, makes the same iteration directly. So both are made within
// a second or two, and a machine whose speed changes is as fast for one as for the other. In every third
// turn the direct iterations use the bucket, in the others a store in memory. say receives progress.
// The runs are called name-0, name-1 and so on.
func MeasureTax(ctx context.Context, durable Durable, engine *device.Engine, beside *Beside, name string, text []byte, turns int, say func(string)) (Tax, error) {
	memory := newWay("directly, in memory", train.New(engine, store.NewMemory()))
	bucket := newWay("directly, with S3", train.New(engine, store.NewCache(durable.Store, cacheBytes))) // as a worker has it
	temporal := samplesOf{steps: map[string][]float64{}}
	around := dispatches{}
	var out Tax
	// Turn 0 warms everything up: programs, the starter, pages.
	for turn := range turns + 1 {
		direct := memory
		if turn%3 == 2 {
			direct = bucket
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
		// The first iteration loads the policy, the last stores it.
		pairs = pairs[1 : len(pairs)-1]
		var ratios []float64
		for _, p := range pairs {
			of, over := temporal.add(p.durable), direct.add(p.direct)
			for name := range of {
				direct.more[name] = append(direct.more[name], of[name]-over[name])
			}
			ratios = append(ratios, p.durable.Seconds/p.direct.Seconds)
		}
		direct.ratios = append(direct.ratios, ratios...)
		if err := around.read(ctx, durable.Client, runID); err != nil {
			return out, err
		}
		say(fmt.Sprintf("turn %d of %d: through Temporal and S3 %.3f times an iteration %s", turn, turns, statistics.Median(ratios), direct.name))
	}
	out.Dispatches = around.medians()
	out.Iterations, out.Pairs = len(temporal.seconds), len(memory.ratios)
	out.Direct, out.Durable, out.Bucket = statistics.Median(memory.seconds), statistics.Median(temporal.seconds), statistics.Median(bucket.seconds)
	out.Ratio, out.BucketRatio = statistics.Median(memory.ratios), statistics.Median(bucket.ratios)
	out.Low, out.High, _ = statistics.MedianInterval(memory.ratios, 0.95)
	out.OwnRatio = out.Durable / (out.Durable - statistics.Median(temporal.steps[Rest]))
	for _, name := range stepOrder {
		if of := temporal.steps[name]; len(of) > 0 {
			out.Steps = append(out.Steps, Step{
				Name: name, Durable: statistics.Median(of),
				Bucket: statistics.Median(bucket.steps[name]), Direct: statistics.Median(memory.steps[name]),
				More: statistics.Median(memory.more[name]),
			})
		}
	}
	return out, nil
}

// way is a way to make iterations directly, with what was measured of it. Of each pair it has the ratio
// of the iteration through Temporal, and how many seconds more that one's steps took.
type way struct {
	samplesOf
	name   string
	runner *train.Runner
	ratios []float64
	more   map[string][]float64
}

func newWay(name string, runner *train.Runner) *way {
	return &way{name: name, runner: runner, samplesOf: samplesOf{steps: map[string][]float64{}}, more: map[string][]float64{}}
}

// samplesOf are the seconds of iterations, and those of each step's own work.
type samplesOf struct {
	seconds []float64
	steps   map[string][]float64
}

// add adds an iteration. It gives the seconds of its steps and of its rest.
func (s *samplesOf) add(i train.Iteration) map[string]float64 {
	of := maps.Clone(i.Steps)
	of[Rest] = i.Seconds
	for _, name := range slices.Sorted(maps.Keys(i.Steps)) {
		of[Rest] -= i.Steps[name]
	}
	for name, seconds := range of {
		s.steps[name] = append(s.steps[name], seconds)
	}
	s.seconds = append(s.seconds, i.Seconds)
	return of
}

// cacheBytes is the size of a worker's cache.
const cacheBytes = 64 << 20

// stepOrder is the order of an iteration.
var stepOrder = []string{"generate", "step", "select", "score", "credit", "update", "commit", Rest}
