package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reprise-rl/reprise/infra/leftover"
)

// TestMain is also the programs of the stand-in servers: the first argument says which.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "serve": // a server of the SDK's, behind what the second argument does to standard output
			standIn(os.Args[2])
			return
		case "lines": // a server by hand, for what the SDK does not do
			lines(os.Args[2])
			return
		}
	}
	os.Exit(m.Run())
}

// standInServer is the stand-in with the tools that the tests call.
func standInServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "stand-in", Version: "1.2"}, &sdk.ServerOptions{PageSize: 3})
	add := func(name string, do func(ctx context.Context, r *sdk.CallToolRequest, a arguments) (*sdk.CallToolResult, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "does " + name}, func(ctx context.Context, r *sdk.CallToolRequest, a arguments) (*sdk.CallToolResult, any, error) {
			result, err := do(ctx, r, a)
			return result, nil, err
		})
	}
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	var remembered []string
	add("echo", func(_ context.Context, _ *sdk.CallToolRequest, a arguments) (*sdk.CallToolResult, error) {
		return text(a.Text), nil
	})
	add("remember", func(_ context.Context, _ *sdk.CallToolRequest, a arguments) (*sdk.CallToolResult, error) {
		remembered = append(remembered, a.Text)
		return text(strings.Join(remembered, ",")), nil
	})
	add("slow", func(ctx context.Context, _ *sdk.CallToolRequest, a arguments) (*sdk.CallToolResult, error) {
		select {
		case <-time.After(time.Duration(a.Number) * time.Millisecond):
		case <-ctx.Done():
		}
		return text(a.Text), nil
	})
	add("die", func(context.Context, *sdk.CallToolRequest, arguments) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "the last words")
		os.Exit(3)
		return nil, nil
	})
	add("flood", func(_ context.Context, _ *sdk.CallToolRequest, a arguments) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("x", a.Number)), nil
	})
	add("fail", func(context.Context, *sdk.CallToolRequest, arguments) (*sdk.CallToolResult, error) {
		return nil, fmt.Errorf("it cannot be done")
	})
	add("noise", func(context.Context, *sdk.CallToolRequest, arguments) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 10_000))
		return text("said"), nil
	})
	add("change", func(context.Context, *sdk.CallToolRequest, arguments) (*sdk.CallToolResult, error) {
		s.RemoveTools("noise")
		return text("changed"), nil
	})
	add("sample", func(ctx context.Context, r *sdk.CallToolRequest, _ arguments) (*sdk.CallToolResult, error) {
		var said []string
		//lint:ignore SA1019 servers of today still ask
		_, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 1, Messages: []*sdk.SamplingMessage{}})
		said = append(said, fmt.Sprint(err))
		//lint:ignore SA1019 servers of today still ask
		_, err = r.Session.ListRoots(ctx, nil)
		said = append(said, fmt.Sprint(err))
		_, err = r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "?"})
		said = append(said, fmt.Sprint(err), fmt.Sprint(r.Session.Ping(ctx, nil)))
		return text(strings.Join(said, "\n")), nil
	})
	add("all", func(context.Context, *sdk.CallToolRequest, arguments) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "a"}, &sdk.ImageContent{Data: []byte("1234"), MIMEType: "image/png"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", Text: "b"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///c", MIMEType: "application/zip", Blob: []byte("12")}},
			&sdk.AudioContent{Data: []byte("1"), MIMEType: "audio/wav"}, &sdk.ResourceLink{URI: "file:///d", Name: "d"},
		}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "structured", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: json.RawMessage(`{"b": [1, "<|>", 12345678901234567890, 1.0], "a": null}`)}, nil
	})
	return s
}

type arguments struct {
	Text   string `json:"text,omitempty"`
	Number int    `json:"number,omitempty"`
}

// standIn serves the stand-in.
func standIn(how string) {
	switch how {
	case "banner":
		fmt.Println("Stand-in MCP server, ready.\n\n[INFO] {listening}\n{\"level\":\"info\"}")
	case "noise":
		for range 2000 {
			fmt.Println(strings.Repeat("noise ", 200))
		}
	}
	_ = standInServer().Run(context.Background(), &sdk.StdioTransport{})
}

// least is the bound of messages in some tests.
const least = 1 << 20

