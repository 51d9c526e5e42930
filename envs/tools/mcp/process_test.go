package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/reprise-rl/reprise/envs/foreign/stdio"
)

func TestReadLine(t *testing.T) {
	text := "short\n" + strings.Repeat("a", 70) + strings.Repeat("b", 1000) + "\nlast"
	r := bufio.NewReaderSize(strings.NewReader(text), 16)
	l, err := readLine(r, 500)
	require.NoError(t, err)
	require.Equal(t, "short\n", string(l.text))
	require.False(t, l.long())
	l, err = readLine(r, 500)
	require.NoError(t, err)
	require.True(t, l.long())
	require.Equal(t, strings.Repeat("a", 70)+strings.Repeat("b", ends-70), string(l.text))
	require.Equal(t, strings.Repeat("b", ends-1)+"\n", string(l.end))
	_, err = readLine(r, 500)
	require.ErrorIs(t, err, ErrExited)
	require.ErrorIs(t, err, io.EOF)
}

// The call of an answer that is too long is known where it is safe to know it.
func TestWhoseAnswer(t *testing.T) {
	p := &process{}
	for _, test := range []struct {
		text, end string
		id        any
	}{
		{`{"jsonrpc":"2.0","id":7,"result":{"x"`, "", int64(7)},
		{`{"jsonrpc": "2.0", "id": 8, "error": {`, "", int64(8)},
		{`{"result":{`, `"}]},"jsonrpc":"2.0","id":9}` + "\n", int64(9)},
		{`{"result":{`, `"x":{"jsonrpc":"2.0","id":9}}}`, nil},
		{`{"result":{"jsonrpc":"2.0","id":7,"result":1`, "}", nil},
		{`{"jsonrpc":"2.0","id":"7","result":{`, "}", nil},
		{`{"jsonrpc":"2.0","id":99999999999999999999,"result":{`, "}", nil},
	} {
		m, err := p.tooLong(line{text: []byte(test.text), end: []byte(test.end)})
		if test.id == nil {
			require.ErrorIs(t, err, ErrFlood, test.text)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, test.id, m.(*jsonrpc.Response).ID.Raw())
		require.ErrorIs(t, m.(*jsonrpc.Response).Error, ErrFlood)
	}
}

// FuzzRead reads what a process may write: it gives messages or an error by kind, and its memory and time are bounded.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}`, "banner\n\n[1]\n{}", `{"jsonrpc":"2.0","id":`,
		`{"jsonrpc":"2.0","method":"notifications/x"}` + "\n" + `{"jsonrpc":"2.0","id":"a","method":"ping"}` + "\nx", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"" +
			strings.Repeat("x", 1000), "\xff\x00{", `{"jsonrpc":"2.0","id":{},"method":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, written []byte) {
		var in bytes.Buffer
		p := &process{
			Child:  &stdio.Child{In: closer{&in}, Out: bufio.NewReaderSize(bytes.NewReader(written), 16), Log: stdio.NewTail()},
			server: Server{message: 600}, writing: make(chan struct{}, 1), over: make(chan struct{}),
		}
		p.writing <- struct{}{}
		for {
			m, err := p.Read(t.Context())
			if err == nil {
				require.IsType(t, &jsonrpc.Response{}, m)
				continue
			}
			require.True(t, errors.Is(err, ErrExited) || errors.Is(err, ErrAnswer) || errors.Is(err, ErrFlood), "%v", err)
			require.Equal(t, err, p.broken())
			break
		}
		for answer := range bytes.Lines(in.Bytes()) {
			_, err := jsonrpc.DecodeMessage(answer)
			require.NoError(t, err)
		}
	})
}

type closer struct{ io.Writer }

func (closer) Close() error { return nil }

// FuzzAnswer reads a tool's result and a list of tools as the SDK gives them: neither panics, and both are bounded.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"content":[{"type":"text","text":"a"}]}`, `{"content":null,"structuredContent":[1e400]}`, `{"content":[{"type":"image","data":"AA==","mimeType":"x"}]}`,
		`{"content":[{"type":"resource"},{"type":"resource","resource":{"uri":"u","blob":""}},{"type":"tool_use"},{"type":"resource_link"}],"isError":true}`,
		`{"content":[null]}`, `{"resultType":"input_required","inputRequests":{"a":null}}`, `{"tools":[{"name":"a","inputSchema":{"type":"object"}},null,{"name":"b","inputSchema":7}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var r sdk.CallToolResult
		if safely(func() error { return r.UnmarshalJSON(exact(text)) }) == nil {
			if a, err := answerOf(&r); err == nil {
				require.LessOrEqual(t, len(a.Text), MaxText+100)
			} else {
				require.ErrorIs(t, err, ErrAnswer)
			}
		}
		var tools sdk.ListToolsResult
		if safely(func() error { return json.Unmarshal(text, &tools) }) != nil {
			return
		}
		l := listing{others: map[string]string{}}
		for _, tool := range tools.Tools {
			if tool != nil { // the SDK leaves it out
				l.add(tool)
			}
		}
		for _, tool := range l.tools {
			require.Regexp(t, validTool, tool.Name)
			require.LessOrEqual(t, len(tool.Description), MaxTool)
		}
	})
}
