package telemetry

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.temporal.io/sdk/client"

	"github.com/reprise-rl/reprise/model"
)

// Options say what is exported.
type Options struct {
	// Runs is how many runs at once may be named in labels: those committed last.
	// With 0 none is, and the figures of all runs share one series.
	Runs int
}

// Metrics are a process's.
type Metrics struct {
	registry *prometheus.Registry
	beside   atomic.Pointer[string] // the URL of another process's metrics
	sdk      *sdk
	runs     *recent
	lease    *recent

	waiting   *prometheus.GaugeVec // fingerprint
	open      *prometheus.GaugeVec // state
	workers   *prometheus.GaugeVec // fingerprint
	device    *prometheus.GaugeVec // fingerprint
	leased    *prometheus.GaugeVec // run
	running   *prometheus.GaugeVec // step
	seconds   *prometheus.HistogramVec
	parts     *prometheus.CounterVec // step, part
	tokens    *prometheus.CounterVec // kind
	rate      *prometheus.GaugeVec   // kind
	retries   *prometheus.CounterVec // step
	failures  *prometheus.CounterVec // step, kind
	lost      *prometheus.CounterVec // cause
	devices   prometheus.Counter
	leases    *prometheus.CounterVec // end
	rebuilt   prometheus.Counter
	committed prometheus.Counter
	rewritten prometheus.Counter

	iteration *prometheus.GaugeVec            // run
	branch    *prometheus.GaugeVec            // run
	figures   map[string]*prometheus.GaugeVec // by the manifest's name: run
	success   *prometheus.GaugeVec            // run, suite
}

// stepBuckets are in seconds, from a host step of the starter to the longest
// activity that a spec allows.
var stepBuckets = prometheus.ExponentialBuckets(0.01, 2, 16)

// figures are the exported metrics of an iteration, by the manifest's name.
var figures = []struct{ metric, name, help string }{
	{"reward/mean", "reward_mean", "Mean reward of the trajectories, without penalties."},
	{"reward/penalised_mean", "penalised_reward_mean", "Mean reward of the trajectories, penalties included."},
	{"success/mean", "success_ratio", "Share of the trajectories that succeeded."},
	{"rollout/in_group_reward_std", "in_group_reward_deviation", "Mean over the groups of the rewards' standard deviation."},
	{"response_length/mean", "response_tokens_mean", "Mean sampled tokens of a trajectory."},
	{"actor/entropy", "entropy_nats", "Mean entropy of the policy on the selected rows."},
	{"actor/grad_norm", "gradient_norm", "Norm of the policy's gradients before clipping."},
	{"actor/pg_clipfrac", "clip_fraction", "Share of the tokens whose ratio was clipped."},
	{"actor/approx_kl", "approx_kl_nats", "Distance of the policy from the one that sampled, as updated."},
	{"training/rollout_logprob_diff_mean", "rollout_logprob_difference_mean", "Mean distance of the sampler's log-probs from the training program's."},
}

