package workers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/episode"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs/agent"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/canon"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/workers/train"
)

// agentSpec is a run of which an agent plays the episodes, with an evaluation in the second of two iterations.
func agentSpec(options string, iterations int) []byte {
	return fmt.Appendf(nil, `{
	"seed": 1, "iterations": %d,
	"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 64, "heads": 2, "kv_heads": 1},
		"warm_start": {"steps": 0}},
	"environment": {"name": "agent", "options": {"options": %s}, "broken_share": 0.5},
	"rollout": {"groups": 1, "group_size": 4, "turns": 7, "max_new_tokens": 8, "agent": "tester", "prompt_tokens": [48, 96, 192, 288, 384, 384, 384]},
	"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 1}, "evaluation": {"every": %d, "instances": 3}
}`, iterations, options, (iterations-1)*2)
}

// tester is an agent by HTTP. Each of its episodes does as the options say.
type tester struct {
	*httptest.Server
	t      *testing.T
	jitter atomic.Bool  // calls come after times by chance
	dies   atomic.Int64 // so many episodes are left in the middle
	played atomic.Int64
}

func newTester(t *testing.T) *tester {
	a := &tester{t: t}
	a.Server = httptest.NewServer(http.HandlerFunc(a.play))
	t.Cleanup(a.Close)
	return a
}

type told struct {
	Episode string     `json:"episode"`
	BaseURL string     `json:"base_url"`
	Key     string     `json:"api_key"`
	Task    agent.Task `json:"task"`
}

type said struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (a *tester) play(w http.ResponseWriter, r *http.Request) {
	a.played.Add(1)
	var e told
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &e); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var options struct{ Kind string }
	_ = json.Unmarshal(e.Task.Options, &options)
	call := func(history ...said) said {
		if a.jitter.Load() {
			time.Sleep(time.Duration(rand.IntN(15)) * time.Millisecond)
		}
		return a.call(r.Context(), e, history)
	}
	task := said{"user", "task " + e.Task.Instance[:3]}
	first := call(task)
	if first.Role == "" {
		return
	}
	if a.dies.Add(-1) >= 0 {
		http.Error(w, "killed", http.StatusServiceUnavailable)
		return
	}
	var last said
	switch options.Kind {
	case "chain":
		second := call(task, first, said{"user", "go on"})
		last = call(task, first, said{"user", "go on"}, second, said{"user", "and end"})
	case "rewrite":
		second := call(said{"user", "so far: " + first.Content})
		last = call(said{"user", "then: " + second.Content}, said{"user", "end"})
	case "spawn": // two on the side at the same time, one of them with two calls, and two that are equal
		var group sync.WaitGroup
		parts := make([]said, 4)
		for i := range parts {
			group.Go(func() {
				ask := said{"user", fmt.Sprintf("part %d", i/2*i)}
				if parts[i] = call(ask); i == 3 {
					parts[i] = call(ask, parts[i], said{"user", "more"})
				}
			})
		}
		group.Wait()
		if parts[0].Content > parts[1].Content { // equal calls share their answers out
			parts[0], parts[1] = parts[1], parts[0]
		}
		last = call(task, first, said{"user", parts[0].Content + parts[1].Content + parts[2].Content + parts[3].Content})
	case "greedy": // more than rollout.turns
		for last = first; last.Role != ""; {
			history := []said{task, {"user", last.Content}}
			last = call(history...)
		}
	case "sulk":
		if e.Task.Chance[len(e.Task.Chance)-1] < '3' {
			fmt.Fprint(w, `{"error": "no mood"}`)
			return
		}
		last = first
	}
	reward := float64(len(last.Content)%4) / 4
	fmt.Fprintf(w, `{"episode": %q, "reward": %v, "success": %t, "metrics": {"letters": %d}}`, e.Episode, reward, reward > 0.5, len(last.Content))
}

