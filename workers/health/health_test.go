package health

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// get asks a path of the handler.
func get(t *testing.T, s *State, path string) (int, string) {
	t.Helper()
	mux := http.NewServeMux()
	s.Handle(mux)
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	text, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	return w.Code, string(text)
}

// readyz is what the handler reports.
func readyz(t *testing.T, s *State) (int, Report) {
	t.Helper()
	status, text := get(t, s, "/readyz")
	var r Report
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	require.Equal(t, r.Ready, status == http.StatusOK)
	return status, r
}

// A worker is ready from the moment it serves until it stops, if all of its parts are. It lives all the time.
func TestProbes(t *testing.T) {
	s := New()
	alive := func() {
		status, text := get(t, s, "/healthz")
		require.Equal(t, http.StatusOK, status)
		require.JSONEq(t, `{"alive":true}`, text)
	}
	status, text := get(t, s, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.JSONEq(t, `{"ready":false,"checks":[{"name":"worker","ready":false,"reason":"it starts"}]}`, text)
	alive()

	var broken error
	s.Watch(func(context.Context) []Check {
		c := Check{Name: "device", Ready: broken == nil, Reason: "fingerprint f1"}
		if broken != nil {
			c.Reason = broken.Error()
		}
		return []Check{c}
	})
	status, r := readyz(t, s)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Len(t, r.Checks, 2)
	s.Serves()
	status, _ = readyz(t, s)
	require.Equal(t, http.StatusOK, status)
	broken = errors.New("it has ended nothing for 5s")
	status, r = readyz(t, s)
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, []Check{{"worker", true, "it serves"}, {"device", false, "it has ended nothing for 5s"}}, r.Checks)
	alive()
	broken = nil
	s.Stops()
	_, r = readyz(t, s)
	require.Equal(t, []Check{{"worker", false, "it stops: it takes no new work"}, {"device", true, "fingerprint f1"}}, r.Checks)
	alive()
}

// The server is asked once in some seconds, with a bound, and not by the caller's patience.
func TestServer(t *testing.T) {
	now, asked := time.Unix(0, 0), 0
	var answer error
	s := &server{now: func() time.Time { return now }, ask: func(ctx context.Context) error {
		require.NoError(t, ctx.Err())
		deadline, bounded := ctx.Deadline()
		require.True(t, bounded)
		require.LessOrEqual(t, time.Until(deadline), serverTime)
		asked++
		return answer
	}}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, []Check{{"temporal", true, "it answered in 0s"}}, s.check(gone))
	answer = errors.New("connection refused")
	now = now.Add(serverEvery - 1)
	require.True(t, s.check(t.Context())[0].Ready)
	require.Equal(t, 1, asked)
	now = now.Add(1)
	require.Equal(t, []Check{{"temporal", false, "it does not answer: connection refused"}}, s.check(t.Context()))
	require.False(t, s.check(t.Context())[0].Ready)
	require.Equal(t, 2, asked)
}

// Queues are polled, as the SDK's own gauges say it.
func TestPollers(t *testing.T) {
	now := time.Unix(0, 0)
	p := NewPollers(func(queue string) Wanted {
		return map[string]Wanted{"device": Once, "blocks": Ignored}[queue]
	})
	p.now = func() time.Time { return now }
	next := client.MetricsNopHandler
	h := p.Handler(next)
	pollers := func(queue, kind string) client.MetricsGauge {
		return h.WithTags(map[string]string{"task_queue": queue}).WithTags(map[string]string{"poller_type": kind}).Gauge(pollersGauge)
	}
	require.Empty(t, p.Check(t.Context()))
	host, decides, device := pollers("reprise", "activity_task"), pollers("reprise", "workflow_task"), pollers("device", "activity_task")
	for _, ignored := range []client.MetricsGauge{
		pollers("blocks", "activity_task"), pollers("1@host", "activity_task"), pollers("", "activity_task"), pollers("reprise", "workflow_sticky_task"),
	} {
		ignored.Update(0)
	}
	h.WithTags(map[string]string{"task_queue": "reprise"}).Gauge("temporal_sticky_cache_size").Update(3)
	checks := func() (out []string) {
		for _, c := range p.Check(t.Context()) {
			out = append(out, map[bool]string{true: "+ ", false: "- "}[c.Ready]+c.Name+": "+c.Reason)
		}
		return out
	}
	now = now.Add(2 * time.Second)
	require.Equal(t, []string{
		"- queue device, activity tasks: it was not polled yet; its worker was made 2s ago",
		"- queue reprise, activity tasks: it was not polled yet; its worker was made 2s ago",
		"- queue reprise, workflow tasks: it was not polled yet; its worker was made 2s ago",
	}, checks())
	for _, g := range []client.MetricsGauge{host, decides, device} {
		g.Update(1)
	}
	now = now.Add(time.Hour)
	require.Equal(t, []string{
		"+ queue device, activity tasks: it is polled", "+ queue reprise, activity tasks: it is polled", "+ queue reprise, workflow tasks: it is polled",
	}, checks())
	for _, g := range []client.MetricsGauge{host, decides, device} {
		g.Update(0)
	}
	room := h.WithTags(map[string]string{"task_queue": "reprise", "worker_type": "ActivityWorker"}).Gauge(slotsGauge)
	room.Update(0)
	now = now.Add(pollTime)
	require.Equal(t, []string{
		"+ queue device, activity tasks: last polled 2m0s ago",
		"+ queue reprise, activity tasks: its worker has all that it can do; last polled 2m0s ago",
		"- queue reprise, workflow tasks: last polled 2m0s ago, though its worker has room",
	}, checks())
	room.Update(1)
	decides.Update(1)
	decides.Update(0)
	require.Equal(t, []string{
		"+ queue device, activity tasks: last polled 2m0s ago",
		"- queue reprise, activity tasks: last polled 2m0s ago, though its worker has room",
		"+ queue reprise, workflow tasks: last polled 0s ago",
	}, checks())
}
