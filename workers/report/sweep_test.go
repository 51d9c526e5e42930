package report_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/workers/report"
	"github.com/reprise-rl/reprise/workers/report/synthetic"
	"github.com/reprise-rl/reprise/workflows/sweep"
)

const figure = "fig7"

// settings of the sweep and what they add to the success.
var settings = []struct {
	name  string
	level float64
}{{"selection.keep=0.25", 0.1}, {"selection.keep=0.5", 0}, {"selection.keep=1", -0.3}}

// putSweep stores a sweep of three settings and two seeds, whose last trial has not
// begun, with a definition that was extended once.
func putSweep(t testing.TB, s *store.Memory, final bool) {
	t.Helper()
	ctx := context.Background()
	type definition struct {
		Sweep      string           `json:"sweep"`
		Definition sweep.Definition `json:"definition"`
		Trials     []sweep.Trial    `json:"trials"`
	}
	d := definition{Sweep: figure, Definition: sweep.Definition{Description: "How much is kept.", Metrics: []string{"success/mean", "evaluation/success/mean"}, Goal: sweep.Maximize}}
	table := sweep.Table{Sweep: figure, Metrics: d.Definition.Metrics, Goal: sweep.Maximize}
	put := func(name string, v any) store.Ref {
		body, err := json.Marshal(v)
		require.NoError(t, err)
		ref, err := store.PutArtifact(ctx, s, store.SweepDir(figure), name, "json", body)
		require.NoError(t, err)
		return ref
	}
	for seed := uint64(1); seed <= 2; seed++ {
		for i, setting := range settings {
			label := fmt.Sprintf("%s,seed=%d", setting.name, seed)
			d.Trials = append(d.Trials, sweep.Trial{Label: label, Setting: setting.name, Seed: seed, Iterations: 8})
			state := sweep.Done
			if seed == 2 && i == 2 {
				state = sweep.Stopped
			} else {
				shape := synthetic.Shape{Iterations: 8, Groups: 4, Members: 4, Turns: 1, Words: 3, States: 2, EvaluateEvery: 4, Instances: 8, Seed: seed, Level: setting.level}
				require.NoError(t, synthetic.Write(ctx, s, sweep.ID(figure, label), shape))
			}
			table.Rows = append(table.Rows, sweep.Row{Trial: label, Setting: setting.name, Seed: seed, State: state, Iterations: 8, Of: 8})
		}
		s.SetTime(time.Unix(int64(seed)*100, 0))
		table.Definition = put("definition", d).Digest
	}
	table.Decisions = []sweep.DecisionRow{{Trial: table.Rows[5].Trial, Text: "stopped: <b>median</b> rule"}}
	if final {
		put("table", table)
		telemetry := fmt.Sprintf(`[{"trial": %q, "memory_bytes": 1500000000}]`, d.Trials[0].Label)
		require.NoError(t, s.Put(ctx, store.SweepDir(figure)+"/telemetry.json", []byte(telemetry), store.PutOptions{}))
	}
}

func TestLoadSweep(t *testing.T) {
	s := store.NewMemory()
	putSweep(t, s, false)
	got, err := report.LoadSweep(t.Context(), s, figure)
	require.NoError(t, err)
	require.False(t, got.Final)
	require.Len(t, got.Trials, 6, "of the later definition")
	require.Equal(t, "How much is kept.", got.Description)
	require.NotNil(t, got.Trials[4].Run)
	require.Nil(t, got.Trials[5].Run)
	require.Equal(t, []report.Missing{{What: "runs of trials", Why: "nothing is stored of them yet", Count: 1}}, got.Missing)

	s = store.NewMemory()
	putSweep(t, s, true)
	got, err = report.LoadSweep(t.Context(), s, figure)
	require.NoError(t, err)
	require.True(t, got.Final)
	require.Equal(t, "stopped", got.Trials[5].State)
	require.EqualValues(t, 1_500_000_000, got.Trials[0].Memory)
	require.Zero(t, got.Trials[1].Memory, "its telemetry does not say")
	require.Equal(t, "stopped: <b>median</b> rule", got.Trials[5].Note)

	_, err = report.LoadSweep(t.Context(), s, "another")
	require.ErrorIs(t, err, store.ErrNotFound)
	for o, err := range s.List(t.Context(), store.SweepDir(figure)+"/table.") {
		require.NoError(t, err)
		require.NoError(t, s.Delete(t.Context(), o.Key))
		require.NoError(t, s.Put(t.Context(), o.Key, []byte("{}"), store.PutOptions{}))
	}
	_, err = report.LoadSweep(t.Context(), s, figure)
	require.ErrorIs(t, err, store.ErrAltered)
	ref, err := store.PutArtifact(t.Context(), s, store.SweepDir("bad"), "definition", "json", []byte("["))
	require.NoError(t, err)
	require.NotEmpty(t, ref.Key)
	_, err = report.LoadSweep(t.Context(), s, "bad")
	require.ErrorIs(t, err, store.ErrInvalid)
}

