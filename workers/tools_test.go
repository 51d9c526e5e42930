package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/device"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/activities/run"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/infra/plugin/plugintest"
	"github.com/reprise-rl/reprise/infra/store"
	"github.com/reprise-rl/reprise/infra/store/tables"
	"github.com/reprise-rl/reprise/model"
	"github.com/reprise-rl/reprise/model/tokenizer/chat"
	"github.com/reprise-rl/reprise/workers/train"
)

// toolsSpec asks questions, and lets the policy call one tool by <search>.
func toolsSpec(tool string) []byte {
	return fmt.Appendf(nil, `{
	"seed": 1, "iterations": 2,
	"policy": {"from": "starter", "starter": {"layers": 1, "hidden_size": 32, "intermediate_size": 64, "heads": 2, "kv_heads": 1, "tokenizer": 2},
		"warm_start": {"steps": 50, "rows": 8, "learning_rate": 0.02}},
	"environment": {"name": "lookup", "options": {"size": "tiny", "hops_max": 1}, "tools": [%s], "tool_calls": "search",
		"calls_per_turn": 1, "result_tokens": 24},
	"rollout": {"groups": 2, "group_size": 8, "turns": 3, "max_new_tokens": 12, "think": false, "context": [{"keep_last": 1, "cut_observations": 8}]},
	"selection": {"method": "all"}, "update": {"micro_batch": 4}, "snapshot": {"every": 1}, "evaluation": {"every": 2, "instances": 8}
}`, tool)
}

// sayer is an outside tool that takes one word, which a small policy soon writes.
type sayer struct{}

func init() {
	envs.RegisterTool("say", envs.ToolEntry{Make: func(*envs.Options, envs.Environment) envs.Tool { return sayer{} }})
}

func (sayer) Describe() chat.Tool {
	return chat.Tool{Name: "say", Description: "Says a word.", Parameters: calls.TextSchema("word", "The word.")}
}

func (sayer) Call(json.RawMessage) envs.ToolAnswer { panic("an outside tool") }

func (sayer) Suggest(read string) (out []json.RawMessage) {
	for _, word := range envs.Phrases(read, 1) {
		out = append(out, calls.OfText("word", word))
	}
	return out
}

func (sayer) Question(arguments json.RawMessage) envs.ToolQuestion {
	return envs.ToolQuestion{Kind: "say", Body: arguments}
}

// Ask implements host.ToolAsker: it has nothing to say about words of four letters.
func (sayer) Ask(_ context.Context, q host.ToolAsked) (envs.ToolAnswer, error) {
	word, _ := calls.Text(q.Body, "word")
	return envs.ToolAnswer{Text: "you said " + word, Failed: len(word) == 4}, nil
}

// counting counts the questions to outside tools, and answers otherwise where it is told to.
type counting struct {
	host.ToolAsker
	asked atomic.Int64
	says  string // if not empty
	fails error
}

func (c *counting) Ask(ctx context.Context, q host.ToolAsked) (envs.ToolAnswer, error) {
	c.asked.Add(1)
	if c.fails != nil {
		return envs.ToolAnswer{}, c.fails
	}
	a, err := c.ToolAsker.Ask(ctx, q)
	if c.says != "" {
		a.Text = c.says
	}
	return a, err
}