// call asks the policy; a message without a role says that it did not answer.
func (a *tester) call(ctx context.Context, e told, history []said) said {
	ask := map[string]any{"model": "policy", "messages": history}
	if len(history) > 2 {
		ask["temperature"] = 0.5
	}
	body, _ := json.Marshal(ask)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.BaseURL+"/chat/completions", bytes.NewReader(body))
	require.NoError(a.t, err)
	request.Header.Set("Authorization", "Bearer "+e.Key)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return said{}
	}
	defer response.Body.Close()
	var out struct {
		Choices []struct{ Message said }
	}
	text, _ := io.ReadAll(response.Body)
	if json.Unmarshal(text, &out) != nil || len(out.Choices) != 1 {
		return said{}
	}
	return out.Choices[0].Message
}

// requireSame requires the same manifests, and names what differs in the first that are not.
func requireSame(t *testing.T, want, got store.Chain, why string) {
	for i := range want {
		a, err := want[i].Manifest.Encode()
		require.NoError(t, err)
		b, err := got[i].Manifest.Encode()
		require.NoError(t, err)
		require.Empty(t, canon.Diff(a, b, 20), why)
	}
}

// A run whose episodes an agent plays is as exact as another: whatever calls come together, whoever dies.
func TestAgents(t *testing.T) {
	plugintest.Needs(t)
	opened, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	ctx := t.Context()
	trained := func(t *testing.T, options string, iterations int, a *tester) (*store.Memory, store.Chain) {
		s := store.NewMemory()
		r := train.New(engine, s)
		program, err := agent.Parse("tester=" + a.URL)
		require.NoError(t, err)
		r.Device.Agents = agent.New([]agent.Program{program})
		defer r.Device.Agents.Close()
		_, err = r.Train(ctx, "agents", agentSpec(options, iterations))
		require.NoError(t, err)
		head, err := store.Head(ctx, s, "agents")
		require.NoError(t, err)
		chain, err := store.LoadChain(ctx, s, head.Ref)
		require.NoError(t, err)
		return s, chain
	}
	for _, c := range []struct {
		kind        string
		iterations  int
		turns, anew int // calls of an episode, and conversations
		again       int
	}{{"chain", 2, 3, 1, 1}, {"rewrite", 1, 3, 3, 1}, {"spawn", 1, 7, 5, 10}, {"greedy", 1, 7, 7, 0}} {
		t.Run(c.kind, func(t *testing.T) {
			options, a := fmt.Sprintf(`{"kind": %q}`, c.kind), newTester(t)
			s, chain := trained(t, options, c.iterations, a)
			m := chain[0].Manifest
			rows, err := tables.Get[episode.TrajectoryRow](ctx, s, *m.Trajectories)
			require.NoError(t, err)
			for _, r := range rows {
				require.Equal(t, c.turns, r.Turns(), "row %d", r.Row)
				anew := 0
				for _, restart := range r.Restarts {
					if restart {
						anew++
					}
				}
				require.Equal(t, c.anew, anew, "row %d", r.Row)
			}
			require.InDelta(t, c.anew, float64(m.Metrics["agent/conversations"]), 1e-9)
			require.Contains(t, m.Metrics, "agent/own/letters")

			a.jitter.Store(true)
			for range c.again {
				_, other := trained(t, options, c.iterations, a)
				requireSame(t, chain, other, "the order of calls moves no bit")
			}
			a.dies.Store(5)
			_, other := trained(t, options, c.iterations, a)
			requireSame(t, chain, other, "an agent that is started again moves no bit")
			require.Negative(t, a.dies.Load())

			before := a.played.Load()
			for i := range chain {
				got, err := ReplayIteration(ctx, s, opened, "agents", i, func(string) {})
				require.NoError(t, err)
				require.True(t, got.Same(), "%v", got.Differences)
			}
			require.Equal(t, before, a.played.Load(), "replay asks no agent")
		})
	}

	t.Run("an agent that gives up", func(t *testing.T) {
		s, chain := trained(t, `{"kind": "sulk"}`, 1, newTester(t))
		m := chain[0].Manifest
		require.Positive(t, float64(m.Metrics["broken/mean"]))
		rows, err := tables.Get[run.BrokenRow](ctx, s, m.Artifacts[activities.BrokenTable.Name])
		require.NoError(t, err)
		require.True(t, strings.Contains(rows[0].Message, "no mood"))
	})
}