// sweepPast is a sweep as starts, additions and cancellations leave it: its trials a, b
// and c have as many iterations committed as it says.
type sweepPast struct {
	*testing.T
	*store.Memory
}

func newSweepPast(t *testing.T, committed ...int) sweepPast {
	p := sweepPast{t, store.NewMemory()}
	for i, n := range committed {
		if n > 0 {
			shape := synthetic.Shape{Iterations: n, Groups: 1, Members: 2, Turns: 1, Words: 1, Seed: uint64(i)}
			require.NoError(t, synthetic.Write(t.Context(), p, sweep.ID("s", string(rune('a'+i))), shape))
		}
	}
	return p
}

func (p sweepPast) put(name string, at int64, v any) string {
	body, err := json.Marshal(v)
	require.NoError(p, err)
	p.SetTime(time.Unix(at, 0))
	ref, err := store.PutArtifact(p.Context(), p, store.SweepDir("s"), name, "json", body)
	require.NoError(p, err)
	return ref.Digest
}

// define stores a definition of the first trials, and returns its digest.
func (p sweepPast) define(at int64, trials int) string {
	var d struct {
		Trials []sweep.Trial `json:"trials"`
	}
	for i := range trials {
		d.Trials = append(d.Trials, sweep.Trial{Label: string(rune('a' + i)), Setting: "x", Iterations: 8})
	}
	return p.put("definition", at, d)
}

// end stores a definition's table.
func (p sweepPast) end(at int64, definition string, states []sweep.State, iterations []int, decided ...string) {
	table := sweep.Table{Sweep: "s", Definition: definition}
	for i, state := range states {
		table.Rows = append(table.Rows, sweep.Row{Trial: string(rune('a' + i)), State: state, Iterations: iterations[i], Of: 8})
	}
	for _, label := range decided {
		table.Decisions = append(table.Decisions, sweep.DecisionRow{Trial: label, Text: "by the rule"})
	}
	p.put("table", at, table)
}

func (p sweepPast) load() (final bool, states []string) {
	got, err := report.LoadSweep(p.Context(), p, "s")
	require.NoError(p, err)
	for _, t := range got.Trials {
		states = append(states, t.State)
	}
	return got.Final, states
}

