package telemetry

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
)

// sdk keeps the metrics of Temporal's SDK. The SDK gives one metric different labels in
// different places, which Prometheus allows and a vector cannot hold. So each series is a
// metric by itself, and the collector is unchecked: it describes nothing beforehand.
// Names are as in the SDK's documentation, with the suffixes of Prometheus: _total for
// counters, _seconds for times.
type sdk struct {
	mu      sync.RWMutex
	series  map[string]prometheus.Metric
	dropped prometheus.Counter
}

// maxSeries bounds the SDK's series. Its labels are bounded by what a worker registers;
// this protects against a release in which they are not.
const maxSeries = 2000

// sdkBuckets are in seconds: polls and requests, tasks, activities.
var sdkBuckets = []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 120, 300, 600}

func newSDK() *sdk {
	return &sdk{series: map[string]prometheus.Metric{}, dropped: prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: "reprise", Name: "dropped_series_total", Help: "Series of Temporal's SDK that were too many to keep.",
	})}
}

// Describe describes nothing: see sdk.
func (*sdk) Describe(chan<- *prometheus.Desc) {}

// Collect gives all series.
func (s *sdk) Collect(to chan<- prometheus.Metric) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, m := range s.series {
		to <- m
	}
	to <- s.dropped
}

// sdkHandler is the SDK's view, with the tags given so far.
type sdkHandler struct {
	sdk  *sdk
	tags prometheus.Labels
}

// WithTags gives a handler that adds tags to those so far.
func (h *sdkHandler) WithTags(tags map[string]string) client.MetricsHandler {
	all := make(prometheus.Labels, len(h.tags)+len(tags))
	maps.Copy(all, h.tags)
	for name, value := range tags {
		// A worker's own queue in a session is named by a UUID and its host.
		if name == "task_queue" && strings.Contains(value, "@") {
			value = "session"
		}
		all[name] = value
	}
	return &sdkHandler{sdk: h.sdk, tags: all}
}

// Counter counts up.
func (h *sdkHandler) Counter(name string) client.MetricsCounter {
	c, _ := h.one(name+"_total", func(o prometheus.Opts) prometheus.Metric {
		return prometheus.NewCounter(prometheus.CounterOpts(o))
	}).(prometheus.Counter)
	return counter{c}
}

// Gauge holds a value.
func (h *sdkHandler) Gauge(name string) client.MetricsGauge {
	g, _ := h.one(name, func(o prometheus.Opts) prometheus.Metric {
		return prometheus.NewGauge(prometheus.GaugeOpts(o))
	}).(prometheus.Gauge)
	return gauge{g}
}

// Timer records times.
func (h *sdkHandler) Timer(name string) client.MetricsTimer {
	t, _ := h.one(name+"_seconds", func(o prometheus.Opts) prometheus.Metric {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: o.Name, Help: o.Help, ConstLabels: o.ConstLabels, Buckets: sdkBuckets})
	}).(prometheus.Histogram)
	return timer{t}
}

// one finds a series or makes it; nil if there are too many.
func (h *sdkHandler) one(name string, make func(prometheus.Opts) prometheus.Metric) prometheus.Metric {
	var b strings.Builder
	b.WriteString(name)
	for _, tag := range slices.Sorted(maps.Keys(h.tags)) {
		b.WriteString("\x00" + tag + "\x00" + h.tags[tag])
	}
	key := b.String()
	h.sdk.mu.RLock()
	m, ok := h.sdk.series[key]
	h.sdk.mu.RUnlock()
	if ok {
		return m
	}
	h.sdk.mu.Lock()
	defer h.sdk.mu.Unlock()
	if m, ok := h.sdk.series[key]; ok {
		return m
	}
	if len(h.sdk.series) >= maxSeries {
		h.sdk.dropped.Inc()
		return nil
	}
	m = make(prometheus.Opts{Name: name, Help: "Temporal's Go SDK: https://docs.temporal.io/references/sdk-metrics", ConstLabels: h.tags})
	h.sdk.series[key] = m
	return m
}

// The SDK's interfaces on Prometheus's; nil inside does nothing.
type (
	counter struct{ of prometheus.Counter }
	gauge   struct{ of prometheus.Gauge }
	timer   struct{ of prometheus.Histogram }
)

// Inc adds to the counter.
func (c counter) Inc(n int64) {
	if c.of != nil && n > 0 {
		c.of.Add(float64(n))
	}
}

// Update sets the gauge.
func (g gauge) Update(v float64) {
	if g.of != nil {
		g.of.Set(v)
	}
}

// Record observes a time.
func (t timer) Record(d time.Duration) {
	if t.of != nil {
		t.of.Observe(d.Seconds())
	}
}
