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
	// Iterations is the number of iterations that each median is over.
	Iterations int `json:"iterations"`
	// Durable, Bucket and Direct are the median seconds of an iteration: through
	// Temporal and S3; called directly with S3; called directly with a store in memory.
	Durable float64 `json:"durable_seconds"`
	Bucket  float64 `json:"direct_s3_seconds"`
	Direct  float64 `json:"direct_memory_seconds"`
	// Ratio is Durable over Direct: the durability tax. BucketRatio is Durable
	// over Bucket: Temporal's part of it alone.
	Ratio       float64 `json:"ratio"`
	BucketRatio float64 `json:"ratio_to_direct_s3"`
	// OwnRatio is Temporal's part by its own runs alone: Durable over what is left of it without the
	// time between the steps. The machine's speed, which drifts from run to run, disturbs it least.
	OwnRatio float64 `json:"ratio_of_own_runs"`
	// QuietRatio is Ratio of the lower quartiles, which other load disturbs less.
	QuietRatio float64 `json:"quiet_ratio"`
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
}

// Rest names the time of an iteration outside its steps: queues, the server, heartbeats.
const Rest = "between the steps"

// ErrBitsDiffer is the kind of error if two ways did not compute the same policy.
var ErrBitsDiffer = errors.New("the same spec gave other bits")

// MeasureTax trains the same spec in turns through Temporal, directly with the
// bucket, and directly in memory, rounds times each. The first iteration, which
// loads the policy, and the last, which stores it, are not counted. say receives
// progress. The runs are called name-0, name-1 and so on.
func MeasureTax(ctx context.Context, durable Durable, engine *device.Engine, name string, text []byte, rounds int, say func(string)) (Tax, error) {
	runName := func(round int) string { return fmt.Sprintf("%s-%d", name, round) }
	memory := train.New(engine, store.NewMemory())
	bucket := train.New(engine, store.NewCache(durable.Store, cacheBytes)) // as a worker has it
	ways := []struct {
		name  string
		train func(run string) (train.Trained, error)
	}{
		{"directly, in memory", func(run string) (train.Trained, error) { return memory.Train(ctx, run, text) }},
		{"through Temporal and S3", func(run string) (train.Trained, error) { return durable.Train(ctx, run, text) }},
		{"directly, with S3", func(run string) (train.Trained, error) { return bucket.Train(ctx, run+"-direct", text) }},
	}
	const throughTemporal = 1
	seconds := make([][]float64, len(ways))
	steps := make([]map[string][]float64, len(ways))
	around := dispatches{}
	var out Tax
	// The round before the first warms everything up: programs, the starter, pages.
	for round := range rounds + 1 {
		for w, way := range ways {
			got, err := way.train(runName(round))
			if err != nil {
				return out, fmt.Errorf("%s: %w", way.name, err)
			}
			if out.State == "" {
				out.State = got.State
			}
			if got.State != out.State {
				return out, fmt.Errorf("%s: state %s, before it was %s: %w", way.name, got.State, out.State, ErrBitsDiffer)
			}
			if round == 0 {
				continue
			}
			if w == throughTemporal {
				if err := around.read(ctx, durable.Client, runName(round)); err != nil {
					return out, err
				}
			}
			if steps[w] == nil {
				steps[w] = map[string][]float64{}
			}
			inner := got.Iterations[1 : len(got.Iterations)-1]
			own := make([]float64, len(inner))
			for k, i := range inner {
				own[k] = i.Seconds
				seconds[w] = append(seconds[w], i.Seconds)
				rest := i.Seconds
				for _, name := range slices.Sorted(maps.Keys(i.Steps)) {
					steps[w][name] = append(steps[w][name], i.Steps[name])
					rest -= i.Steps[name]
				}
				steps[w][Rest] = append(steps[w][Rest], rest)
			}
			say(fmt.Sprintf("round %d of %d, %-24s median %.3f s an iteration", round, rounds, way.name+":", statistics.Median(own)))
		}
	}
	out.Dispatches = around.medians()
	out.Iterations = len(seconds[0])
	out.Direct, out.Durable, out.Bucket = statistics.Median(seconds[0]), statistics.Median(seconds[1]), statistics.Median(seconds[2])
	out.Ratio, out.BucketRatio = out.Durable/out.Direct, out.Durable/out.Bucket
	out.OwnRatio = out.Durable / (out.Durable - statistics.Median(steps[1][Rest]))
	out.QuietRatio = lowQuarter(seconds[1]) / lowQuarter(seconds[0])
	for _, name := range stepOrder {
		if len(steps[1][name]) > 0 {
			out.Steps = append(out.Steps, Step{Name: name, Durable: statistics.Median(steps[1][name]), Bucket: statistics.Median(steps[2][name]), Direct: statistics.Median(steps[0][name])})
		}
	}
	return out, nil
}

// cacheBytes is the size of a worker's cache.
const cacheBytes = 64 << 20

// stepOrder is the order of an iteration.
var stepOrder = []string{"generate", "step", "select", "score", "credit", "update", "commit", Rest}
