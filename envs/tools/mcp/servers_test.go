package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/infra/leftover"
)

// installed is the folder into which testdata/install.sh has installed servers.
const installed = "REPRISE_MCP_SERVERS"

// realServer opens a client of an installed server.
func realServer(t *testing.T, s Server) *Client {
	t.Helper()
	leftover.Check(t)
	c, err := Open(s)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// names are those of a server's tools.
func names(t *testing.T, c *Client) []string {
	t.Helper()
	tools, err := c.Tools(t.Context())
	require.NoError(t, err)
	var out []string
	for _, tool := range tools {
		out = append(out, tool.Name)
	}
	t.Logf("%d tools: %s", len(out), strings.Join(out, ", "))
	return out
}

// Servers that others wrote are listed and called as the stand-in is.
func TestRealServers(t *testing.T) {
	folder := os.Getenv(installed)
	if folder == "" {
		t.Skip("SKIPPED: " + installed + " names no folder of servers (testdata/install.sh); the stand-in's tests have run")
	}
	bin := func(name string) string { return filepath.Join(folder, "node_modules", ".bin", name) }

	t.Run("everything", func(t *testing.T) {
		c := realServer(t, Server{Name: "everything", Command: []string{bin("mcp-server-everything"), "stdio"}})
		require.Subset(t, names(t, c), []string{"echo", "get-sum", "get-tiny-image"})
		everything(t, c)
	})

	t.Run("everything over HTTP", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		_, port, err := net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
		require.NoError(t, l.Close())
		start := func() func() {
			command := exec.Command(bin("mcp-server-everything"), "streamableHttp")
			command.Env = append(os.Environ(), "PORT="+port)
			require.NoError(t, command.Start())
			require.Eventually(t, func() bool {
				connection, err := net.Dial("tcp", "127.0.0.1:"+port)
				if err == nil {
					connection.Close()
				}
				return err == nil
			}, 20*time.Second, 20*time.Millisecond)
			return func() { _ = command.Process.Kill(); _ = command.Wait() }
		}
		stop := start()
		c := realServer(t, Server{Name: "everything", URL: "http://127.0.0.1:" + port + "/mcp"})
		everything(t, c)
		stop()
		defer start()()
		require.Equal(t, "Echo: again", said(t, c, "echo", `{"message":"again"}`), "its sessions are gone, and a new one is begun")
	})

	t.Run("filesystem", func(t *testing.T) {
		files, err := filepath.EvalSymlinks(t.TempDir())
		require.NoError(t, err)
		c := realServer(t, Server{Name: "filesystem", Command: []string{bin("mcp-server-filesystem"), files}})
		require.Subset(t, names(t, c), []string{"read_text_file", "write_file", "list_directory"})
		said(t, c, "write_file", fmt.Sprintf(`{"path":%q,"content":"hello\n"}`, filepath.Join(files, "a.txt")))
		require.Equal(t, "hello\n", said(t, c, "read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(files, "a.txt"))))
		require.Equal(t, "[FILE] a.txt", said(t, c, "list_directory", fmt.Sprintf(`{"path":%q}`, files)))
		a, err := call(t, c, "read_text_file", `{"path":"/etc/passwd"}`)
		require.NoError(t, err)
		require.True(t, a.Failed)
		require.Contains(t, a.Text, "Access denied")
	})

	t.Run("memory", func(t *testing.T) {
		t.Setenv("MEMORY_FILE_PATH", filepath.Join(t.TempDir(), "memory.jsonl"))
		c := realServer(t, Server{Name: "memory", Command: []string{bin("mcp-server-memory")}, Variables: []string{"MEMORY_FILE_PATH"}})
		require.Subset(t, names(t, c), []string{"create_entities", "search_nodes", "read_graph"})
		said(t, c, "create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["wrote notes"]}]}`)
		found := said(t, c, "search_nodes", `{"query":"notes"}`)
		require.Contains(t, found, "Ada")
		a, err := c.Call(t.Context(), "episode", "search_nodes", json.RawMessage(`{"query":"notes"}`))
		require.NoError(t, err)
		require.Equal(t, found, a.Text, "the file is shared by all processes")
		require.Equal(t, 1, c.Sent("episode"))
	})

	t.Run("time", func(t *testing.T) {
		c := realServer(t, Server{Name: "time", Command: []string{filepath.Join(folder, "python", "bin", "mcp-server-time"), "--local-timezone=UTC"}})
		require.Equal(t, []string{"get_current_time", "convert_time"}, names(t, c))
		require.Contains(t, said(t, c, "convert_time", `{"source_timezone":"UTC","time":"12:00","target_timezone":"Asia/Tokyo"}`), "T21:00:00+09:00")
		a, err := call(t, c, "convert_time", `{"source_timezone":"Mars","time":"12:00","target_timezone":"UTC"}`)
		require.NoError(t, err)
		require.True(t, a.Failed, "a time zone that is none")
		t.Log(a.Text)
		a, err = call(t, c, "no_such_tool", `{}`)
		require.NoError(t, err)
		require.True(t, a.Failed)
		t.Log(a.Text)
	})

	t.Run("the page's", func(t *testing.T) {
		source, err := filepath.Abs("../../foreign/python/src")
		require.NoError(t, err)
		t.Setenv("PYTHONPATH", source)
		t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
		c := realServer(t, Server{Name: "signals", Command: []string{filepath.Join(folder, "python", "bin", "python"), "../../../docs/own/signals.py", "tools"}})
		require.Equal(t, []string{"signal"}, names(t, c))
		require.Equal(t, "green", said(t, c, "signal", `{"place":"100"}`))
	})
}

// everything plays with server-everything.
func everything(t *testing.T, c *Client) {
	t.Helper()
	require.Equal(t, "Echo: hello", said(t, c, "echo", `{"message":"hello"}`))
	require.Contains(t, said(t, c, "get-sum", `{"a":2,"b":3}`), "5")
	require.Contains(t, said(t, c, "get-tiny-image", `{}`), "[image, image/png, ")
	for _, test := range [][2]string{{"echo", `{"message":5}`}, {"no-such-tool", `{}`}} {
		a, err := call(t, c, test[0], test[1])
		require.NoError(t, err)
		require.True(t, a.Failed)
		t.Log(a.Text)
	}
	var calls sync.WaitGroup
	begun := time.Now()
	for i := range 16 {
		calls.Go(func() {
			a, err := c.Call(context.Background(), "", "echo", fmt.Appendf(nil, `{"message":"%d"}`, i))
			if err != nil || a.Text != fmt.Sprintf("Echo: %d", i) {
				t.Errorf("%d: %v %v", i, a, err)
			}
		})
	}
	calls.Wait()
	t.Logf("16 calls took %v", time.Since(begun))
}