// New makes a process's metrics.
func New(o Options) *Metrics {
	r := prometheus.NewRegistry()
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "reprise", Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "reprise", Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	m := &Metrics{
		registry: r, sdk: newSDK(), runs: &recent{most: o.Runs}, lease: &recent{most: min(o.Runs, 1)},
		waiting: gauge("waiting_runs", "Open runs and evaluations that wait for a device, by the fingerprint that they belong to: unknown before the first commit.", "fingerprint"),
		open:    gauge("open_runs", "Open runs and evaluations: paused by themselves, waiting for a device, resting (paused by a person, or until a time), or going.", "state"),
		workers: gauge("device_workers", "Device workers that serve the fingerprint of an open run. The server forgets one some 5 minutes after it is gone.", "fingerprint"),
		device:  gauge("device_info", "1 for the fingerprint of this process's device.", "fingerprint"),
		leased:  gauge("lease_info", "1 for the run that held this process's device last.", "run"),
		running: gauge("running", "Activities of a step that run now.", "step"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "reprise", Name: "step_seconds", Help: "What an activity's own work took, by step, where it succeeded.", Buckets: stepBuckets,
		}, []string{"step"}),
		parts:     counter("step_part_seconds_total", "Parts of a step: wait for the device (beside step_seconds); compile with the self-test, cached (programs taken from the cache) and load (within).", "step", "part"),
		tokens:    counter("tokens_total", "Tokens by kind: generated, trained, scored, evaluated, taught (in a warm start), graded (replies of a run that judges itself).", "kind"),
		rate:      gauge("tokens_per_second", "Tokens per second of the newest activity of the kind.", "kind"),
		retries:   counter("retries_total", "Activities begun that were not the first attempt.", "step"),
		failures:  counter("failures_total", "Attempts that failed, by the kind of error.", "step", "kind"),
		lost:      counter("lost_seconds_total", "Time lost, by cause: attempt, from the first schedule to a later attempt's begin; device, from the schedule of an activity to its loss with the session.", "cause"),
		figures:   map[string]*prometheus.GaugeVec{},
		iteration: gauge("iteration", "Newest committed iteration.", "run"),
		branch:    gauge("branch", "Branch of the newest committed iteration; more than before is a rollback.", "run"),
		success:   gauge("evaluation_success_ratio", "Success of the newest evaluation.", "run", "suite"),
	}
	m.devices = counter("lost_devices_total", "Devices that runs lost, or that were silent, as seen where workflows decide.").WithLabelValues()
	m.leases = counter("leases_ended_total", "Leases of devices that ended, by how: given back, drained, lost, refused, silent.", "end")
	m.rebuilt = counter("recomputed_updates_total", "Updates applied again to rebuild a policy, or begun again after some of their pieces were lost.").WithLabelValues()
	m.committed = counter("iterations_total", "Iterations committed here.").WithLabelValues()
	m.rewritten = counter("rewritten_objects_total", "Objects that were damaged in the bucket, that no manifest names, and that were written again; the log says which.").WithLabelValues()
	for _, f := range figures {
		m.figures[f.metric] = gauge(f.name, f.help+" Manifests call it "+f.metric+".", "run")
	}
	// Rates need a zero before the first event.
	for _, cause := range []string{lostAttempt, lostDevice} {
		m.lost.WithLabelValues(cause)
	}
	r.MustRegister(m.seconds, m.sdk, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler answers GET /metrics in Prometheus's text format or OpenMetrics.
func (m *Metrics) Handler() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	return mux
}

// Temporal takes the SDK's own metrics: give it to the client that the workers use.
func (m *Metrics) Temporal() client.MetricsHandler { return &sdkHandler{sdk: m.sdk} }

// Rewritten counts an object that was damaged in the bucket and is written again.
func (m *Metrics) Rewritten() { m.rewritten.Inc() }

// Device says which device this process has, where the programs come from that it has
// built, and for how long each of its devices has worked.
func (m *Metrics) Device(fingerprint string, built func() model.Built, busy func() []time.Duration) {
	for k := range busy() {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: "reprise", Name: "device_busy_seconds_total", Help: "Time for which each of the worker's devices has worked; its rate is the device's busy share.",
			ConstLabels: prometheus.Labels{"device": strconv.Itoa(k)},
		}, func() float64 { return busy()[k].Seconds() }))
	}
	m.device.WithLabelValues(fingerprint).Set(1)
	const programs = "Programs that the device has made ready, by where they came from: the compiler, the cache (this worker's folder) or the bucket."
	for _, c := range []struct {
		name, help, from string
		of               func(model.Built) int
	}{
		{"programs_total", programs, "compiler", func(b model.Built) int { return b.Compiled }},
		{"programs_total", programs, "cache", func(b model.Built) int { return b.Loaded - b.Fetched }},
		{"programs_total", programs, "bucket", func(b model.Built) int { return b.Fetched }},
		{"program_cache_faults_total", "Programs whose file in the cache was damaged, could not be loaded or could not be written, and failures of the bucket that shares them; the log says which.", "", func(b model.Built) int { return b.CacheFaults }},
		{"program_cache_unsigned_total", "What the bucket had in place of a program or a record without a valid signature; none of it was loaded, and the log says which.", "",
			func(b model.Built) int { return b.Unsigned }},
	} {
		o := prometheus.CounterOpts{Namespace: "reprise", Name: c.name, Help: c.help}
		if c.from != "" {
			o.ConstLabels = prometheus.Labels{"from": c.from}
		}
		m.registry.MustRegister(prometheus.NewCounterFunc(o, func() float64 { return float64(c.of(built())) }))
	}
}
