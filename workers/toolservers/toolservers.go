// Package toolservers answers the outside tools of a spec: programs of policies run in processes of this program, and MCP
// servers, which flags name, are asked.
package toolservers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/tools/mcp"
	"github.com/reprise-rl/reprise/envs/tools/starlark"
	"github.com/reprise-rl/reprise/infra/keeper"
	"github.com/reprise-rl/reprise/infra/named"
)

// starlarkChild is the argument that makes this program run the programs of policies, and nothing else.
const starlarkChild = "reprise-starlark-child"

// A process that runs programs is this program itself: it ends here, before it reads flags.
func init() {
	if len(os.Args) != 2 || os.Args[1] != starlarkChild {
		return
	}
	if err := starlark.Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Flags name MCP servers.
type Flags struct {
	// MCP are the servers, each NAME=COMMAND or NAME=URL.
	MCP []string
	// Headers go with each request to a server with a URL, each NAME=HEADER=VARIABLE: the value is an environment
	// variable's.
	Headers []string
	// Variables are environment variables that a command gets, each NAME=VARIABLE.
	Variables []string
}

// Servers are who answers outside tools.
type Servers struct {
	starlark *programs
	mcp      *servers
}

// Open makes the answerers; nothing is started before the first question. The error names the flag.
func Open(f Flags) (*Servers, error) {
	t := &Servers{starlark: &programs{pools: map[starlark.Limits]*starlark.Pool{}}, mcp: &servers{clients: map[string]*mcp.Client{}}}
	all, err := f.servers()
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		c, err := mcp.Open(s)
		if err != nil {
			t.Close()
			return nil, fmt.Errorf("--mcp %s: %w", s.Name, err)
		}
		t.mcp.clients[s.Name] = c
	}
	return t, nil
}

// Askers are the answerers by the kinds of tools.
func (t *Servers) Askers() map[string]host.ToolAsker {
	return map[string]host.ToolAsker{starlark.Name: t.starlark, mcp.Kind: t.mcp}
}

// Close ends the processes and the sessions.
func (t *Servers) Close() {
	t.starlark.close()
	for _, c := range t.mcp.clients {
		c.Close()
	}
}

// Check says what is wrong with the flags.
func (f Flags) Check() error {
	_, err := f.servers()
	return err
}

// servers reads the flags.
func (f Flags) servers() ([]mcp.Server, error) {
	out, err := named.Read(named.Flag{Name: "mcp", Thing: "server", Gives: "command or URL"}, f.MCP, mcp.Parse,
		func(s mcp.Server) string { return s.Name })
	if err != nil {
		return nil, err
	}
	for _, value := range f.Headers {
		s, parts, err := out.About("mcp-header", value, "NAME=HEADER=VARIABLE", "docs=Authorization=DOCS_TOKEN")
		if err != nil {
			return nil, err
		}
		header, variable := parts[1], parts[2]
		switch {
		case s.URL == "":
			return nil, fmt.Errorf("--mcp-header %s: the server is a command; --mcp-variable gives it a variable", s.Name)
		case os.Getenv(variable) == "":
			return nil, fmt.Errorf("--mcp-header %s: the variable %s is not set", s.Name, variable)
		}
		if s.Headers == nil {
			s.Headers = http.Header{}
		}
		s.Headers.Set(header, os.Getenv(variable))
	}
	for _, value := range f.Variables {
		s, parts, err := out.About("mcp-variable", value, "NAME=VARIABLE", "search=SEARCH_API_KEY")
		if err != nil {
			return nil, err
		}
		if s.URL != "" {
			return nil, fmt.Errorf("--mcp-variable %s: the server has a URL; --mcp-header gives it a header", s.Name)
		}
		s.Variables = append(s.Variables, parts[1])
	}
	return out.All, nil
}

// programs runs the programs of policies in processes of their own, a pool for each set of limits.
type programs struct {
	mu    sync.Mutex
	pools map[starlark.Limits]*starlark.Pool
}

// mostPools is how many sets of limits have processes at the same time.
const mostPools = 8

// Ask implements host.ToolAsker.
func (p *programs) Ask(ctx context.Context, q host.ToolAsked) (envs.ToolAnswer, error) {
	asked, err := starlark.ReadQuestion(q.ToolQuestion)
	if err != nil {
		return envs.ToolAnswer{}, err
	}
	pool, err := p.pool(asked.Limits)
	if err != nil {
		return envs.ToolAnswer{}, err
	}
	a, err := pool.Evaluate(ctx, asked.Program, asked.Expressions)
	return envs.ToolAnswer{Text: a.Text, Failed: a.Failed, Killed: a.Killed}, err
}