// The table of an earlier start, or of other trials, is not what a sweep ended with.
func TestLoadSweepOfSeveralStarts(t *testing.T) {
	type states = []sweep.State
	for name, c := range map[string]struct {
		committed []int
		past      func(p sweepPast)
		final     bool
		want      []string
	}{
		"cancelled": {
			[]int{8, 3, 0}, func(p sweepPast) {
				p.end(300, p.define(100, 3), states{sweep.Done, sweep.Cancelled, sweep.Cancelled}, []int{8, 3, 0})
			}, true, []string{"done", "cancelled", "cancelled"},
		},
		"started again with the same document": {
			[]int{8, 5, 0}, func(p sweepPast) {
				p.end(300, p.define(100, 3), states{sweep.Done, sweep.Cancelled, sweep.Cancelled}, []int{8, 3, 0})
			}, false, []string{"done", "", ""},
		},
		"begun since": {
			[]int{8, 3, 1}, func(p sweepPast) {
				p.end(300, p.define(100, 3), states{sweep.Done, sweep.Failed, sweep.Cancelled}, []int{8, 3, 0})
			}, false, []string{"done", "", ""},
		},
		"what does not count": { // after the rung at which a rule stopped the trial
			[]int{8, 6, 7}, func(p sweepPast) {
				p.end(300, p.define(100, 3), states{sweep.Done, sweep.Stopped, sweep.Dropped}, []int{8, 4, 4}, "b", "c")
			}, true, []string{"done", "stopped", "dropped"},
		},
		"stopped, and started again": {
			[]int{5, 6, 0}, func(p sweepPast) {
				p.end(300, p.define(100, 3), states{sweep.Cancelled, sweep.Stopped, sweep.Cancelled}, []int{3, 4, 0}, "b")
			}, false, []string{"", "stopped", ""},
		},
		"done early, and started again": { // by stop-after
			[]int{8, 5, 2}, func(p sweepPast) {
				p.end(300, p.define(100, 3), states{sweep.Done, sweep.Done, sweep.Done}, []int{8, 3, 2})
			}, false, []string{"done", "", "done"},
		},
		"two ends in a bucket whose times say nothing": {
			[]int{8, 8, 8}, func(p sweepPast) {
				d := p.define(100, 3)
				p.end(300, d, states{sweep.Done, sweep.Done, sweep.Done}, []int{8, 8, 8})
				p.end(400, d, states{sweep.Done, sweep.Cancelled, sweep.Cancelled}, []int{8, 3, 0})
			}, true, []string{"done", "done", "done"},
		},
		"trials added since": {
			[]int{8, 8, 0}, func(p sweepPast) {
				p.end(200, p.define(100, 2), states{sweep.Done, sweep.Done}, []int{8, 8})
				p.define(300, 3)
			}, false, []string{"", "", ""},
		},
		"ended with the original document after trials were added": {
			[]int{8, 8, 2}, func(p sweepPast) {
				first := p.define(100, 2)
				p.end(300, p.define(200, 3), states{sweep.Done, sweep.Cancelled, sweep.Cancelled}, []int{8, 3, 2})
				p.end(400, first, states{sweep.Done, sweep.Done}, []int{8, 8})
			}, true, []string{"done", "done"},
		},
		"a trial whose chain is damaged": { // what the table could not read is no later start
			[]int{8, 5, 0}, func(p sweepPast) {
				require.NoError(p, p.Delete(p.Context(), store.ManifestKey(sweep.ID("s", "b"), 0, 2)))
				p.end(300, p.define(100, 3), states{sweep.Done, sweep.Failed, sweep.Cancelled}, []int{8, 0, 0})
			}, true, []string{"done", "failed", "cancelled"},
		},
		"equal times": {
			[]int{8, 8, 8}, func(p sweepPast) {
				p.end(100, p.define(100, 2), states{sweep.Done, sweep.Done}, []int{8, 8})
				p.end(100, p.define(100, 3), states{sweep.Done, sweep.Done, sweep.Done}, []int{8, 8, 8})
				p.define(100, 1)
			}, true, []string{"done", "done", "done"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newSweepPast(t, c.committed...)
			c.past(p)
			final, got := p.load()
			require.Equal(t, c.want, got)
			require.Equal(t, c.final, final)
		})
	}
}

// sweepData is the data of a page that WriteSweep wrote.
func sweepData(t *testing.T, s report.Sweep) (data map[string]any, files map[string][]byte) {
	t.Helper()
	files = map[string][]byte{}
	_, err := report.WriteSweep(t.Context(), s, func(name string, body []byte) error { files[name] = body; return nil })
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(files["index.html"]), `id="data">`)
	text, _, _ := strings.Cut(rest, "</script>")
	var page struct{ Sweep map[string]any }
	require.NoError(t, json.Unmarshal([]byte(text), &page))
	return page.Sweep, files
}