// lines is a server that answers the beginning of a session, lists nothing, and answers each call as how says.
func lines(how string) {
	if how == "exit" {
		return
	}
	in := bufio.NewScanner(os.Stdin)
	answer := func(id json.RawMessage, format string, a ...any) {
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", id, fmt.Sprintf(format, a...))
	}
	for in.Scan() {
		var r struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(in.Bytes(), &r) != nil || r.ID == nil {
			continue
		}
		switch {
		case r.Method == "initialize" && how == "newest":
			answer(r.ID, `"error":{"code":-32601,"message":"no such method"}`)
		case r.Method == "server/discover":
			answer(r.ID, `"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
		case r.Method == "initialize" && how == "odd":
			answer(r.ID, `"result":{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"lines","version":"1"}}`)
		case r.Method == "initialize":
			answer(r.ID, `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"lines","version":"1"}}`)
		case r.Method == "tools/list" && how == "circle":
			answer(r.ID, `"result":{"tools":[],"nextCursor":"again"}`)
		case r.Method == "tools/list" && how == "many":
			tools := make([]string, MaxTools+1)
			for i := range tools {
				tools[i] = fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"}}`, i)
			}
			answer(r.ID, `"result":{"tools":[%s]}`, strings.Join(tools, ","))
		case r.Method == "tools/list":
			answer(r.ID, `"result":{"tools":[{"name":"good","description":"is good","inputSchema":{"type":"object","properties":{"b":{},"a":{}}}},`+
				`{"name":"bad.name","inputSchema":{"type":"object"}},{"name":"good","inputSchema":{"type":"object"}},null,`+
				`{"name":"array","inputSchema":{"type":"array"}},{"name":"none"},{"name":"deep","inputSchema":{"type":"object","x":%s1%s}},`+
				`{"name":"wide","description":%q,"inputSchema":{"type":"object"}}]}`,
				strings.Repeat("[", 40), strings.Repeat("]", 40), strings.Repeat("w", MaxTool))
		case how == "half":
			fmt.Println(`{"jsonrpc":"2.0","id":9,"result":{"content":[`)
		case how == "odd":
			answer(r.ID, `"result":{"content":[{"type":"hologram"}]}`)
		case how == "panic":
			answer(r.ID, `"result":{"content":[],"inputRequests":{"a":null}}`)
		case how == "input":
			answer(r.ID, `"result":{"content":[],"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":{}}}}`)
		case how == "params":
			answer(r.ID, `"error":{"code":-32602,"message":"Unknown tool: x"}`)
		case how == "method":
			answer(r.ID, `"error":{"code":-32601,"message":"no tools here"}`)
		case how == "last": // as the TypeScript SDK orders it
			fmt.Printf(`{"result":{"content":[{"type":"text","text":"%s"}]},"jsonrpc":"2.0","id":%s}`+"\n", strings.Repeat("x", least), r.ID)
		case how == "nobody":
			fmt.Printf(`{"result":"%s"}`+"\n", strings.Repeat("x", MaxMessage))
		case how == "close":
			os.Stdout.Close()
		case how == "mad": // asks and notifies without end, and does not read
			for {
				fmt.Println(`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}`)
			}
		case how == "hang":
			select {}
		case how == "kill":
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case how == "secrets":
			text, _ := json.Marshal(strings.Join(os.Environ(), "\n"))
			answer(r.ID, `"result":{"content":[{"type":"text","text":%s}]}`, text)
		default:
			answer(r.ID, `"result":{"content":[{"type":"text","text":"%s"}],"isError":false}`, how)
		}
	}
}

// open opens a client of a stand-in. Nothing of it is left after the test.
func open(t testing.TB, s Server, arguments ...string) *Client {
	t.Helper()
	s.Name = "stand"
	if s.URL != "" {
		before := goleak.IgnoreCurrent()
		t.Cleanup(func() { // the server in this process does not hear of all ends
			goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("net/http.(*conn).serve"),
				goleak.IgnoreAnyFunction("github.com/modelcontextprotocol/go-sdk/mcp.(*streamableServerConn).Read"))
		})
	} else {
		leftover.Check(t)
		s.Command = append([]string{os.Args[0]}, arguments...)
	}
	c, err := Open(s)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// call calls a tool in the shared session.
func call(t testing.TB, c *Client, tool, arguments string) (Answer, error) {
	t.Helper()
	return c.Call(t.Context(), "", tool, json.RawMessage(arguments))
}

// said is what a tool says that does not fail.
func said(t testing.TB, c *Client, tool, arguments string) string {
	t.Helper()
	a, err := call(t, c, tool, arguments)
	require.NoError(t, err)
	require.False(t, a.Failed, a.Text)
	return a.Text
}