func (p *programs) pool(limits starlark.Limits) (*starlark.Pool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pool := p.pools[limits]; pool != nil {
		return pool, nil
	}
	self, err := keeper.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, to run the programs of policies: %w", err)
	}
	pool, err := starlark.NewPool([]string{self, starlarkChild}, limits, runtime.NumCPU())
	if err != nil {
		return nil, err
	}
	if len(p.pools) >= mostPools { // runs of many sets of limits: the processes of the others are started again when needed
		for other, old := range p.pools {
			old.Close()
			delete(p.pools, other)
			break
		}
	}
	p.pools[limits] = pool
	return pool, nil
}

func (p *programs) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pool := range p.pools {
		pool.Close()
	}
}

// servers asks MCP servers.
type servers struct{ clients map[string]*mcp.Client }

func (s *servers) client(name string) (*mcp.Client, error) {
	if c := s.clients[name]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("MCP server %q: %w: start it with --mcp %[1]s=COMMAND or --mcp %[1]s=URL", name, activities.ErrNotServed)
}

// Ask implements host.ToolAsker. A call that takes too long is the policy's failure: its server answers others.
func (s *servers) Ask(ctx context.Context, q host.ToolAsked) (envs.ToolAnswer, error) {
	c, err := s.client(q.Server)
	if err != nil {
		return envs.ToolAnswer{}, err
	}
	asked, err := mcp.ReadQuestion(q.ToolQuestion)
	if err != nil {
		return envs.ToolAnswer{}, err
	}
	key := ""
	if asked.OwnSession {
		key = q.Episode
		if err := s.again(ctx, c, key, q); err != nil {
			return envs.ToolAnswer{}, err
		}
	}
	within, stop := context.WithTimeout(ctx, asked.Timeout)
	defer stop()
	a, err := c.Call(within, key, asked.Tool, asked.Arguments)
	if errors.Is(err, mcp.ErrTimeout) && ctx.Err() == nil {
		return envs.ToolAnswer{Text: fmt.Sprintf("error: the tool did not answer within %v", asked.Timeout), Failed: true, Killed: true}, nil
	}
	return envs.ToolAnswer{Text: a.Text, Failed: a.Failed}, err
}

// again makes an episode's earlier calls again if its session is not one that has had them: it ended, or it is a new
// process.
func (s *servers) again(ctx context.Context, c *mcp.Client, key string, q host.ToolAsked) error {
	var before []mcp.Asked
	for _, b := range q.Before {
		if b.Kind != mcp.Kind || b.Server != q.Server {
			continue
		}
		asked, err := mcp.ReadQuestion(b)
		if err != nil {
			return err
		}
		before = append(before, asked)
	}
	if c.Sent(key) == len(before) && len(before) > 0 {
		return nil
	}
	c.End(key)
	for _, b := range before {
		within, stop := context.WithTimeout(ctx, b.Timeout)
		_, err := c.Call(within, key, b.Tool, b.Arguments)
		stop()
		if err != nil && (!errors.Is(err, mcp.ErrTimeout) || ctx.Err() != nil) {
			return fmt.Errorf("make the episode's calls again: %w", err)
		}
	}
	return nil
}

// Described implements host.ToolDescriber.
func (s *servers) Described(ctx context.Context, tool envs.Tool) (json.RawMessage, error) {
	a, ok := tool.(*mcp.Allowed)
	if !ok {
		return nil, fmt.Errorf("describe a tool that is none of an MCP server: %T", tool)
	}
	name, allowed := a.Server()
	c, err := s.client(name)
	if err != nil {
		return nil, err
	}
	now, err := c.Describe(ctx, allowed)
	if err != nil {
		return nil, err
	}
	if was, described := a.Description(); described {
		drift, err := was.Drift(now)
		if err != nil {
			return nil, err
		}
		if len(drift) > 0 {
			return nil, fmt.Errorf("MCP server %s describes its tools otherwise than the spec does: %s; leave out the option description to take the server's",
				name, strings.Join(drift, "; "))
		}
	}
	return a.Described(now)
}
