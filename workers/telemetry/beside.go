package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	// besideTime bounds the question of another process's metrics: it may be frozen.
	besideTime = 2 * time.Second
	// processLabel tells a metric of another process from this one's with the same name and labels.
	processLabel = "process"
)

// Beside adds the metrics of another process, read at a URL, to this one's, until the next call; "" ends it. Where both have a
// metric, the other one's has the label process="computes".
func (m *Metrics) Beside(url string) { m.beside.Store(&url) }

// Gather implements prometheus.Gatherer: this process's metrics, and those beside it. A process that does not answer has none.
func (m *Metrics) Gather() ([]*dto.MetricFamily, error) {
	own, err := m.registry.Gather()
	url := m.beside.Load()
	if err != nil || url == nil || *url == "" {
		return own, err
	}
	theirs, err := read(*url)
	if err != nil {
		return own, nil //nolint:nilerr // it starts, or it has ended: its metrics come later
	}
	seen := map[string]bool{}
	for _, f := range own {
		for _, one := range f.GetMetric() {
			seen[identity(f, one)] = true
		}
	}
	families := make([]*dto.MetricFamily, 0, len(theirs))
	for _, f := range theirs {
		for _, one := range f.GetMetric() {
			if seen[identity(f, one)] {
				name, value := processLabel, "computes"
				one.Label = append(one.Label, &dto.LabelPair{Name: &name, Value: &value})
			}
		}
		families = append(families, f)
	}
	return prometheus.Gatherers{gathered(own), gathered(families)}.Gather()
}

// gathered are families as a gatherer.
type gathered []*dto.MetricFamily

// Gather implements prometheus.Gatherer.
func (g gathered) Gather() ([]*dto.MetricFamily, error) { return g, nil }

// identity is a metric's name and labels.
func identity(f *dto.MetricFamily, one *dto.Metric) string {
	labels := model.LabelSet{}
	for _, l := range one.GetLabel() {
		labels[model.LabelName(l.GetName())] = model.LabelValue(l.GetValue())
	}
	return f.GetName() + labels.String()
}

// read reads metrics in Prometheus's text format.
func read(url string) (map[string]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(context.Background(), besideTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("read metrics of %s: %w", url, err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read metrics of %s: %w", url, err)
	}
	defer answer.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("read metrics of %s: %w", url, err)
	}
	return families, nil
}
