package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/agent"
	"github.com/reprise-rl/reprise/envs/calls"
	"github.com/reprise-rl/reprise/envs/completions"
	"github.com/reprise-rl/reprise/envs/lookup"
	"github.com/reprise-rl/reprise/envs/tools"
	"github.com/reprise-rl/reprise/envs/tools/mcp"
	"github.com/reprise-rl/reprise/infra/keeper"
	"github.com/reprise-rl/reprise/model/draw"
	"github.com/reprise-rl/reprise/workers/lab/medians"
)

// Call is what one call takes beside what it is about.
type Call struct {
	// Of is the tool, or the agent.
	Of string `json:"of"`
	// Milliseconds is the median; Goal is what it should be at most on a quiet machine.
	Milliseconds float64 `json:"milliseconds"`
	Goal         float64 `json:"goal"`
}

const (
	benchCalls = 200
	goGoal     = 1
	mcpGoal    = 5
	agentGoal  = 10
	// The arguments with which this program is an MCP server, and an agent.
	benchServer = "reprise-bench-mcp"
	benchAgent  = "reprise-bench-agent"
)

// A process that answers calls, or makes them, is this program itself: it ends here, before it reads flags.
func init() {
	if len(os.Args) != 2 {
		return
	}
	var err error
	switch os.Args[1] {
	case benchServer:
		err = serveEcho()
	case benchAgent:
		err = serveCaller()
	default:
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serveEcho() error {
	s := sdk.NewServer(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Says a text."}, func(_ context.Context, _ *sdk.CallToolRequest, a struct {
		Text string `json:"text"`
	}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: a.Text}}}, nil, nil
	})
	return s.Run(context.Background(), &sdk.StdioTransport{})
}

// serveCaller plays episodes of benchCalls calls, each with the history of the one before.
func serveCaller() error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var e struct {
			Episode string `json:"episode"`
			URL     string `json:"base_url"`
			Key     string `json:"api_key"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return err
		}
		for i := range benchCalls {
			body, err := json.Marshal(map[string]any{"model": "policy", "messages": []map[string]string{{"role": "user", "content": fmt.Sprint("call ", i)}}})
			if err != nil {
				return err
			}
			request, err := http.NewRequest(http.MethodPost, e.URL+"/chat/completions", bytes.NewReader(body))
			if err != nil {
				return err
			}
			request.Header.Set("Authorization", "Bearer "+e.Key)
			request.Header.Set("Content-Type", "application/json")
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			if _, err := io.Copy(io.Discard, response.Body); err != nil {
				return err
			}
			response.Body.Close()
		}
		fmt.Printf(`{"episode": %q, "reward": 1}`+"\n", e.Episode)
	}
	return lines.Err()
}

// calls measures calls of tools in this program, of an MCP server, and of an agent.
func (s *benchmark) calls(ctx context.Context) error {
	s.say("measuring calls of tools and agents")
	world, err := envs.New(lookup.Name, nil)
	if err != nil {
		return err
	}
	question := world.Reset(draw.Address{Purpose: draw.Instance}, draw.Address{Purpose: draw.Chance}).Observation()
	for _, c := range []struct {
		name      string
		arguments json.RawMessage
	}{
		{tools.CalculatorName, calls.OfText("expression", "(12 + 3.5) * 7 / 2")}, {tools.RetrieveName, calls.OfText("query", question)},
	} {
		tool, err := envs.NewTool(c.name, nil, world)
		if err != nil {
			return err
		}
		took, err := each(func() error {
			if a := tool.Call(c.arguments); a.Failed {
				return fmt.Errorf("tool %s: %s", c.name, a.Text)
			}
			return nil
		})
		if err != nil {
			return err
		}
		s.r.Calls = append(s.r.Calls, Call{c.name + ", in Go", took, goGoal})
	}
	self, err := keeper.Executable()
	if err != nil {
		return err
	}
	client, err := mcp.Open(mcp.Server{Name: "bench", Command: []string{self, benchServer}})
	if err != nil {
		return err
	}
	defer client.Close()
	took, err := each(func() error {
		_, err := client.Call(ctx, "", "echo", calls.OfText("text", "hello"))
		return err
	})
	if err != nil {
		return err
	}
	s.r.Calls = append(s.r.Calls, Call{"an MCP server by standard input and output", took, mcpGoal})
	if took, err = agentCalls(ctx, self); err != nil {
		return err
	}
	s.r.Calls = append(s.r.Calls, Call{"an agent", took, agentGoal})
	return nil
}

// each is the median time of a call in milliseconds.
func each(call func() error) (float64, error) {
	var took []float64
	for range benchCalls {
		begin := time.Now()
		if err := call(); err != nil {
			return 0, err
		}
		took = append(took, float64(time.Since(begin))/float64(time.Millisecond))
	}
	return medians.Of(took), nil
}

// agentCalls is the median time from one call that is taken to the next, where answers are there at once.
func agentCalls(ctx context.Context, self string) (float64, error) {
	players := agent.New([]agent.Program{{Name: "bench", Command: []string{self, benchAgent}}})
	defer players.Close()
	e := agent.Episode{
		Name: "0", Answers: map[string]completions.Completion{},
		Task: agent.Task{Instance: "1", Chance: "1", Options: json.RawMessage(`{}`)},
	}
	var took []float64
	for begin := time.Now(); ; {
		round, err := players.Play(ctx, agent.Question{
			Agent: "bench", Rollout: "bench", Limits: completions.Limits{Temperature: 1, MaxTokens: 8}, Episodes: []agent.Episode{e},
			Admit: func(completions.Call) *completions.Refusal { return nil },
			Wait:  time.Minute, Gather: time.Second, Silence: time.Minute,
		})
		if err != nil {
			return 0, err
		}
		if len(round.Ends) > 0 {
			if got := len(round.Ends[0].Calls); got != benchCalls {
				return 0, fmt.Errorf("the agent made %d calls, want %d", got, benchCalls)
			}
			return medians.Of(took[1:]), nil
		}
		took = append(took, float64(time.Since(begin))/float64(time.Millisecond))
		begin = time.Now()
		for _, c := range round.Calls {
			e.Answers[c.Address] = completions.Completion{Text: "yes", Calls: []completions.ToolCall{}, Finish: completions.FinishStop}
		}
	}
}

func printCalls(b *strings.Builder, all []Call) {
	fmt.Fprintf(b, "\nA call beside what it is about, milliseconds, medians of %d\n\n", benchCalls)
	table(b, "\teach\tgoal: at most\t", func(w io.Writer) {
		for _, c := range all {
			fmt.Fprintf(w, "%s\t%.3f\t%g\t\n", c.Of, c.Milliseconds, c.Goal)
		}
	})
}