func TestWriteSweep(t *testing.T) {
	s := store.NewMemory()
	putSweep(t, s, true)
	loaded, err := report.LoadSweep(t.Context(), s, figure)
	require.NoError(t, err)
	data, files := sweepData(t, loaded)
	require.Len(t, files, 1)
	require.Len(t, data["settings"], 3)
	require.Len(t, data["trials"], 6)
	require.InDelta(t, 8, data["length"], 0)
	first := data["settings"].([]any)[0].(map[string]any)["values"].([]any)[0].(map[string]any)
	require.InDelta(t, 2, first["n"], 0)
	require.Less(t, first["low"].(float64), first["mean"].(float64))
	last := data["settings"].([]any)[2].(map[string]any)["values"].([]any)[0].(map[string]any)
	require.InDelta(t, 1, last["n"], 0)
	require.Nil(t, last["low"], "one seed has no interval")
	low := data["curves"].([]any)[0].(map[string]any)["low"].([]any)[0].([]any)
	require.Nil(t, low[0], "and two no band")
	third := loaded.Trials[0]
	third.Label, third.Run = "selection.keep=0.25,seed=3", loaded.Trials[1].Run
	wider := loaded
	wider.Trials = append(append([]report.Trial(nil), loaded.Trials...), third)
	data, _ = sweepData(t, wider)
	low = data["curves"].([]any)[0].(map[string]any)["low"].([]any)[0].([]any)
	require.NotNil(t, low[0])
	data, _ = sweepData(t, loaded)
	success := data["curves"].([]any)[1].(map[string]any)
	require.Equal(t, "success/mean", success["name"])
	require.Len(t, success["raw"].([]any)[0], 8)
	require.NotEqual(t, success["raw"], success["mean"])
	points := success["evaluations"].([]any)[0].([]any)
	require.Len(t, points, 2, "every fourth version")
	require.InDelta(t, 2, points[0].(map[string]any)["n"], 0)
	require.Nil(t, points[0].(map[string]any)["low"], "two seeds")
	points = success["evaluations"].([]any)[2].([]any)
	require.NotNil(t, points[0].(map[string]any)["low"], "one run has its own interval")
	again, _ := sweepData(t, loaded)
	require.Equal(t, data, again)

	// Without anything yet it is a page all the same.
	data, _ = sweepData(t, report.Sweep{ID: "empty", Trials: []report.Trial{{Label: "a", Setting: "a"}}, Metrics: []string{"success/mean"}})
	require.InDelta(t, 0, data["length"], 0)
	data, _ = sweepData(t, report.Sweep{ID: "nothing"})
	require.Empty(t, data["trials"])
}

// A sweep's page says in which fields its settings differ, with the values of the resolved
// specs for what a definition leaves out.
func TestWriteSweepFields(t *testing.T) {
	trial := func(setting, spec string) report.Trial {
		return report.Trial{Label: setting + ",seed=1", Setting: setting, Spec: json.RawMessage(spec)}
	}
	base := trial("base", `{"seed":1,"iterations":8,"update":{"clip_low":0.2}}`)
	base.Run = &report.Run{ID: "s/base,seed=1", SpecText: json.RawMessage(`{"seed":1,"update":{"clip_high":0.2,"clip_low":0.2,"kl_in":"loss"}}`)}
	data, _ := sweepData(t, report.Sweep{ID: "s", Metrics: []string{"success/mean"}, Trials: []report.Trial{
		base,
		trial("clip-higher", `{"seed":2,"iterations":8,"update":{"clip_low":0.2,"clip_high":0.28}}`),
		trial("no-kl", `{"seed":3,"iterations":8,"update":{"clip_low":0.2,"kl_in":"none"}}`),
	}})
	require.Equal(t, []any{
		map[string]any{"path": "update.clip_high", "values": []any{"0.2", "0.28", "the default"}},
		map[string]any{"path": "update.kl_in", "values": []any{"loss", "the default", "none"}},
	}, data["fields"])
	data, _ = sweepData(t, report.Sweep{ID: "s", Trials: []report.Trial{base}})
	require.NotContains(t, data, "fields")
}

