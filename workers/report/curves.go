package report

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/workflows/collapse"
	"github.com/reprise-rl/reprise/workflows/spec"
)

// Curve is how a metric is shown.
type Curve struct {
	// Name is the metric's, Title what people call it, Unit what it is measured in.
	Name, Title, Unit string
	// Help says in a sentence what to look for.
	Help string
}

// Curves are the curves of the RAGEN paper (arXiv 2504.20073, Figures 3 to 8: reward, its
// standard deviation inside groups, entropy, gradient norm, response length, success), in
// the order of the page. All other metrics follow as small multiples.
func Curves() []Curve {
	return []Curve{
		{Name: "reward/mean", Title: "Reward", Help: "Mean of the environment's rewards of an episode, penalties apart."},
		{Name: collapse.MetricSuccess, Title: "Success", Help: "Share of the episodes that solved their task; points with bars are evaluations with their 95 % Wilson interval."},
		{Name: collapse.MetricRewardStd, Title: "In-group reward deviation", Help: "How much the members of a group differ: when it falls away, nothing is left to learn from."},
		{Name: collapse.MetricEntropy, Title: "Entropy", Unit: "nats", Help: "Of the policy at the sampled tokens. A fast fall is a template, a rise is a policy that comes apart."},
		{Name: collapse.MetricGradNorm, Title: "Gradient norm", Help: "Before clipping. Spikes come with or after the harm."},
		{Name: "response_length/mean", Title: "Response length", Unit: "tokens", Help: "Sampled tokens of an episode."},
	}
}

// curves are the curves at the head of the page. With rewards in parts, one of each part follows
// success, so that a part that the policy games is visible: it rises while success falls.
func (r *Run) curves() []Curve {
	all := Curves()
	if len(r.Spec.Rewards) == 0 {
		return all
	}
	parts := []Curve{{Name: "reward/weighted_mean", Title: "Reward with parts", Help: "What selection and credit read: the environment's reward, penalties, and weight × value of each part."}}
	for _, part := range r.Spec.Rewards {
		weight := short(part.Weight)
		if spec.SetBySchedule(r.Spec.Schedule, "rewards."+part.Name+".weight") {
			weight = "the weight that the schedule gives it"
		}
		parts = append(parts, Curve{
			Name: "reward/" + part.Name + "/mean", Title: "Part: " + part.Name,
			Help: "Mean of what an episode gets, times " + weight + " in the reward with parts. If it rises and success falls, the part is gamed.",
		})
	}
	at := 1 + slices.IndexFunc(all, func(c Curve) bool { return c.Name == collapse.MetricSuccess })
	return slices.Insert(all, at, parts...)
}

// criticLoss is recorded by each update of a critic.
const criticLoss = "critic/vf_loss"

// otherCurve is how a metric is shown that [Curves] does not have, among others by name.
// Metrics have verl's names, under which advantages are the critic's even without one.
func otherCurve(name string, names []string) Curve {
	c := Curve{Name: name, Title: name}
	if advantages, ok := strings.CutPrefix(name, "critic/advantages"); ok && !slices.Contains(names, criticLoss) {
		c.Title, c.Help = "advantages"+advantages, "Recorded as "+name+"; the run has no critic."
	}
	return c
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// metricNames are the names in any of the metrics, without the smoothed ones.
func metricNames(ms ...activities.Metrics) []string {
	names := map[string]bool{}
	for _, m := range ms {
		for name := range m {
			if !strings.HasSuffix(name, collapse.SmoothedSuffix) {
				names[name] = true
			}
		}
	}
	return sortedKeys(names)
}

// Names are all metrics of a run's iterations, in order, smoothed ones apart.
func (r *Run) Names() []string {
	names := map[string]bool{}
	for _, it := range r.all() {
		for name := range it.Manifest.Metrics {
			names[name] = !strings.HasSuffix(name, collapse.SmoothedSuffix)
		}
	}
	maps.DeleteFunc(names, func(_ string, shown bool) bool { return !shown })
	return sortedKeys(names)
}

// points are the values of a curve in JSON: null if there is none, or if it is not
// finite. Six digits are more than a screen shows.
type points []float64

// MarshalJSON implements json.Marshaler.
func (p points) MarshalJSON() ([]byte, error) {
	out := append(make([]byte, 0, 8*len(p)+2), '[')
	for i, v := range p {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendPoint(out, v)
	}
	return append(out, ']'), nil
}

// absent is a point that is not there.
var absent = math.NaN()

// pointOf is a metric's value, absent if it has none.
func pointOf(m activities.Metrics, name string) float64 {
	if v, ok := m[name]; ok {
		return float64(v)
	}
	return absent
}

// notFinite counts the values of a metric that are there and not finite.
func (b *Branch) notFinite(name string) int {
	n := 0
	for _, it := range b.Iterations {
		if v, ok := it.Manifest.Metrics[name]; ok && !v.Finite() {
			n++
		}
	}
	return n
}