// A run whose policy calls tools is as exact as another. What a process answered is recorded once, and everything later
// reads the recording.
func TestTools(t *testing.T) {
	plugintest.Needs(t)
	opened, err := model.OpenDevice(model.DeviceOptions{XLAFlags: model.QuickCompile})
	require.NoError(t, err)
	defer opened.Close()
	engine, err := device.NewEngine(opened)
	require.NoError(t, err)
	ctx := t.Context()
	trained := func(t *testing.T, tool string) (*train.Runner, *counting, *store.Memory, store.Chain) {
		s := store.NewMemory()
		r := train.New(engine, s)
		asker := &counting{ToolAsker: sayer{}}
		r.Host.Tools["say"] = asker
		_, err := r.Train(ctx, "tools", toolsSpec(tool))
		require.NoError(t, err)
		head, err := store.Head(ctx, s, "tools")
		require.NoError(t, err)
		chain, err := store.LoadChain(ctx, s, head.Ref)
		require.NoError(t, err)
		return r, asker, s, chain
	}
	recorded := func(t *testing.T, s store.Store, chain store.Chain) (rows int) {
		for _, link := range chain {
			for _, turn := range link.Manifest.Turns {
				of, err := tables.Get[run.CallRow](ctx, s, *turn.Calls)
				require.NoError(t, err)
				for _, r := range of {
					if r.Wrong == "" {
						rows++
					}
				}
			}
			for _, e := range link.Manifest.Evaluations {
				for _, turn := range e.Turns {
					of, err := tables.Get[run.CallRow](ctx, s, *turn.Calls)
					require.NoError(t, err)
					for _, r := range of {
						if r.Wrong == "" {
							rows++
						}
					}
				}
			}
		}
		return rows
	}

	t.Run("in Go", func(t *testing.T) {
		_, asker, s, chain := trained(t, `{"name": "retrieve", "options": {"k": 1}}`)
		m := chain[0].Manifest
		require.Positive(t, float64(m.Metrics["tools/calls"]), "the policy can call")
		require.Positive(t, float64(m.Metrics["tools/retrieve/calls"]))
		require.Zero(t, asker.asked.Load())
		calls, err := tables.Get[run.CallRow](ctx, s, *m.Turns[0].Calls)
		require.NoError(t, err)
		for _, c := range calls {
			require.True(t, c.Wrong != "" || c.Answer == "no document found" || strings.HasPrefix(c.Answer, "Doc 1(Title: "), "%v", c)
		}
		got, err := ReplayIteration(ctx, s, opened, "tools", 1, func(string) {})
		require.NoError(t, err)
		require.True(t, got.Same(), "%v", got.Differences)
	})

	t.Run("outside", func(t *testing.T) {
		r, asker, s, chain := trained(t, `{"name": "say"}`)
		m := chain[1].Manifest
		asked := int(asker.asked.Load())
		require.Positive(t, asked)
		require.Equal(t, recorded(t, s, chain), asked, "each call is asked once")
		require.Contains(t, m.Metrics, "tools/failed")

		got, err := ReplayIteration(ctx, s, opened, "tools", 1, func(string) {})
		require.NoError(t, err)
		require.True(t, got.Same(), "%v", got.Differences)
		require.EqualValues(t, asked, asker.asked.Load(), "a replay asks nothing")

		// A worker that ended before it stored the table finds the answers, and asks nothing.
		in := activities.CallToolsInput{Turn: 1, Rollout: activities.Rollout{Iteration: 1}, Generate: m.Turns[0].Generate}
		found, err := r.Host.Find(ctx, activities.FindInput{Run: "tools", Version: new(2)})
		require.NoError(t, err)
		in.Run = found.Run
		require.NoError(t, s.Delete(ctx, m.Turns[0].Calls.Key))
		again, err := r.Host.CallTools(ctx, in)
		require.NoError(t, err)
		require.Equal(t, *m.Turns[0].Calls, again.Table)
		require.EqualValues(t, asked, asker.asked.Load())

		drifts, compared, err := r.Host.Drifts(ctx, found.Run, m)
		require.NoError(t, err)
		require.Empty(t, drifts)
		require.Positive(t, compared)
		asker.says = "something else"
		drifts, _, err = r.Host.Drifts(ctx, found.Run, m)
		require.NoError(t, err)
		require.NotEmpty(t, drifts)
		require.Contains(t, drifts[0].String(), `answer 1 of tool say: recorded "you said`)
		require.Contains(t, drifts[0].String(), `now "something else"`)

		report, err := store.Verify(ctx, s, "tools", nil)
		require.NoError(t, err)
		require.Empty(t, report.Problems)
		garbage, err := store.FindGarbage(ctx, s, "tools", store.GarbageOptions{Grace: -1, Ended: true})
		require.NoError(t, err)
		single := 0
		for _, o := range garbage.Objects {
			require.NotContains(t, o.Key, ".calls.")
			if strings.Contains(o.Key, ".call-") {
				single++
			}
		}
		require.Positive(t, single, "answers that are in a table are no longer needed by themselves")
	})

	t.Run("a tool that cannot be asked", func(t *testing.T) {
		s := store.NewMemory()
		r := train.New(engine, s)
		broken := errors.New("no such process")
		r.Host.Tools["say"] = &counting{fails: broken}
		_, err := r.Train(ctx, "tools", toolsSpec(`{"name": "say"}`))
		require.ErrorIs(t, err, broken)
		require.ErrorIs(t, err, activities.ErrEnvironment)
		require.ErrorContains(t, err, "tool say: asked 3 times")
		_, err = train.New(engine, s).Begin(ctx, "tools", toolsSpec(`{"name": "mcp", "options": {"server": "time", "tools": ["now"]}}`))
		require.ErrorIs(t, err, activities.ErrNotServed)
		require.ErrorContains(t, err, `MCP server "time"`)
		require.ErrorContains(t, err, "--mcp time=COMMAND")
	})
}