// If there are very many settings, the best have curves.
func TestWriteSweepOfManySettings(t *testing.T) {
	s := store.NewMemory()
	var wide report.Sweep
	wide.ID, wide.Metrics, wide.Goal = "wide", []string{"success/mean"}, sweep.Minimize
	for i := range 40 {
		run := fmt.Sprint("r", i)
		require.NoError(t, synthetic.Write(t.Context(), s, run, synthetic.Shape{Iterations: 1, Groups: 10, Members: 4, Turns: 1, Words: 1, Seed: uint64(i), Level: float64(i) / 50}))
		r, err := report.Load(t.Context(), s, run)
		require.NoError(t, err)
		wide.Trials = append(wide.Trials, report.Trial{Label: run, Setting: run, Run: r})
	}
	data, _ := sweepData(t, wide)
	require.Len(t, data["settings"], 40)
	require.Len(t, data["shown"], 24)
	require.Contains(t, data["shown"], 0.0)
	require.NotContains(t, data["shown"], 39.0, "the goal is the least")
}

// putPages writes the pages of a sweep's first two trials into the store, as host
// workers do.
func putPages(t *testing.T, s store.Store) {
	t.Helper()
	for _, setting := range settings[:2] {
		run := sweep.ID(figure, setting.name+",seed=1")
		_, err := report.Write(t.Context(), s, run, func(name string, body []byte) error {
			return s.Put(t.Context(), store.ReportDir(run)+"/"+name, body, store.PutOptions{})
		})
		require.NoError(t, err)
	}
}

// The page in the store links to the trials' pages that are there.
func TestLinkStored(t *testing.T) {
	s := store.NewMemory()
	putSweep(t, s, true)
	putPages(t, s)
	loaded, err := report.LoadSweep(t.Context(), s, figure)
	require.NoError(t, err)
	require.NoError(t, loaded.LinkStored(t.Context(), s))
	require.Equal(t, "../../../runs/fig7%2Fselection.keep%3D0.25%2Cseed%3D1/report/index.html", loaded.Trials[0].Page)
	data, _ := sweepData(t, loaded)
	trials := data["trials"].([]any)
	require.Equal(t, "../../../runs/fig7%252Fselection.keep%253D0.25%252Cseed%253D1/report/index.html", trials[0].(map[string]any)["page"])
	for i, trial := range trials {
		require.Equal(t, i < 2, trial.(map[string]any)["page"] != nil, i)
	}
	// A link leads from the sweep's page to the trial's key.
	base, err := url.Parse("https://bucket/at/" + url.PathEscape(store.EscapeSegment(figure)))
	require.NoError(t, err)
	base.Path, base.RawPath = "/prefix/"+store.SweepReportDir(figure)+"/index.html", ""
	to, err := base.Parse(trials[1].(map[string]any)["page"].(string))
	require.NoError(t, err)
	require.Equal(t, "/prefix/"+store.ReportDir(sweep.ID(figure, "selection.keep=0.5,seed=1"))+"/index.html", to.Path)

	require.ErrorIs(t, loaded.LinkStored(t.Context(), blind{s}), store.ErrUnavailable)
}

// blind cannot be asked what is there.
type blind struct{ store.Store }

func (blind) Stat(context.Context, string) (store.Object, error) {
	return store.Object{}, store.ErrUnavailable
}

// Whatever a page's path is, the link stays where the sweep's page is.
func TestLinksAreSafe(t *testing.T) {
	base, err := url.Parse("https://host/a/b/c/index.html")
	require.NoError(t, err)
	for path, want := range map[string]string{
		"trials/a/index.html":        "./trials/a/index.html",
		"trials/a%2Fb?c#d e":         "./trials/a%252Fb%3Fc%23d%20e",
		"../x":                       "../x",
		"javascript:alert(1)":        "./javascript:alert%281%29",
		"//other/x":                  ".///other/x",
		"https://other/x":            "./https://other/x",
		"\\\\other\\x":               "./%5C%5Cother%5Cx",
		"\tjavascript:\n\"<b>\u2028": "./%09javascript:%0A%22%3Cb%3E%E2%80%A8",
	} {
		data, _ := sweepData(t, report.Sweep{ID: "s", Trials: []report.Trial{{Label: "a", Setting: "a", Page: path}}})
		got := data["trials"].([]any)[0].(map[string]any)["page"].(string)
		require.Equal(t, want, got)
		to, err := base.Parse(got)
		require.NoError(t, err)
		require.Equal(t, "https", to.Scheme)
		require.Equal(t, "host", to.Host)
	}
}
