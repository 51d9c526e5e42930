package toolservers

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/activities"
	"github.com/reprise-rl/reprise/activities/host"
	"github.com/reprise-rl/reprise/envs"
	"github.com/reprise-rl/reprise/envs/tools"
	"github.com/reprise-rl/reprise/envs/tools/mcp"
	"github.com/reprise-rl/reprise/envs/tools/starlark"
)

func TestFlags(t *testing.T) {
	t.Setenv("TOOLS_TOKEN", "secret")
	web, local := []string{"docs=https://example.com/mcp"}, []string{"time=mcp-server-time --local"}
	for wrong, f := range map[string]Flags{
		"--mcp: found \"docs\", want NAME=COMMAND or NAME=URL":                  {MCP: []string{"docs"}},
		`--mcp names the server "time" twice`:                                   {MCP: append(local, "time=other")},
		"--mcp-header: found \"docs=Authorization\", want NAME=HEADER=VARIABLE": {MCP: web, Headers: []string{"docs=Authorization"}},
		`--mcp-header names the server "other": no --mcp does`:                  {MCP: web, Headers: []string{"other=A=TOOLS_TOKEN"}},
		"--mcp-header time: the server is a command":                            {MCP: local, Headers: []string{"time=A=TOOLS_TOKEN"}},
		"--mcp-header docs: the variable TOOLS_NONE is not set":                 {MCP: web, Headers: []string{"docs=A=TOOLS_NONE"}},
		"--mcp-variable: found \"time\", want NAME=VARIABLE":                    {MCP: local, Variables: []string{"time"}},
		`--mcp-variable names the server "other": no --mcp does`:                {MCP: local, Variables: []string{"other=A"}},
		"--mcp-variable docs: the server has a URL":                             {MCP: web, Variables: []string{"docs=A"}},
	} {
		require.ErrorContains(t, f.Check(), wrong)
		_, err := Open(f)
		require.ErrorContains(t, err, wrong)
	}
	good := Flags{MCP: append(web, local...), Headers: []string{"docs=Authorization=TOOLS_TOKEN"}, Variables: []string{"time=TZ"}}
	require.NoError(t, good.Check())
	all, err := good.servers()
	require.NoError(t, err)
	require.Equal(t, "secret", all[0].Headers.Get("Authorization"))
	require.Equal(t, []string{"TZ"}, all[1].Variables)
}

// A program runs in a process of this program's, and a server that no flag names says which flag is missing.
func TestAskers(t *testing.T) {
	s, err := Open(Flags{})
	require.NoError(t, err)
	defer s.Close()
	ask := func(kind string, q envs.ToolQuestion) (envs.ToolAnswer, error) {
		return s.Askers()[kind].Ask(t.Context(), host.ToolAsked{ToolQuestion: q})
	}
	q := tools.Starlark{Limits: starlark.Defaults}.Question(json.RawMessage(`{"program":"print(6 * 7)"}`))
	a, err := ask(starlark.Name, q)
	require.NoError(t, err)
	require.Equal(t, envs.ToolAnswer{Text: "42"}, a)
	_, err = ask(mcp.Kind, envs.ToolQuestion{Kind: mcp.Kind, Server: "time"})
	require.ErrorIs(t, err, activities.ErrNotServed)
	require.ErrorContains(t, err, "--mcp time=COMMAND")
}
